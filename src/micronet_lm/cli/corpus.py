"""The verbs `micronet corpus build` and `micronet corpus info`."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rich.console import RenderableType
from rich.table import Table

from micronet_lm.cli.output import print_report, tell
from micronet_lm.cli.own_text import tell_left_out
from micronet_lm.cli.parsers import Arguments, Verbs, add_verb
from micronet_lm.corpus import Corpus, build_corpus
from micronet_lm.corpus.splits import SPLITS, parse_ratio
from micronet_lm.corpus.textfiles import SUFFIXES
from micronet_lm.corpus.tokenizers import TOKENIZERS
from micronet_lm.corpus.wikitext import PUBLISHED

_BUILD_EXAMPLES = """\
examples:
  micronet corpus build --out corpora/python-docs
  micronet corpus build wikitext-2 --out corpora/wikitext-2
  micronet corpus build wikitext-2 --from downloads/wikitext-2-v1.zip --out corpora/wikitext-2
  micronet corpus build 'letters/**/*.txt' --out corpora/letters --max-vocabulary 20000
"""

_INFO_EXAMPLE = """\
example:
  micronet corpus info corpora/wikitext-2 --json
"""


_DIVIDED = {
    "blocks": "blocks of lines in turn",
    "documents": "whole files in turn",
    "names": "documents' names",
}
"""How a report says what `splitting` means."""


def add(verbs: Verbs) -> None:
    """Add the verb `corpus` with its own verbs to the command line."""
    corpus = verbs.add_parser("corpus", help="turn text into a corpus, or look at one")
    actions = corpus.add_subparsers(title="verbs", metavar="VERB", required=True)
    _add_build(actions)
    info = add_verb(
        actions,
        "info",
        _info,
        help="show what a corpus holds",
        description="Show the splits, the vocabulary and the fingerprint of a corpus.",
        epilog=_INFO_EXAMPLE,
    )
    info.add_argument("folder", metavar="DIR", type=Path, help="a folder that build wrote")
    info.add_argument("--top", type=int, default=10, metavar="N", help="frequent words to show")


def _add_build(actions: Verbs) -> None:
    build = add_verb(
        actions,
        "build",
        _build,
        help="turn text into a corpus on disk",
        description="Turn text into ids on disk with a vocabulary sorted by frequency.",
        epilog=_BUILD_EXAMPLES,
    )
    build.add_argument(
        "source",
        metavar="SOURCE",
        nargs="?",
        default="python-docs",
        help="python-docs (the default, needs no download), wikitext-2, wikitext-103, or UTF-8 "
        f"text: a file, a folder (its {' and '.join('*' + s for s in SUFFIXES)} files, "
        "subfolders included) or a pattern",
    )
    build.add_argument("--out", metavar="DIR", type=Path, required=True, help="folder to write")
    build.add_argument(
        "--tokenizer",
        metavar="|".join(TOKENIZERS),
        help="how text becomes words: wikitext splits at white space, word suits ordinary text "
        "(default: what suits the source)",
    )
    build.add_argument(
        "--from",
        dest="from_path",
        metavar="PATH",
        type=Path,
        help="folder, zip or tar of WikiText that is already here; without it, the archive is "
        "downloaded beside DIR",
    )
    build.add_argument(
        "--min-count",
        metavar="N",
        type=int,
        help="rarer words become <unk> (default: 1 for wikitext, 3 for python-docs, else 2)",
    )
    build.add_argument(
        "--max-vocabulary",
        metavar="N",
        type=int,
        help="most entries of the vocabulary, <unk> and <eos> included (default: no limit)",
    )
    build.add_argument(
        "--split",
        metavar="A,B,C",
        help="shares of train, valid and test: of bytes for text files, of documents for "
        "python-docs (default: 0.9,0.05,0.05)",
    )
    build.add_argument("--force", action="store_true", help="replace a corpus that is in DIR")


def _build(arguments: Arguments) -> int:
    if arguments.source not in ("python-docs", *PUBLISHED):
        tell_left_out(arguments.source)
    corpus = build_corpus(
        arguments.source,
        arguments.out,
        tokenizer=arguments.tokenizer,
        from_path=arguments.from_path,
        min_count=arguments.min_count,
        max_vocabulary=arguments.max_vocabulary,
        split=None if arguments.split is None else parse_ratio(arguments.split),
        force=arguments.force,
    )
    return _print(corpus, top=10, as_json=arguments.json)


def _info(arguments: Arguments) -> int:
    return _print(Corpus.open(arguments.folder), top=arguments.top, as_json=arguments.json)


def _print(corpus: Corpus, *, top: int, as_json: bool) -> int:
    facts = corpus.describe(max(top, 0))
    if facts["warning"]:
        tell(f"warning: {facts['warning']}")
    return print_report(facts, _shown(facts), as_json=as_json)


def _shown(facts: Mapping[str, Any]) -> Iterator[RenderableType]:
    lines = {
        "corpus": facts["path"],
        "source": facts["source"],
        "tokenizer": facts["tokenizer"],
        "vocabulary": f"{facts['words']:,} words, ids of type {facts['dtype']}",
        "frequent": "  ".join(entry["word"] for entry in facts["most_frequent"]),
        "fingerprint": facts["fingerprint"],
    }
    for label, text in lines.items():
        yield f"{label:<12}{text}"
    table = Table("split", *(("documents",) if facts["documents"] else ()), "bytes", "tokens")
    table.add_column("<unk>")
    for column in table.columns[1:]:
        column.justify = "right"
    for split in SPLITS:
        row = [facts["text_bytes"][split], facts["tokens"][split]]
        if facts["documents"]:
            row.insert(0, facts["documents"][split])
        share = f"{facts['unknown_share'][split]:.2%}"
        table.add_row(split, *(f"{number:,}" for number in row), share)
    yield table
    if facts["splitting"]:
        yield f"Divided by {_DIVIDED[facts['splitting']]}."
    if facts["warning"]:
        yield f"Warning: {facts['warning']}."
