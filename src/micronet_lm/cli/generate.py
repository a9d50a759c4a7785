"""`micronet generate`: text that a packed model writes."""

import argparse
import sys

from micronet_lm.cli.output import print_json
from micronet_lm.cli.packed import add_model, check_count, opened, warn_of_unknown_words
from micronet_lm.cli.parsers import add_parser
from micronet_lm.cli.terminal import harmless
from micronet_lm.errors import UsageError

_EXAMPLE = """examples:
  micronet generate "In 1905 ," -m model.safetensors --temperature 0.8 --seed 1
  micronet generate --max-tokens 100 --top-k 40 --top-p 0.95 --json

The same seed gives the same words. A temperature of 0 always takes the likeliest word.
"""


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the verb."""
    parser = add_parser(
        verbs,
        "generate",
        help="write on after a text",
        description="Write on after a text, word by word; after a line's end where there is none.",
        epilog=_EXAMPLE,
    )
    parser.add_argument("text", nargs="?", default="", metavar="TEXT", help="how it begins")
    add_model(parser)
    parser.add_argument(
        *("-n", "--max-tokens"),
        type=int,
        default=50,
        metavar="N",
        help="how many tokens (default: %(default)s)",
    )
    parser.add_argument(
        "--temperature",
        type=float,
        default=1.0,
        metavar="X",
        help="below 1 likelier words are chosen more often (default: %(default)s)",
    )
    parser.add_argument(
        "--top-k", type=int, default=0, metavar="K", help="only the K likeliest words; 0 is all"
    )
    parser.add_argument(
        "--top-p",
        type=float,
        default=1.0,
        metavar="P",
        help="only the likeliest words that make up this probability (default: %(default)s)",
    )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="what chance begins with (default: 0)"
    )
    parser.add_argument(
        "--special",
        action="store_true",
        help="write the model's own tokens: <unk>, <eos> and spacing marks too",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    check_count("--max-tokens", arguments.max_tokens, 0)
    check_count("--top-k", arguments.top_k, 0)
    check_count("--seed", arguments.seed, 0)
    if not 0 <= arguments.temperature < float("inf"):
        raise UsageError(f"--temperature {arguments.temperature} is not a number of 0 or more")
    if not 0 < arguments.top_p <= 1:
        raise UsageError(f"--top-p {arguments.top_p} is not above 0 and at most 1")
    lm = opened(arguments.model, arguments.engine)
    warn_of_unknown_words(lm, arguments.text)
    pieces = lm.generate(
        arguments.text,
        arguments.max_tokens,
        arguments.temperature,
        arguments.top_k,
        arguments.top_p,
        arguments.seed,
        arguments.special,
    )
    if arguments.special:  # tokens stand apart
        pieces = (f" {token}" for token in pieces)
    if arguments.json:
        written = list(pieces)
        text = arguments.text + "".join(written)
        print_json(
            {"prompt": arguments.text, "pieces": written, "text": text, "seed": arguments.seed}
        )
        return 0
    sys.stdout.write(harmless(arguments.text, kept="\n\t"))
    for piece in pieces:  # each as soon as it is there
        sys.stdout.write(harmless(piece, kept="\n\t"))
        sys.stdout.flush()
    sys.stdout.write("\n")
    return 0
