"""`micronet pack`: one small file of a run."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType
from rich.text import Text

from micronet_lm.cli import parsers
from micronet_lm.cli.output import print_report
from micronet_lm.cli.parsers import Arguments, Verbs
from micronet_lm.errors import UsageError

if TYPE_CHECKING:
    from micronet_lm.artifact import PackedModel

_EXAMPLE = """examples:
  micronet pack runs/train/demo -o demo.safetensors
  micronet pack runs/train/demo -o demo.safetensors --name "Python's documentation" --measure test
"""


def add(verbs: Verbs) -> None:
    """Register the verb."""
    parser = parsers.add_verb(
        verbs,
        "pack",
        _run,
        help="pack a run into one small file that runs anywhere",
        description=(
            "Pack a run's model into one file: integers at their true width, zeros as a bit mask, "
            "the vocabulary, and a card that says what the model is and what it costs. "
            "docs/format.md describes the file."
        ),
        epilog=_EXAMPLE,
    )
    parsers.add_run(parser, "folder of a run")
    parser.add_argument(
        *("-o", "--out"),
        type=Path,
        default=parsers.DEFAULT,
        metavar="FILE",
        help="the file to write (default: %(default)s)",
    )
    parsers.add_checkpoint(parser)
    parser.add_argument("--name", help="the model's name on its card (default: the folder's)")
    parsers.add_corpus(parser)
    parser.add_argument(
        "--measure",
        action="append",
        choices=["valid", "test"],
        default=[],
        help="measure the packed model's perplexity on this split for its card; may be repeated",
    )
    parsers.add_engine(parser)


def _run(arguments: Arguments) -> int:
    from micronet_lm.artifact.packing import pack_run
    from micronet_lm.runtime.evaluation import packed_perplexities

    run, out = arguments.target, arguments.out
    if out.is_dir():
        raise UsageError(
            f"-o must be a file, got the folder {out}: choose {out / parsers.DEFAULT.name}"
        )
    begin = time.perf_counter()
    read: dict[str, Any] = {"corpus": arguments.corpus, "checkpoint": arguments.checkpoint}
    measured = (
        packed_perplexities(run, arguments.measure, arguments.engine, **read)
        if arguments.measure
        else {}
    )
    model = pack_run(run, out, **read, name=arguments.name, perplexities=measured)
    report = {
        "file": str(out),
        "bytes": out.stat().st_size,
        "seconds": time.perf_counter() - begin,
        "card": model.card,
    }
    return print_report(report, _shown(out, model), as_json=arguments.json)


def _shown(out: Path, model: "PackedModel") -> Iterator[RenderableType]:
    storage = model.card["accounting"]["challenge"]["storage"]
    yield Text.assemble(
        f"{out}: ",
        (f"{out.stat().st_size:,}", "bold"),
        f" bytes; the model takes {storage * 4:,.0f} of them, its {len(model.words):,} words and "
        "the card the rest",
    )
    for split, value in model.card["perplexity"].items():
        yield f"perplexity on {split}: {value:,.2f}"
