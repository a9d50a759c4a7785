"""`micronet inspect`: what a packed file or a run holds, and where its bytes are."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from micronet_lm.cli.output import harmless, make_table, print_report
from micronet_lm.cli.packed import pipeline_file
from micronet_lm.cli.parsers import Arguments, Verbs, add_checkpoint, add_verb, refuse
from micronet_lm.errors import ArtifactError

_EXAMPLE = """examples:
  micronet inspect model.safetensors
  micronet inspect runs/demo --json

A run is shown as it would be packed.
"""


def add(verbs: Verbs) -> None:
    """Register the verb."""
    parser = add_verb(
        verbs,
        "inspect",
        _run,
        help="show what a packed file or a run holds",
        description=(
            "Show a packed file's card, its tensors with shape, bits, density and storage, its "
            "size by part, and the cost of what stays in 32 bits."
        ),
        epilog=_EXAMPLE,
    )
    parser.add_argument(
        "target",
        type=Path,
        metavar="TARGET",
        help="a packed file, a run, or a pipeline's folder for its packed file",
    )
    add_checkpoint(parser)


def _run(arguments: Arguments) -> int:
    from micronet_lm.artifact import open_packed
    from micronet_lm.artifact.anatomy import describe_model, file_bytes
    from micronet_lm.artifact.packing import model_of_run

    target, file = pipeline_file(arguments.target), None
    if target.is_dir():
        model = model_of_run(target, None, arguments.checkpoint)
    else:
        refuse(arguments, "is for runs; a packed file holds one model", "--checkpoint")
        if not target.exists():
            raise ArtifactError(
                f"there is neither a packed file nor a run at {target}; 'micronet train' makes a "
                "run, and 'micronet pack' makes a file from it"
            )
        packed = open_packed(target)
        model, file = packed.model, file_bytes(packed.container)
        file["checksum"] = packed.container.checked
    report = {"target": str(target), "file": file, **describe_model(model)}
    return print_report(report, _shown(report), as_json=arguments.json)


def _shown(report: Mapping[str, Any]) -> Iterator[RenderableType]:
    yield from _card(report)
    yield _tensors(report["tensors"])
    yield _shares("size by part", report["parts"], report["bits"])
    left = {"scales" if part == "steps" else part: bits for part, bits in report["fp32"].items()}
    yield _shares("left in 32 bits", left, report["bits"])
    if file := report["file"]:
        spelled = f"{file['spelling']:,} to spell others, " if file["spelling"] else ""
        yield Text.from_markup(
            f"file of [bold]{file['bytes']:,}[/bold] bytes: {file['weights']:,} for the model, "
            f"{file['vocabulary']:,} for its words, {spelled}{file['header']:,} for the header "
            "with the card"
        )


def _card(report: Mapping[str, Any]) -> Iterator[str]:
    cache, table = report["cache"], report["ngrams"]
    lines = {
        "target": report["target"],
        "words": f"{report['model']['vocabulary']:,}",
        "cache": f"{cache['size']:,}, theta {cache['theta']:.5f}, lambda {cache['lam']:.4f}, "
        f"ramp {cache['ramp']:,}" + (f", fade {cache['fade']:,}" if cache["fade"] else "")
        if cache
        else "none",
        "n-grams": f"{sum(table['entries']):,} of up to {table['order']} words, "
        f"{table['bits']} bits, share {table['share']:.3f}"
        if table
        else "none",
        "activation bits": report["activation_bits"] or "32",
    }
    for key, value in {**lines, **report["card"]}.items():
        plain = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        yield harmless(f"{key}: {plain}")


def _tensors(tensors: list[Mapping[str, Any]]) -> Table:
    table = make_table(
        "name", "shape", "bits", "density", "form", "bytes", title="tensors", left=True
    )
    table.padding = (0, 1, 0, 0)
    table.columns[4].justify = "left"
    for piece in tensors:
        table.add_row(
            piece["name"],
            " × ".join(map(str, piece["shape"])),
            str(piece["bits"]),
            f"{piece['density']:.1%}",
            "sparse" if piece["sparse"] else "dense",
            f"{-(-piece['stored'] // 8):,}",
        )
    return table


def _shares(title: str, sums: Mapping[str, int], total: int) -> Table:
    table = make_table("part", "bytes", "share", title=title, left=True)
    for name, bits in {**sums, "all": sum(sums.values())}.items():
        table.add_row(name, f"{bits / 8:,.1f}", f"{bits / total:.1%}")
    return table
