"""How the parser of a verb is made: the same for all of them."""

import argparse
from typing import Any, NoReturn

from micronet_lm.errors import UsageError


class Parser(argparse.ArgumentParser):
    """A parser whose complaints are one sentence, like all others."""

    def error(self, message: str) -> NoReturn:
        """Raise what argparse would print with its usage."""
        raise UsageError(f"{message}; see {self.prog} --help")


class Noted(argparse.Action):
    """An option whose having been given is noted, so that it is never ignored in silence."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        """Store the value, and that it was given."""
        setattr(namespace, self.dest, values)
        namespace.noted = {*getattr(namespace, "noted", ()), option_string}


def refuse_options(arguments: argparse.Namespace, why: str, *options: str) -> None:
    """Refuse `Noted` options that mean nothing here; `why` completes the sentence."""
    for option in options:
        if option in getattr(arguments, "noted", ()):
            raise UsageError(f"{option} {why}")


def add_parser(
    verbs: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    *,
    help: str,  # noqa: A002
    description: str,
    epilog: str,
    usage: str | None = None,
) -> argparse.ArgumentParser:
    """Add a verb with a short help, a description, and an epilog that gives an example."""
    return verbs.add_parser(
        name,
        help=help,
        description=description,
        epilog=epilog,
        usage=usage,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def add_checkpoint(parser: argparse.ArgumentParser) -> None:
    """Add the choice between a run's checkpoints."""
    parser.add_argument(
        "--checkpoint",
        action=Noted,
        choices=["best", "last"],
        default="best",
        help="which of the run's checkpoints (default: %(default)s)",
    )
