"""`micronet predict`: the likeliest next words."""

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from micronet_lm.cli.output import harmless, make_table, print_report
from micronet_lm.cli.packed import (
    open_model,
    shortened,
    tell_model,
    text_of,
    warn_of_unknown_words,
)
from micronet_lm.cli.parsers import (
    Arguments,
    Verbs,
    add_model,
    add_number,
    add_special,
    add_text,
    add_verb,
    whole,
)
from micronet_lm.cli.personal import add_personal, open_personal

_EXAMPLE = """examples:
  micronet predict "the cat sat on the" -m model.safetensors
  micronet predict the cat sat on the --prefix ma -k 3 --json
  tail -n 1 letter.txt | micronet predict -
  micronet predict "my own" --personal me.personal      # which learns the text, too

An empty text asks for the first word of a line; white space around a text does not count. A word's
probability is that of all tokens that look like it on a screen.
"""


def add(verbs: Verbs) -> None:
    """Register the verb."""
    parser = add_verb(
        verbs,
        "predict",
        _run,
        help="show the likeliest next words",
        description="Show the likeliest next words after a text, with their probabilities.",
        epilog=_EXAMPLE,
    )
    add_text(parser, "the text so far")
    add_model(parser)
    add_number(parser, "-k", type=whole(1), default=5, metavar="K", help="number of words")
    parser.add_argument("--prefix", metavar="AB", help="only words that begin with these letters")
    add_special(parser)
    add_personal(parser)


def _run(arguments: Arguments) -> int:
    text = text_of(arguments.text)
    lm = open_model(arguments.model, arguments.engine)
    warn_of_unknown_words(lm, text)
    personal = open_personal(lm, arguments)
    asked = arguments.k, arguments.special, personal
    if arguments.prefix is None:
        found = lm.top_k(text, *asked)
    else:
        found = lm.complete(text, arguments.prefix, *asked)
    if personal is not None:
        personal.learn(text)
    tell_model(lm, arguments)
    words = [{"word": word, "probability": chance} for word, chance in found]
    report = {"text": text, "prefix": arguments.prefix, "words": words}
    return print_report(report, _shown(found, arguments.prefix), as_json=arguments.json)


def _shown(found: Sequence[tuple[str, float]], prefix: str | None) -> Iterator[RenderableType]:
    if not found:
        yield f"no word of the vocabulary begins with {shortened(prefix or '')}"
        return
    table = make_table("word", "probability")
    for word, chance in found:
        table.add_row(Text(harmless(word)), f"{100 * chance:.2f} %")
    yield table
