"""`micronet ngrams`: a packed model with a table of n-grams."""

from pathlib import Path

from rich.text import Text

from micronet_lm.cli import parsers
from micronet_lm.cli.output import print_report, tell
from micronet_lm.cli.parsers import Arguments, Verbs
from micronet_lm.config import NgramsConfig

_EXAMPLE = """example:
  micronet ngrams model.safetensors -o better.safetensors --corpus data/python-docs --budget 200000
"""

_KEYS = ("order", "min_count", "budget", "bits", "tokens")


def add(verbs: Verbs) -> None:
    """Register the verb."""
    parser = parsers.add_verb(
        verbs,
        "ngrams",
        _run,
        help="mix a table of n-grams into a packed model",
        description=(
            "Count the n-grams of the model's corpus, keep those that are worth most, and mix them "
            "into a packed model, which becomes better at short texts. The table's share is found "
            "on one half of the validation split's texts and kept where the other half agrees. "
            "In a recipe, the section 'ngrams' does the same."
        ),
        epilog=_EXAMPLE,
    )
    parser.add_argument("target", type=Path, metavar="FILE", help="a packed model")
    parser.add_argument(
        *("-o", "--out"), type=Path, required=True, metavar="FILE", help="the file to write"
    )
    parser.add_argument(
        *("--corpus",),
        type=Path,
        required=True,
        metavar="PATH",
        help="the corpus that the model was made with",
    )
    default = NgramsConfig()
    parser.add_argument(
        "--order",
        type=int,
        default=default.order,
        help="words of the longest n-grams (%(default)s)",
    )
    parser.add_argument(
        "--min-count",
        type=int,
        default=default.min_count,
        help="how often an n-gram must occur (%(default)s)",
    )
    parser.add_argument("--budget", type=int, help="most bytes of the table (no limit)")
    parser.add_argument(
        "--bits", type=int, default=default.bits, help="bits of a quantized value (%(default)s)"
    )
    parser.add_argument(
        "--tokens",
        type=int,
        default=default.tokens,
        help="length of the texts on which the share is fitted (%(default)s)",
    )
    parsers.add_engine(parser)


def _run(arguments: Arguments) -> int:
    from micronet_lm.artifact import read_packed
    from micronet_lm.config import merge_recipe, parse_recipe
    from micronet_lm.corpus import Corpus
    from micronet_lm.runtime.ngram_share import add_ngrams

    keys = {f"ngrams.{key}": getattr(arguments, key) for key in _KEYS}
    config = merge_recipe(parse_recipe({}, origin="ngrams"), keys).ngrams
    assert config is not None  # noqa: S101
    corpus = Corpus.open(arguments.corpus)
    had = read_packed(arguments.target).ngrams
    if had is not None:
        tell(
            f"{arguments.target} has a table of {sum(had.entries):,} n-grams, which is replaced; "
            "what follows compares with no table"
        )
    model, fit = add_ngrams(arguments.target, arguments.out, corpus, config, arguments.engine)
    size = arguments.out.stat().st_size
    table = model.ngrams
    report = {
        "file": str(arguments.out),
        "bytes": size,
        "share": fit.share,
        "table": None
        if table is None
        else {**table.described(), "bytes": -(-table.stored_bits // 8)},
        "before": fit.before,
        "after": fit.after,
        "perplexity": model.card["perplexity"],
    }
    lines = [Text(fit.sentence), Text(f"{arguments.out}: {size:,} bytes")]
    if table is not None:
        lines.insert(1, Text(f"{sum(table.entries):,} n-grams of up to {table.order} words"))
    return print_report(report, lines, as_json=arguments.json)
