"""`micronet generate`: text that a packed model writes."""

import sys
from collections.abc import Iterable
from itertools import chain

from micronet_lm.cli.output import harmless, print_report
from micronet_lm.cli.packed import open_model, tell_model, text_of, warn_of_unknown_words
from micronet_lm.cli.parsers import (
    Arguments,
    Verbs,
    add_model,
    add_number,
    add_special,
    add_text,
    add_verb,
    real,
    whole,
)

_EXAMPLE = """examples:
  micronet generate "In 1905, he" -m model.safetensors --temperature 0.8 --seed 1
  micronet generate --max-tokens 100 --top-k 40 --top-p 0.95 --json

The same seed gives the same words. A temperature of 0 always takes the likeliest word.
"""


def add(verbs: Verbs) -> None:
    """Register the verb."""
    parser = add_verb(
        verbs,
        "generate",
        _run,
        help="continue a text",
        description="Continue a text word by word; without a text, begin a new line.",
        epilog=_EXAMPLE,
    )
    add_text(parser, "the text to continue")
    add_model(parser)
    add_number(
        parser, "-n", "--max-tokens", type=whole(0), default=50, help="number of tokens to write"
    )
    add_number(
        parser,
        "--temperature",
        type=real("[0, inf)"),
        default=1.0,
        metavar="X",
        help="below 1 likelier words are chosen more often",
    )
    add_number(
        parser,
        "--top-k",
        type=whole(0),
        default=0,
        metavar="K",
        help="only the K likeliest words; 0 means all",
    )
    add_number(
        parser,
        "--top-p",
        type=real("(0, 1]"),
        default=1.0,
        metavar="P",
        help="only the likeliest words that make up this probability",
    )
    add_number(parser, "--seed", type=whole(0), default=0, help="seed of the random choices")
    add_special(parser)


def _run(arguments: Arguments) -> int:
    text = text_of(arguments.text)
    lm = open_model(arguments.model, arguments.engine)
    warn_of_unknown_words(lm, text)
    pieces = lm.generate(
        text,
        arguments.max_tokens,
        arguments.temperature,
        arguments.top_k,
        arguments.top_p,
        arguments.seed,
        arguments.special,
    )
    tell_model(lm, arguments)
    if arguments.special:  # tokens stand apart
        pieces = (f" {token}" for token in pieces)
    if not arguments.json:
        return _stream(chain([text], pieces))
    written = list(pieces)
    report = {
        "prompt": text,
        "pieces": written,
        "text": text + "".join(written),
        "seed": arguments.seed,
    }
    return print_report(report, [], as_json=True)


def _stream(pieces: Iterable[str]) -> int:
    """Print each piece of text as soon as it is written."""
    for piece in pieces:
        sys.stdout.write(harmless(piece, kept="\n\t"))
        sys.stdout.flush()
    sys.stdout.write("\n")
    return 0
