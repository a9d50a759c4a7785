"""Parsers of the verbs: the options that several of them have, and how options are refused."""

import argparse
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn, TypeAlias, TypeVar

from micronet_lm.corpus.splits import SPLITS
from micronet_lm.errors import UsageError, nearest

Arguments: TypeAlias = argparse.Namespace
Parser: TypeAlias = argparse.ArgumentParser
Verbs: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
T = TypeVar("T")

DEFAULT = Path("model.safetensors")
"""The packed file that is used where none is named; the demo's where this one does not exist."""


_CHOICE = re.compile(
    r"(?P<name>.*): invalid choice: '(?P<word>.*)' \(choose from (?P<choices>.*)\)", re.DOTALL
)
"""How argparse refuses a word that is not among the choices."""


class OneSentenceParser(argparse.ArgumentParser):
    """A parser whose errors are one sentence, like all others."""

    def error(self, message: str) -> NoReturn:
        """Raise what argparse would print with its usage."""
        plain = message.removeprefix("argument ").replace(": must", " must", 1)
        if found := _CHOICE.fullmatch(plain):
            name, word, choices = found["name"], found["word"], found["choices"].split(", ")
            hint = nearest(word, (choice.strip("'") for choice in choices))
            if name == "VERB":
                plain = f"there is no verb '{word}'{hint}"
            else:
                plain = f"{name} must be one of {', '.join(choices)}, got '{word}'{hint}"
        raise UsageError(f"{plain}; see {self.prog} --help")


def refuse(arguments: Arguments, why: str, *options: str) -> None:
    """Refuse options, or keys of a recipe, that were given and would be ignored.

    `why` completes the sentence that begins with the option's name.
    """
    for option in options:
        if option in arguments.given:
            raise UsageError(f"{option} {why}")


def refuse_unknown(parser: Parser, word: str) -> NoReturn:
    """Refuse a word that a verb's parser does not know, with the option that is most like it."""
    options = [option for action in parser._actions for option in action.option_strings]
    if word.startswith("-"):
        name = word.partition("=")[0]
        hint = nearest(name, options) if len(name) > len("--n") else ""  # one letter is like any
        raise UsageError(f"'{word}' is not an option here{hint}; see {parser.prog} --help")
    raise UsageError(
        f"'{word}' is one word too many (put a name with spaces, or a pattern such as '*.txt', "
        f"into quotes); see {parser.prog} --help"
    )


