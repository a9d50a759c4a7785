"""`micronet evaluate --keystrokes`: how many keystrokes a packed model's suggestions save."""

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import RenderableType

from micronet_lm.cli import parsers
from micronet_lm.cli.output import make_table, print_report
from micronet_lm.cli.packed import open_model, read_text
from micronet_lm.cli.parsers import Arguments, Parser
from micronet_lm.cli.personal import add_personal, open_personal
from micronet_lm.errors import UsageError
from micronet_lm.progress import bar

SLOTS = 3
WAYS = {"line by line": False, "learning": True}
"""Ways to type a text: forget at each line's end, or remember all of it; and whether they learn."""


def add_keystrokes(parser: Parser) -> None:
    """Add the options of the measurement."""
    parser.add_argument(
        "--keystrokes",
        action="store_true",
        help="type --text with the model's suggestions; measure keystroke savings, not perplexity",
    )
    parsers.add_number(
        parser,
        "--slots",
        type=parsers.whole(1),
        default=SLOTS,
        help="suggestions shown at once, for --keystrokes",
    )
    add_personal(parser)


def run_keystrokes(arguments: Arguments) -> int:
    """Measure and report."""
    from micronet_lm.typist import ModelKeyboard, measure

    parsers.refuse(
        arguments,
        "cannot be given with --keystrokes, which types one text",
        *("--split", "--corpus", "--checkpoint", "--chunk", "--threads"),
        *(f"--{key}" for key in arguments.overrides),
    )
    if arguments.text is None:
        raise UsageError("--keystrokes needs a text to type: give --text FILE")
    text = read_text(arguments.text)
    lm = open_model(arguments.target, arguments.engine)
    personal = open_personal(lm, arguments)
    found = {}
    for way, learning in WAYS.items():
        with bar(f"Typing, {way}", total=len(text)) as advance:
            keyboard = ModelKeyboard(lm, learning=learning)
            found[way] = measure(keyboard, text, slots=arguments.slots, advance=advance).as_json()
    if personal is not None:
        with bar("Typing, personal", total=len(text)) as advance:
            keyboard = ModelKeyboard(lm, personal=personal)
            found["personal"] = measure(
                keyboard, text, slots=arguments.slots, advance=advance
            ).as_json()
        personal.save()
    report = {
        "model": str(arguments.target),
        "engine": lm.engine.name,
        "text": arguments.text,
        "keystrokes": found,
    }
    return print_report(report, _shown(report), as_json=arguments.json)


def _shown(report: Mapping[str, Any]) -> Iterator[RenderableType]:
    ways: dict[str, Any] = report["keystrokes"]
    one = next(iter(ways.values()))
    title = f"{report['model']} ({report['engine']}), {report['text']}"
    table = make_table(f"{one['slots']} suggestions", *ways, title=title)
    rows = {
        "keystroke savings": lambda way: f"{way['savings']:.2f} %",
        "words suggested first": lambda way: f"{way['top_1']:.2f} %",
        "words among the first 3": lambda way: f"{way['top_3']:.2f} %",
        "unknown words": lambda way: f"{way['unknown']:.2f} %",
        "latency, 50th percentile": lambda way: f"{way['latency']['p50']:.3f} ms",
        "latency, 95th percentile": lambda way: f"{way['latency']['p95']:.3f} ms",
        "latency, 99th percentile": lambda way: f"{way['latency']['p99']:.3f} ms",
    }
    for name, value in rows.items():
        table.add_row(name, *map(value, ways.values()))
    yield table
    yield (
        f"{one['characters']:,} characters, {one['words']:,} words; a suggestion is picked for one "
        "keystroke as soon as it is right, and gives the space after it"
    )
