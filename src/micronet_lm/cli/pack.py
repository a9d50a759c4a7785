"""`micronet pack`: one small file of a run."""

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType
from rich.text import Text

from micronet_lm.cli import parsers
from micronet_lm.cli.output import print_report
from micronet_lm.cli.parsers import Arguments, Verbs
from micronet_lm.config import PackConfig
from micronet_lm.errors import UsageError
from micronet_lm.runs import is_run

if TYPE_CHECKING:
    from micronet_lm.artifact import PackedModel

_EXAMPLE = """examples:
  micronet pack runs/train/demo -o demo.safetensors
  micronet pack runs/train/demo -o demo.safetensors --name "Python's documentation" --measure test
  micronet pack demo.safetensors -o small.safetensors --coded   # the same model in a smaller file
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
    parsers.add_run(parser, "folder of a run; with --coded or --plain also a packed file")
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
    form = parser.add_mutually_exclusive_group()
    form.add_argument(
        "--coded",
        action="store_true",
        help="integers and words as prefix codes: a smaller file, which takes longer to open",
    )
    form.add_argument(
        "--plain", action="store_true", help="no prefix codes, whatever the recipe says"
    )
    parsers.add_engine(parser)


def _run(arguments: Arguments) -> int:
    from micronet_lm.artifact.packing import pack_run
    from micronet_lm.runtime.evaluation import packed_perplexities
    from micronet_lm.runtime.places import packed_in

    run, out = arguments.target, arguments.out
    if out.is_dir():
        raise UsageError(
            f"-o must be a file, got the folder {out}: choose {out / parsers.DEFAULT.name}"
        )
    begin = time.perf_counter()
    if run.is_file():
        return _pack_again(arguments)
    if not is_run(run) and (made := packed_in(run)):
        raise UsageError(f"{run} is packed already: its file is {made}")
    form = PackConfig(coded=arguments.coded) if arguments.coded or arguments.plain else None
    read: dict[str, Any] = {"corpus": arguments.corpus, "checkpoint": arguments.checkpoint}
    measured = (
        packed_perplexities(run, arguments.measure, arguments.engine, **read)
        if arguments.measure
        else {}
    )
    model = pack_run(run, out, **read, name=arguments.name, perplexities=measured, form=form)
    report = {
        "file": str(out),
        "bytes": out.stat().st_size,
        "seconds": time.perf_counter() - begin,
        "card": model.card,
    }
    return print_report(report, _shown(out, model), as_json=arguments.json)


def _pack_again(arguments: Arguments) -> int:
    """Write a packed file in another form."""
    from micronet_lm.artifact import read_packed, write_packed

    if not (arguments.coded or arguments.plain):
        raise UsageError(
            f"{arguments.target} is a packed file: give --coded or --plain to write it in that form"
        )
    given = ("--checkpoint", "--name", "--corpus", "--measure", "--engine")
    parsers.refuse(arguments, "is for runs; a packed file keeps its card", *given)
    model = replace(read_packed(arguments.target), coded=arguments.coded)
    write_packed(arguments.out, model)
    before, after = (path.stat().st_size for path in (arguments.target, arguments.out))
    report = {"file": str(arguments.out), "bytes": after, "bytes_before": before}
    line = f"{arguments.out}: {after:,} bytes; {arguments.target} has {before:,}"
    return print_report(report, [Text(line)], as_json=arguments.json)


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
