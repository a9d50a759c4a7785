"""How the parser of a verb is made: the same for all of them."""

import argparse


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
