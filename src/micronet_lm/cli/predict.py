"""`micronet predict`: the likeliest next words."""

import argparse

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from micronet_lm.cli.output import print_json
from micronet_lm.cli.packed import add_model, check_count, opened, warn_of_unknown_words
from micronet_lm.cli.parsers import add_parser
from micronet_lm.cli.terminal import harmless

_EXAMPLE = """examples:
  micronet predict "the cat sat on the" -m model.safetensors
  micronet predict "the cat sat on the" --prefix ma -k 3 --json

An empty text asks for the first word of a line. A model with a cache gives a share of the
probability, its λ, to words of the text so far, also where the text has only a few.
"""


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the verb."""
    parser = add_parser(
        verbs,
        "predict",
        help="tell the likeliest next words",
        description="Tell the likeliest next words after a text, with their probabilities.",
        epilog=_EXAMPLE,
    )
    parser.add_argument("text", nargs="?", default="", metavar="TEXT", help="what came before")
    add_model(parser)
    parser.add_argument("-k", type=int, default=5, help="how many words (default: %(default)s)")
    parser.add_argument("--prefix", metavar="AB", help="only words that begin so")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    check_count("-k", arguments.k)
    lm = opened(arguments.model, arguments.engine)
    warn_of_unknown_words(lm, arguments.text)
    if arguments.prefix is None:
        found = lm.top_k(arguments.text, arguments.k)
    else:
        found = lm.complete(arguments.text, arguments.prefix, arguments.k)
    if arguments.json:
        words = [{"word": word, "probability": chance} for word, chance in found]
        report = {"text": arguments.text, "prefix": arguments.prefix, "words": words}
        print_json(report)
        return 0
    console = Console(highlight=False)
    if not found:
        console.print(f"no word of the vocabulary begins with {arguments.prefix!r}", markup=False)
        return 0
    table = Table(box=None, header_style="bold")
    table.add_column("word")
    table.add_column("probability", justify="right")
    for word, chance in found:
        table.add_row(escape(harmless(word)), f"{chance:.4%}")
    console.print(table)
    return 0
