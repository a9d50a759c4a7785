"""The report of a single run."""

from pathlib import Path

from micronet_lm.accounting import count, examine
from micronet_lm.accounting.figure import account_figure
from micronet_lm.accounting.run_target import counted_shares
from micronet_lm.accounting.summary import as_json
from micronet_lm.report.document import Code, Document, Numbers, Section
from micronet_lm.report.parts import (
    accounting_section,
    commands_section,
    curves_section,
    environment_section,
    million,
    samples_section,
    sensitivity_section,
)
from micronet_lm.report.samples import samples_of_run
from micronet_lm.training import Run, evaluate, perplexity


def run_document(path: Path, corpus_path: Path | None = None) -> Document:
    """Return the report of a run: its numbers, curves, costs and some generated lines."""
    run = Run.open(path)
    recipe, corpus = run.recipe(), run.corpus(corpus_path)
    shares = counted_shares(corpus.split("test"), recipe.model)
    account = count(examine(path, recipe, shares))
    best = run.progress().best_loss
    test = evaluate(run.model(), corpus.split("test")).perplexity
    known = [] if best is None else [("validation perplexity", f"{perplexity(best):,.2f}")]
    numbers = Numbers(
        entries=[
            *known,
            ("test perplexity", f"{test:,.2f}"),
            ("parameters", f"{account.target.parameters:,}"),
            ("storage, 32-bit parameters", million(float(account.storage))),
            ("operations per token", million(float(account.operations))),
        ]
    )
    sections = [
        Section(title="Summary", blocks=[numbers]),
        curves_section({path.name: path}),
        sensitivity_section(path / "sensitivity"),
        accounting_section(
            as_json(account)["rows"],
            account_figure(account),
            "By the rules of the paper's authors, in 32-bit parameters and operations per token.",
        ),
        samples_section(samples_of_run(path, corpus)),
        Section(title="Recipe", blocks=[Code(text=run.recipe_file.read_text("utf-8").strip())]),
        environment_section(),
        commands_section(["micronet train recipe.yaml --out DIR", "micronet report DIR"]),
    ]
    return Document(
        title=f"{path.resolve().name}: a trained model",
        subtitle=f"{Path(recipe.corpus.source).name}, {corpus.tokens('train'):,} training tokens, "
        f"{len(corpus.vocabulary):,} words",
        sections=[section for section in sections if section is not None],
    )
