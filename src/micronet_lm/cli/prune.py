"""`micronet prune`: make a sparse run from a trained one."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType

from micronet_lm.cli import parsers, runs
from micronet_lm.cli.output import make_table, print_shown
from micronet_lm.cli.parsers import Arguments, Verbs
from micronet_lm.config import scaled_to_steps
from micronet_lm.machine import leads

if TYPE_CHECKING:
    from micronet_lm.compression.pruned_run import Plan
    from micronet_lm.training import Run

_EXAMPLE = """examples:
  micronet sensitivity runs/small
  micronet prune runs/small --sparsity 0.358 --out runs/pruned --prune.every 50 \\
      --train.steps 1000 --train.learning_rate 0.003
  micronet prune --resume runs/pruned
  micronet prune runs/small --sparsity 0.358 --one-shot --out runs/one-shot
  micronet prune runs/small --sparsity 0.358 --one-shot --allocation uniform --out runs/uniform

--allocation slope always removes the next weight where it costs least, threshold (the paper's)
prunes every matrix up to the same perplexity, uniform takes the same share of every matrix.

The new run has the recipe of RUN; any of its keys can be set as --section.key VALUE. With --labels
the distillation of a distilled run continues. Ctrl-C saves; the same command or --resume resumes.
"""


def add(verbs: Verbs) -> None:
    """Register the verb."""
    parser = parsers.add_verb(
        verbs,
        "prune",
        _run,
        help="prune a trained model, gradually or in one shot",
        description=(
            "Remove the smallest weights of every matrix, as many as its sensitivity allows, "
            "while the model is trained further."
        ),
        epilog=_EXAMPLE,
        usage=(
            "micronet prune [RUN] --sparsity S --out DIR [--one-shot] [--allocation HOW] "
            "[--labels DIR] [--json] [--section.key VALUE ...]"
        ),
        keys=True,
    )
    runs.add_derived(parser, "pruned")
    parsers.add_number(
        parser,
        "--sparsity",
        type=parsers.real("[0, 1)"),
        metavar="S",
        help="share of weights to remove (prune.sparsity)",
    )
    parser.add_argument(
        "--one-shot", action="store_true", help="remove all at once and train nothing"
    )
    parser.add_argument(
        "--allocation",
        choices=["slope", "threshold", "uniform"],
        help="how the matrices share the sparsity (default: slope)",
    )
    parsers.add_folder(parser, "--sensitivity", "the analysis (default: RUN/sensitivity)")


@runs.in_each_process
def _run(arguments: Arguments) -> int:
    runs.check_place(
        arguments, "prune", arguments.target, "micronet prune RUN --sparsity 0.358 --out DIR"
    )

    from micronet_lm.compression.pruned_run import (
        make_plan,
        prune,
        prune_in_one_shot,
        pruned_recipe,
    )
    from micronet_lm.training import Run, perplexity

    if arguments.resume is not None:
        parsers.refuse(
            arguments, "is for a new run; --resume takes everything from the run", "--one-shot"
        )
        job = runs.resumed_job(arguments)
        outcome = prune(job.run, job.recipe, job.corpus, labels=job.labels, amend=True)
        return runs.finish_training(job, outcome, as_json=arguments.json)
    if arguments.one_shot:
        parsers.refuse(
            arguments, "is for training, but --one-shot trains nothing; omit one", "--labels"
        )
    source, run = Run.open(arguments.target), Run(arguments.out)
    corpus, labels = source.corpus(arguments.corpus), runs.open_labels(arguments.labels)
    changes = _changes(arguments)
    scaled = scaled_to_steps(source.recipe(), changes)
    runs.tell_scaled(scaled)
    recipe = pruned_recipe(source, {**scaled, **changes}, distilled=labels is not None)
    assert recipe.prune is not None  # noqa: S101
    analysis = arguments.sensitivity or source.path / "sensitivity"
    plan = make_plan(source.model(), recipe.prune, analysis)
    if not arguments.json and leads():
        print_shown(_shown(source, plan))
    if arguments.one_shot:
        loss = prune_in_one_shot(run, recipe, corpus, source=source, plan=plan)
        found = perplexity(loss)
        report = {"sparsity": plan.final.sparsity, "validation_perplexity": found}
        sentence = f"Pruned in one shot. Validation perplexity {found:,.2f}."
        return runs.finish_run(run, report, [sentence], as_json=arguments.json)
    outcome = prune(run, recipe, corpus, source=source, plan=plan, labels=labels)
    return runs.finish_training(runs.Job(run, recipe, corpus), outcome, as_json=arguments.json)


def _changes(arguments: Arguments) -> dict[str, Any]:
    """Return the changes of the recipe that the command line asks for."""
    named = {
        "prune.sparsity": arguments.sparsity,
        "prune.allocation": arguments.allocation,
    }
    given = {key: value for key, value in named.items() if value is not None}
    return {**given, **arguments.overrides}


def _shown(source: "Run", plan: "Plan") -> Iterator[RenderableType]:
    title = f"Sparsity of {source.path}'s matrices"
    table = make_table("matrix", "at first", "in the end", title=title)
    for name, final in plan.final.sparsities.items():
        table.add_row(name, f"{plan.initial.sparsities[name]:.4f}", f"{final:.4f}")
    table.add_row("all", f"{plan.initial.sparsity:.4f}", f"{plan.final.sparsity:.4f}", style="bold")
    yield table
    if plan.final.threshold is not None:
        yield (
            "Pruning any one of them alone would raise the perplexity to "
            f"{plan.final.threshold:,.3f} (on the part of the split that was analysed)."
        )