def add_verb(
    verbs: Verbs,
    name: str,
    run: Callable[[Arguments], int],
    *,
    help: str,  # noqa: A002
    description: str,
    epilog: str,
    usage: str | None = None,
    keys: bool = False,
) -> Parser:
    """Add a verb with a short help, a description, and an epilog that gives an example.

    Every verb has `--json`. With `keys` it also takes the keys of a recipe: `--section.key VALUE`.
    """
    parser = verbs.add_parser(
        name,
        help=help,
        description=description,
        epilog=epilog,
        usage=usage,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of text")
    parser.set_defaults(run=run, parser=parser, **({"overrides": {}} if keys else {}))
    return parser


def whole(least: int) -> Callable[[str], int]:
    """Return the type of an option that takes a whole number."""

    def parse(word: str) -> int:
        try:
            number = int(word)
        except ValueError:
            raise argparse.ArgumentTypeError(f"must be a whole number, got {word!r}") from None
        if number < least:
            raise argparse.ArgumentTypeError(f"must be at least {least}, got {number}")
        return number

    return parse


def real(interval: str) -> Callable[[str], float]:
    """Return the type of an option that takes a number of an interval, such as `[0, 1)`."""
    low, high = (float(end) for end in interval[1:-1].split(","))

    def parse(word: str) -> float:
        try:
            number = float(word)
        except ValueError:
            raise argparse.ArgumentTypeError(f"must be a number, got {word!r}") from None
        inside = low < number < high
        at_an_end = (number == low and interval[0] == "[") or (
            number == high and interval[-1] == "]"
        )
        if not (inside or at_an_end):
            raise argparse.ArgumentTypeError(f"must be in {interval}, got {word}")
        return number

    return parse


def listed(kind: Callable[[str], T]) -> Callable[[str], tuple[T, ...]]:
    """Return the type of an option that takes values of a kind with commas between them."""

    def parse(words: str) -> tuple[T, ...]:
        try:
            return tuple(kind(word) for word in words.split(","))
        except argparse.ArgumentTypeError as error:
            raise argparse.ArgumentTypeError(
                f"must be values with commas between them, each of which {error}"
            ) from None

    return parse


def add_number(
    parser: Parser,
    *names: str,
    help: str,  # noqa: A002
    type: Callable[[str], float],  # noqa: A002
    default: float | None = None,
    metavar: str = "N",
) -> None:
    """Add an option that takes a number; its help names the default."""
    told = "" if default is None else " (default: %(default)s)"
    parser.add_argument(*names, type=type, default=default, metavar=metavar, help=help + told)


def add_choice(
    parser: Parser,
    name: str,
    choices: Sequence[str],
    help: str,  # noqa: A002
    *,
    default: str | None = None,
) -> None:
    """Add an option that takes one of several words; the first where no default is named."""
    parser.add_argument(
        name,
        choices=choices,
        default=default or choices[0],
        help=f"{help} (default: %(default)s)",
    )


def add_folder(parser: Parser, name: str, help: str, *, metavar: str = "DIR") -> None:  # noqa: A002
    """Add an option that takes a folder or a file."""
    parser.add_argument(name, type=Path, metavar=metavar, help=help)


def add_run(parser: Parser, help: str = "folder of a training run") -> None:  # noqa: A002
    """Add the run that a verb works on."""
    parser.add_argument("target", type=Path, metavar="RUN", help=help)


def add_corpus(parser: Parser, help: str = "the run's corpus, if it was moved") -> None:  # noqa: A002
    """Add the folder of a corpus."""
    add_folder(parser, "--corpus", help)


def add_wikitext(parser: Parser) -> None:
    """Add the place of an archive that need not be fetched."""
    parser.add_argument(
        "--from",
        type=Path,
        metavar="PATH",
        dest="from_path",
        help="folder, zip or tar of WikiText that is already here",
    )


def add_checkpoint(parser: Parser) -> None:
    """Add the choice between a run's checkpoints."""
    add_choice(parser, "--checkpoint", ["best", "last"], "which of the run's checkpoints")


def add_split(parser: Parser, what: str = "split to evaluate") -> None:
    """Add the choice of a corpus's split."""
    add_choice(parser, "--split", SPLITS, what, default="valid")


def add_model(parser: Parser) -> None:
    """Add the choice of a packed file and of its engine."""
    parser.add_argument(
        *("-m", "--model"),
        type=Path,
        metavar="MODEL",
        help="packed file, folder of a run or pipeline, or a model that ships ('micronet models'; "
        f"default: {DEFAULT} if it exists here, else demo)",
    )
    add_engine(parser)


def add_text(parser: Parser, help: str) -> None:  # noqa: A002
    """Add the text that a model reads."""
    more = "; words need no quotes, - is standard input"
    parser.add_argument("text", nargs="*", metavar="TEXT", help=help + more)


def add_special(parser: Parser) -> None:
    """Add the choice of the model's own tokens."""
    parser.add_argument(
        "--special",
        action="store_true",
        help="the model's own tokens: <unk>, <eos> and spacing marks too",
    )


def add_engine(parser: Parser) -> None:
    """Add the choice of an engine."""
    names = ["auto", "native", "numpy"]
    add_choice(parser, "--engine", names, "what computes; auto takes native where it is built")


def add_threads(parser: Parser, what: str = "threads; they change only the speed") -> None:
    """Add the number of threads."""
    add_number(parser, "--threads", type=whole(1), default=1, help=what)
