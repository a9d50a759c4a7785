"""How the parser of a verb is made: the same for all of them."""

import argparse
from typing import NoReturn

from micronet_lm.errors import UsageError


class Parser(argparse.ArgumentParser):
    """A parser whose complaints are one sentence, like all others."""

    def error(self, message: str) -> NoReturn:
        """Raise what argparse would print with its usage."""
        raise UsageError(f"{message}; see {self.prog} --help")


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
        choices=["best", "last"],
        default="best",
        help="which of the run's checkpoints (default: %(default)s)",
    )
