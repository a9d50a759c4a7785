"""`micronet generate`: text that a packed model writes."""

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from micronet_lm.cli.output import harmless, print_report
from micronet_lm.cli.packed import open_model, warn_of_unknown_words
from micronet_lm.cli.parsers import Arguments, Verbs, add_model, add_number, add_verb, real, whole

if TYPE_CHECKING:
    from micronet_lm.runtime.model import LM

_EXAMPLE = """examples:
  micronet generate "In 1905 ," -m model.safetensors --temperature 0.8 --seed 1
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
    parser.add_argument("text", nargs="?", default="", metavar="TEXT", help="the text to continue")
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
    parser.add_argument(
        "--unknown",
        action="store_true",
        help="also write <unk>, the word for all that the vocabulary lacks",
    )


def _run(arguments: Arguments) -> int:
    lm = open_model(arguments.model, arguments.engine)
    warn_of_unknown_words(lm, arguments.text)
    words = lm.generate(
        arguments.text,
        arguments.max_tokens,
        arguments.temperature,
        arguments.top_k,
        arguments.top_p,
        arguments.seed,
        arguments.unknown,
    )
    tokens = lm.encoder.tokenizer.tokens(arguments.text)
    if not arguments.json:
        return _stream(lm, tokens, words)
    written = list(words)
    report = {
        "prompt": arguments.text,
        "words": written,
        "text": lm.join([*tokens, *written]),
        "seed": arguments.seed,
    }
    return print_report(report, [], as_json=True)


def _stream(lm: "LM", tokens: list[str], words: Iterable[str]) -> int:
    """Print each word as soon as it is written."""
    shown = lm.join(tokens)
    sys.stdout.write(shown)
    for word in words:
        tokens.append(word)
        whole_text = lm.join(tokens)
        sys.stdout.write(harmless(whole_text[len(shown) :], kept="\n\t"))
        sys.stdout.flush()
        shown = whole_text
    sys.stdout.write("\n")
    return 0
