"""The report of a single run."""

from pathlib import Path

import matplotlib as mpl

from micronet_lm.accounting import count, examine
from micronet_lm.accounting.figure import account_figure
from micronet_lm.accounting.run_target import counted_shares
from micronet_lm.accounting.summary import as_json
from micronet_lm.config.strict_yaml import LARGEST_TEXT
from micronet_lm.files import read_small
from micronet_lm.report.axes import STYLE
from micronet_lm.report.document import Code, Document, Numbers, Section
from micronet_lm.report.environment import made_line
from micronet_lm.report.parts import (
    accounting_section,
    commands_section,
    curves_section,
    environment_section,
    million,
    sensitivity_section,
)
from micronet_lm.report.samples import packed_run
from micronet_lm.report.speed import speed_section
from micronet_lm.report.text_parts import baseline_section, corpus_section, samples_section
from micronet_lm.training import Run, evaluate, perplexity


def run_document(path: Path, corpus_path: Path | None = None) -> Document:
    """Return the report of a run: its numbers, curves, costs and some generated lines."""
    run = Run.open(path)
    recipe, corpus = run.recipe(), run.corpus(corpus_path)
    shares = counted_shares(corpus.split("test"), recipe.model)
    account = count(examine(path, recipe, shares))
    with mpl.rc_context(STYLE):
        figure = account_figure(account)
    best = run.progress().best_loss
    test = evaluate(run.model(), corpus.split("test")).perplexity
    valid = None if best is None else perplexity(best)
    known = [] if valid is None else [("validation perplexity", f"{valid:,.2f}")]
    numbers = Numbers(
        entries=[
            *known,
            ("test perplexity", f"{test:,.2f}"),
            ("parameters", f"{account.target.parameters:,}"),
            ("storage, 32-bit parameters", million(float(account.storage))),
            ("operations per token", million(float(account.operations))),
        ]
    )
    with packed_run(path, corpus) as packed:
        samples, speed = samples_section(packed, corpus), speed_section(packed)
    commands = ["micronet train recipe.yaml --out DIR", "micronet report DIR"]
    sections = [
        Section(title="Summary", blocks=[numbers]),
        corpus_section(corpus),
        baseline_section(corpus, validation=valid, test=test, what="this model"),
        curves_section({path.name: path}),
        sensitivity_section(path / "sensitivity"),
        accounting_section(
            as_json(account)["rows"],
            figure,
            "By the rules of the paper's authors, in 32-bit parameters and operations per token.",
        ),
        samples,
        speed,
        Section(title="Recipe", blocks=[Code(text=_text(run.recipe_file))]),
        environment_section(),
        commands_section(commands),
    ]
    return Document(
        title=f"{path.resolve().name}: a trained model",
        subtitle=f"{Path(recipe.corpus.source).name}, {corpus.tokens('train'):,} training tokens, "
        f"{len(corpus.vocabulary):,} words",
        made=made_line(commands[-1]),
        sections=[section for section in sections if section is not None],
    )


def _text(file: Path) -> str:
    return read_small(file, LARGEST_TEXT).decode("utf-8").strip()
