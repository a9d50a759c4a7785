"""The report of a pipeline's folder: from its records and what its stages have left."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from micronet_lm.accounting import Account, count
from micronet_lm.accounting.figure import account_figure
from micronet_lm.accounting.run_target import counted_shares
from micronet_lm.artifact import read_packed
from micronet_lm.artifact.packed_target import target_of
from micronet_lm.compression.searched_run import confirmation_sentence
from micronet_lm.corpus import Corpus
from micronet_lm.corpus.splits import perplexity_disagreement, unknown_disagreement
from micronet_lm.errors import RunError
from micronet_lm.pipeline.stages import MODELS
from micronet_lm.pipeline.workspace import RECORDS
from micronet_lm.report.document import Document, Numbers, Picture, Section, Table, Text
from micronet_lm.report.drawings import svg_of, trade
from micronet_lm.report.parts import (
    accounting_section,
    commands_section,
    curves_section,
    environment_section,
    million,
    read_json,
    samples_section,
    sensitivity_section,
)
from micronet_lm.report.quantities import duration
from micronet_lm.report.samples import write_samples
from micronet_lm.report.stack import Layer, stack_svg
from micronet_lm.runs.files import PACKED, SEARCH

SETUP = "pipeline.json"
"""What a pipeline was started with, in its folder."""

_LABELS = {
    "teacher": ("Teacher", "compression"),
    "student": ("Core LM", "core"),
    "prune": ("Prune", "compression"),
    "search-cache": ("Cache search", "search"),
    "quantize": ("Quantize", "compression"),
}


def is_pipeline(folder: Path) -> bool:
    """Whether a folder is that of a pipeline."""
    return (folder / RECORDS).is_dir()


def pipeline_document(root: Path) -> Document:
    """Report a pipeline that has come to its account."""
    records = {
        record["stage"]: record
        for record in (read_json(file) for file in sorted((root / RECORDS).glob("*.json")))
    }
    if "account" not in records or not records["account"]["complete"]:
        raise RunError(f"{root} has not come to its account yet; finish it with micronet run")
    rows = read_json(root / "account" / "account.json")["stages"]
    setup = read_json(root / SETUP) if (root / SETUP).is_file() else {}
    corpus = Corpus.open(root / "corpus")
    packed = root / "packed" / PACKED
    sections = [
        _summary(rows, corpus),
        _stack(rows, records),
        _table(rows, records),
        curves_section(_trained(root, records)),
        sensitivity_section(root / "sensitivity"),
        _search(root / "searched"),
        accounting_section(
            rows[-1]["rows"],
            account_figure(_account(packed, corpus)),
            "The packed model by the rules of the paper's authors, in 32-bit parameters and "
            "operations a token.",
        ),
        _trade(rows),
        samples_section(write_samples(packed, corpus)),
        environment_section(),
        commands_section(_commands(setup)),
    ]
    name = _plain_path(setup.get("recipe", root.name))
    manifest = corpus.manifest
    return Document(
        title=f"{name}: from text to a packed model",
        subtitle=f"{_plain_path(manifest.source)}, {manifest.tokens['train']:,} training tokens, "
        f"{manifest.words:,} words",
        sections=[section for section in sections if section is not None],
    )


def _summary(rows: list[dict[str, Any]], corpus: Corpus) -> Section:
    last, manifest = rows[-1], corpus.manifest
    warnings = (
        unknown_disagreement(manifest.tokens, manifest.unknown),
        perplexity_disagreement(last["validation_perplexity"], last["test_perplexity"]),
    )
    dense = next(row for row in rows if row["stage"] == MODELS[0])
    times = 4 * dense["parameters"] / last["bytes"]
    return Section(
        title="Summary",
        blocks=[
            Numbers(
                entries=[
                    ("validation perplexity", f"{last['validation_perplexity']:,.2f}"),
                    ("test perplexity", f"{last['test_perplexity']:,.2f}"),
                    ("bytes of the packed file", f"{last['bytes']:,}"),
                    ("storage, 32-bit parameters", million(last["storage"])),
                    ("operations a token", million(last["operations"])),
                    ("score by the challenge's formula", f"{last['score']:.5f}"),
                ]
            ),
            Text(
                text=f"The packed file, words and card included, takes 1/{times:.1f} of what the "
                f"{dense['parameters']:,} parameters of the dense model take as 32-bit floats. "
                f"The score is a valid entry of the challenge only on WikiText-103 with a test "
                f"perplexity of at most 35; counted by the challenge's own text it is "
                f"{last['challenge']['score']:.5f}."
            ),
            *(Text(text=f"Warning: {warning}.") for warning in warnings if warning),
        ],
    )


def _stack(rows: list[dict[str, Any]], records: Mapping[str, Any]) -> Section:
    layers = []
    for row in rows:
        if row["stage"] not in _LABELS:
            continue
        label, kind = _LABELS[row["stage"]]
        if row["stage"] == MODELS[0] and "teacher" in records:
            label = f"{label} + distillation"
        dense = row["nonzeros"] > 0.99 * row["weights"] and row["bits"] == 32
        values = {
            "storage": row["parameters"] if dense else row["storage"],
            "operations": row["operations"],
            "validation_perplexity": row["validation_perplexity"],
            "seconds": _seconds(records[row["stage"]]),
        }
        leads = row["stage"] in MODELS
        layers.append(Layer(label=label, kind=kind, values=values, leads=leads))
    return Section(
        title="Pipeline",
        blocks=[
            Picture(
                name="pipeline",
                caption="What each stage changed; green is better than before, red worse.",
                svg=stack_svg([("", layers)]),
            )
        ],
    )


def _table(rows: list[dict[str, Any]], records: Mapping[str, Any]) -> Section:
    head = ["stage", "validation", "test", "not zero", "bits", "storage", "operations", "score"]
    lines = [
        [
            row["stage"],
            f"{row['validation_perplexity']:,.2f}",
            f"{row['test_perplexity']:,.2f}",
            f"{row['nonzeros']:,}",
            str(row["bits"]),
            f"{row['storage']:,.0f}",
            f"{row['operations']:,.0f}",
            f"{row['score']:.5f}",
            f"{row['bytes']:,}",
            duration(_seconds(records[row["stage"]])),
        ]
        for row in rows
    ]
    return Section(
        title="Stages",
        blocks=[
            Table(head=[*head, "bytes", "time"], rows=lines, strong=len(lines) - 1),
            Text(
                text="Perplexities of the whole splits; storage in 32-bit parameters, masks "
                "included; bytes are those of the checkpoint or packed file; time is that of the "
                "stage itself."
            ),
        ],
    )


def _search(folder: Path) -> Section | None:
    file = folder / SEARCH
    if not file.is_file():
        return None
    found = read_json(file)
    before = f"{found['before']['perplexity']:,.2f}"
    points = [("as trained, at the new size", found["start"])]
    points.append(("kept", found.get("kept", found["found"])))
    rows = [
        [name, f"{p['theta']:.5f}", f"{p['lam']:.4f}", f"{p['perplexity']:,.2f}"]
        if p
        else [name, "no cache", "", before]
        for name, p in points
    ]
    return Section(
        title="Cache search",
        blocks=[
            Text(
                text=f"The cache's θ and λ for {found['size']:,} activations, found on the "
                f"validation split in {len(found['points'])} points; before the search it was "
                f"{before}. {confirmation_sentence(found) or ''}".rstrip()
            ),
            Table(head=["", "θ", "λ", "validation"], rows=rows, strong=1),
        ],
    )


def _trade(rows: list[dict[str, Any]]) -> Section:
    return Section(
        title="Size against perplexity",
        blocks=[
            Picture(
                name="trade",
                caption="Every stage's storage and validation perplexity.",
                svg=svg_of(trade(rows)),
            )
        ],
    )


def _trained(root: Path, records: Mapping[str, Any]) -> dict[str, Path]:
    folders = {"teacher": "teacher", "student": "student", "prune": "pruned"}
    return {name: root / folder for name, folder in folders.items() if name in records}


def _account(packed: Path, corpus: Corpus) -> Account:
    model = read_packed(packed)
    return count(
        target_of(model, "packed model", counted_shares(corpus.split("test"), model.shape))
    )


def _seconds(record: Mapping[str, Any]) -> float:
    return float(record["result"].get("seconds", record["seconds"]))


def _commands(setup: Mapping[str, Any]) -> list[str]:
    name = _plain_path(setup.get("recipe", "RECIPE"))
    words = "".join(f" --{key} {_word(value)}" for key, value in setup.get("overrides", {}).items())
    return [
        f"micronet run {name}{words} --out DIR",
        "micronet report DIR",
        "micronet inspect DIR/packed/model.safetensors",
        'micronet predict "..." -m DIR/packed/model.safetensors',
    ]


def _word(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(map(str, value))
    return "none" if value is None else _plain_path(str(value))


def _plain_path(word: str) -> str:
    """Of an absolute path only the last part, for a report goes to others."""
    return Path(word).name if Path(word).is_absolute() else word
