"""The report of a pipeline, from its records and its stages' results."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from micronet_lm.accounting import count
from micronet_lm.accounting.figure import account_figure
from micronet_lm.accounting.run_target import counted_shares
from micronet_lm.artifact import read_packed
from micronet_lm.artifact.packed_target import target_of
from micronet_lm.compression.searched_run import confirmation_sentence
from micronet_lm.corpus import Corpus
from micronet_lm.corpus.splits import perplexity_disagreement, unknown_disagreement
from micronet_lm.errors import RunError
from micronet_lm.files import read_json, refusing_damage
from micronet_lm.pipeline.stages import MODELS, TRAINED
from micronet_lm.report.axes import STYLE
from micronet_lm.report.document import Document, Numbers, Picture, Section, Table, Text
from micronet_lm.report.drawings import svg_of, trade
from micronet_lm.report.environment import made_line
from micronet_lm.report.noise import ERRORS, Change, changes
from micronet_lm.report.parts import (
    accounting_section,
    commands_section,
    curves_section,
    environment_section,
    million,
    sensitivity_section,
)
from micronet_lm.report.pipeline_folder import PipelineFolder, plain_path
from micronet_lm.report.progress_report import progress_document
from micronet_lm.report.quantities import duration
from micronet_lm.report.speed import speed_section
from micronet_lm.report.stack import SMALL, Layer, stack_svg
from micronet_lm.report.text_parts import baseline_section, corpus_section, samples_section
from micronet_lm.runs.files import PACKED, SEARCH

_CHANGES = (
    "What each stage changed: ▼ green is better than before, ▲ red worse, ≈ a change of perplexity "
    "that may be noise."
)

_LABELS = {
    "teacher": ("Teacher", "compression"),
    "student": ("Core LM", "core"),
    "prune": ("Prune", "compression"),
    "search-cache": ("Cache search", "search"),
    "search-again": ("Cache search after quantization", "search"),
    "quantize": ("Quantize", "compression"),
}


def pipeline_document(root: Path) -> Document:
    """Report a pipeline; an incomplete one, as far as it is complete."""
    folder = PipelineFolder.open(root)
    if not folder.finished:
        return progress_document(folder)
    account = root / "account" / "account.json"
    with refusing_damage(account, RunError, f"remove it and run micronet run --out {root} again"):
        rows = read_json(account)["stages"]
    corpus = Corpus.open(root / "corpus")
    packed = root / "packed" / PACKED
    commands = folder.commands
    sections = [
        _summary(rows, corpus),
        _stack(rows, folder, changes(folder.runs(MODELS), corpus)),
        _table(rows, folder),
        corpus_section(corpus),
        baseline_section(
            corpus,
            validation=rows[-1]["validation_perplexity"],
            test=rows[-1]["test_perplexity"],
            what="the packed model",
        ),
        curves_section(folder.runs(TRAINED)),
        sensitivity_section(root / "sensitivity"),
        _search(root / "searched"),
        accounting_section(
            rows[-1]["rows"],
            _account_figure(packed, corpus),
            "The packed model by the rules of the paper's authors, in 32-bit parameters and "
            "operations per token.",
        ),
        _trade(rows),
        samples_section(packed, corpus),
        speed_section(packed),
        environment_section(),
        commands_section(commands),
    ]
    manifest = corpus.manifest
    return Document(
        title=f"{folder.name}: from text to a packed model",
        subtitle=f"{plain_path(manifest.source)}, {manifest.tokens['train']:,} training tokens, "
        f"{manifest.words:,} words",
        made=made_line(commands[0]),
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
    share = f"1/{times:.1f} of" if times > 1 else f"{1 / times:.1f} times"
    return Section(
        title="Summary",
        blocks=[
            Numbers(
                entries=[
                    ("validation perplexity", f"{last['validation_perplexity']:,.2f}"),
                    ("test perplexity", f"{last['test_perplexity']:,.2f}"),
                    ("bytes of the packed file", f"{last['bytes']:,}"),
                    ("storage, 32-bit parameters", million(last["storage"])),
                    ("operations per token", million(last["operations"])),
                    ("score by the challenge's formula", f"{last['score']:.5f}"),
                ]
            ),
            Text(
                text=f"The packed file, words and card included, takes {share} what the "
                f"{dense['parameters']:,} parameters of the dense model take as 32-bit floats. "
                f"The score is a valid entry of the challenge only on WikiText-103 with a test "
                f"perplexity of at most 35; counted by the challenge's own text it is "
                f"{last['challenge']['score']:.5f}."
            ),
            *(Text(text=f"Warning: {warning}.") for warning in warnings if warning),
        ],
    )


def _stack(
    rows: list[dict[str, Any]], folder: PipelineFolder, changed: Sequence[Change]
) -> Section:
    layers = []
    clear = {change.name: change.clear for change in changed}
    for row in rows:
        if row["stage"] not in _LABELS:
            continue
        label, kind = _LABELS[row["stage"]]
        if row["stage"] == MODELS[0] and "teacher" in folder.records:
            label = f"{label} + distillation"
        dense = row["nonzeros"] > 0.99 * row["weights"] and row["bits"] == 32
        values = {
            "storage": row["parameters"] if dense else row["storage"],
            "operations": row["operations"],
            "validation_perplexity": row["validation_perplexity"],
            "seconds": folder.seconds(row["stage"]),
        }
        layers.append(
            Layer(
                label=label,
                kind=kind,
                values=values,
                leads=row["stage"] in MODELS,
                clear=clear.get(row["stage"]),
            )
        )
    picture = Picture(
        name="pipeline",
        caption=_CHANGES if sum(layer.leads for layer in layers) > 1 else "The costs of the model.",
        svg=stack_svg([("", layers)]),
    )
    return Section(title="Pipeline", blocks=[picture, *_noise(layers, changed)])


def _noise(layers: Sequence[Layer], changed: Sequence[Change]) -> list[Text | Table]:
    """State the rule by which a change is more than noise, and show its numbers."""
    if not changed:
        rule = f"A change of perplexity below {SMALL:.0%} counts as noise."
        return [Text(text=rule)] if sum(layer.leads for layer in layers) > 1 else []
    return [
        Text(
            text=f"A change counts when it exceeds {ERRORS:g} standard errors of the paired "
            f"difference of both models' losses, over blocks of the first {changed[0].tokens:,} "
            "tokens of the validation split. That is the noise of the text; another seed of the "
            "training may move a perplexity by more."
        ),
        Table(
            head=["stage", "compared with", "reading", "change of perplexity", "± 2 errors"],
            rows=[
                [
                    change.name,
                    change.before,
                    change.verdict,
                    _signed(math.expm1(change.loss)),
                    f"{ERRORS * change.error:.2%}",
                ]
                for change in changed
            ],
            texts=3,
        ),
    ]


def _signed(share: float) -> str:
    return f"{share:+.2%}".replace("-", "−")


def _table(rows: list[dict[str, Any]], folder: PipelineFolder) -> Section:
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
            duration(folder.seconds(row["stage"])),
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
    if not file.exists():
        return None
    with refusing_damage(file, RunError, "search again with micronet search-cache"):
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
                text=f"The cache's θ and λ for {found['size']:,} hidden states, found on the "
                f"validation split in {len(found['points'])} points. Before the search the "
                f"perplexity was {before}. {confirmation_sentence(found) or ''}".rstrip()
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


def _account_figure(packed: Path, corpus: Corpus) -> Figure:
    model = read_packed(packed)
    shares = counted_shares(corpus.split("test"), model.shape)
    with mpl.rc_context(STYLE):
        return account_figure(count(target_of(model, "packed model", shares)))
