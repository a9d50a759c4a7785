"""`micronet inspect`: what a packed file or a run holds, and where its bytes are."""

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from micronet_lm.cli.output import print_json
from micronet_lm.cli.parsers import add_checkpoint, add_parser, refuse_options
from micronet_lm.cli.terminal import harmless
from micronet_lm.errors import ArtifactError

if TYPE_CHECKING:
    from micronet_lm.artifact.anatomy import Piece

_EXAMPLE = """examples:
  micronet inspect model.safetensors
  micronet inspect runs/demo --json

A run is shown as it would be packed.
"""


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the verb."""
    parser = add_parser(
        verbs,
        "inspect",
        help="show what a packed file or a run holds",
        description=(
            "Show a packed file's card, its tensors with shape, bits, density and storage, its "
            "size by part, and what is left in 32 bits with its cost."
        ),
        epilog=_EXAMPLE,
    )
    parser.add_argument("target", type=Path, metavar="TARGET", help="a packed file or a run")
    add_checkpoint(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from micronet_lm.artifact import open_packed
    from micronet_lm.artifact.anatomy import by_part, left_in_fp32, pieces
    from micronet_lm.artifact.packed_target import part_bytes
    from micronet_lm.artifact.packing import model_of_run

    file: dict[str, int] = {}
    if arguments.target.is_dir():
        model = model_of_run(arguments.target, None, arguments.checkpoint)
    else:
        refuse_options(arguments, "is for runs; a packed file holds one model", "--checkpoint")
        if not arguments.target.exists():
            raise ArtifactError(
                f"there is neither a packed file nor a run at {arguments.target}; 'micronet train' "
                "makes a run, and 'micronet pack' a file of it"
            )
        packed = open_packed(arguments.target)
        model, container = packed.model, packed.container
        words, weights = container.parts["vocabulary"].bytes, part_bytes(container)
        file = {
            "bytes": container.bytes,
            "header": container.bytes - words - weights,
            "vocabulary": words,
            "weights": weights,
        }
    listed = pieces(model)
    report: dict[str, Any] = {
        "target": str(arguments.target),
        "file": file or None,
        "model": model.shape.model_dump(mode="json", exclude={"dropout"}),
        "cache": vars(model.cache) if model.cache else None,
        "tokenizer": model.tokenizer or None,
        "activation_bits": model.activation_bits,
        "bits": sum(piece.stored for piece in listed),
        "tensors": [piece.as_json() for piece in listed],
        "parts": by_part(listed),
        "fp32": left_in_fp32(listed),
        "card": dict(model.card),
    }
    if arguments.json:
        print_json(report)
        return 0
    console = Console(highlight=False, soft_wrap=True)
    _print_card(console, report)
    console.print(_tensors(listed))
    total = report["bits"]
    console.print(_shares("size by part", report["parts"], total))
    console.print(_shares("left in 32 bits", report["fp32"], total))
    if file:
        console.print(
            f"file of [bold]{file['bytes']:,}[/bold] bytes: {file['weights']:,} for the model, "
            f"{file['vocabulary']:,} for its words, {file['header']:,} for the header with the card"
        )
    return 0


def _print_card(console: Console, report: Mapping[str, Any]) -> None:
    cache = report["cache"]
    lines = {
        "target": report["target"],
        "words": f"{report['model']['vocabulary']:,}",
        "cache": f"{cache['size']:,}, theta {cache['theta']:.5f}, lambda {cache['lam']:.4f}, "
        f"ramp {cache['ramp']:,}"
        if cache
        else "none",
        "activation bits": report["activation_bits"] or "32",
    }
    for key, value in {**lines, **report["card"]}.items():
        plain = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        console.print(harmless(f"{key}: {plain}"), markup=False)


def _tensors(listed: "list[Piece]") -> Table:
    table = Table(box=None, header_style="bold", title="tensors", padding=(0, 1, 0, 0))
    for column in ("name", "shape", "bits", "density", "form", "bytes"):
        left = column in {"name", "form"}
        table.add_column(column, justify="left" if left else "right", no_wrap=True)
    for piece in listed:
        table.add_row(
            piece.name,
            " × ".join(map(str, piece.shape)),
            str(piece.bits),
            f"{piece.density:.1%}",
            "sparse" if piece.sparse else "dense",
            f"{-(-piece.stored // 8):,}",
        )
    return table


def _shares(title: str, sums: Mapping[str, int], total: int) -> Table:
    table = Table(box=None, header_style="bold", title=title)
    for column in ("part", "bytes", "share"):
        table.add_column(column, justify="left" if column == "part" else "right")
    for name, bits in sums.items():
        table.add_row(name, f"{bits / 8:,.1f}", f"{bits / total:.1%}")
    table.add_row("all", f"{sum(sums.values()) / 8:,.1f}", f"{sum(sums.values()) / total:.1%}")
    return table
