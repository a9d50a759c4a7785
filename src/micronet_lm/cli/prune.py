"""`micronet prune`: a trained run becomes a sparse one."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from micronet_lm.cli.output import print_json, print_text
from micronet_lm.cli.parsers import add_parser
from micronet_lm.cli.runs import Job, conclude, leads
from micronet_lm.config import merge_recipe, with_train_changes
from micronet_lm.errors import UsageError

if TYPE_CHECKING:
    from micronet_lm.compression.pruned_run import Plan
    from micronet_lm.compression.softlabels import SoftLabels
    from micronet_lm.training import Run

_EXAMPLE = """examples:
  micronet sensitivity runs/small
  micronet prune runs/small --sparsity 0.358 --out runs/pruned --prune.every 50 \\
      --train.steps 1000 --train.learning_rate 0.003
  micronet prune --resume runs/pruned
  micronet prune runs/small --sparsity 0.358 --one-shot --out runs/one-shot
  micronet prune runs/small --sparsity 0.358 --one-shot --allocation uniform --out runs/uniform

--allocation slope removes the next weight always where it costs least, threshold (the paper's)
prunes every matrix up to the same perplexity, uniform takes the same share of every matrix.

The run's recipe is taken over; any of its keys can be set as --section.key VALUE. With --labels the
distillation of a distilled run stays on. Ctrl-C saves; the same command or --resume goes on.
"""


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the verb."""
    parser = add_parser(
        verbs,
        "prune",
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
    )
    parser.add_argument("target", type=Path, nargs="?", metavar="RUN", help="a trained run")
    parser.add_argument("--sparsity", type=float, metavar="S", help="target (prune.sparsity)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder of the pruned run")
    parser.add_argument("--resume", type=Path, metavar="DIR", help="go on with this pruned run")
    parser.add_argument(
        "--one-shot", action="store_true", help="remove all at once and train nothing"
    )
    parser.add_argument(
        "--allocation",
        choices=["slope", "threshold", "uniform"],
        help="how the matrices share the sparsity (default: slope)",
    )
    parser.add_argument(
        "--sensitivity", type=Path, metavar="DIR", help="the analysis (default: RUN/sensitivity)"
    )
    parser.add_argument("--labels", type=Path, metavar="DIR", help="keep distilling from these")
    parser.add_argument("--corpus", type=Path, metavar="DIR", help="where the corpus is now")
    parser.add_argument("--json", action="store_true", help="print one JSON object at the end")
    parser.set_defaults(run=_run, overrides={})


def _run(arguments: argparse.Namespace) -> int:
    if arguments.resume is not None:
        if arguments.target or arguments.out or arguments.one_shot:
            raise UsageError("--resume DIR takes everything from the run; leave out RUN and --out")
        return _go_on(arguments)
    if not (arguments.target and arguments.out):
        raise UsageError(
            "say what to prune and where: micronet prune RUN --sparsity 0.358 --out DIR"
        )
    if arguments.one_shot and arguments.labels:
        raise UsageError("--one-shot trains nothing, so it has no use for --labels; leave one out")
    if arguments.sparsity is not None and not 0 <= arguments.sparsity < 1:
        raise UsageError(f"--sparsity {arguments.sparsity} must be at least 0 and below 1")

    from micronet_lm.compression.pruned_run import make_plan, prune, prune_in_one_shot
    from micronet_lm.training import Run

    source, run = Run.open(arguments.target), Run(arguments.out)
    corpus = source.corpus(arguments.corpus)
    labels = _labels(arguments.labels)
    changes: dict[str, Any] = {"prune.every": 1000}  # switches the section on
    if arguments.sparsity is not None:
        changes["prune.sparsity"] = arguments.sparsity
    if arguments.allocation is not None:
        changes["prune.allocation"] = arguments.allocation
    if labels is None:
        changes["distill"] = None  # its own labels stay behind
    recipe = merge_recipe(source.recipe(), {**changes, **arguments.overrides})
    assert recipe.prune is not None  # noqa: S101
    if recipe.quantize is not None:
        raise UsageError(
            f"{source.path} is quantized: a quantized model is trained no further; prune the run "
            "that it was made from, then quantize that"
        )
    recipe = with_train_changes(merge_recipe(recipe, {"prune.train": None}), recipe.prune.train)
    assert recipe.prune is not None  # noqa: S101
    if labels is not None and recipe.distill is None:
        raise UsageError(
            "--labels needs a section distill: the run has none; name one of its keys, such as "
            "--distill.weight_max 0.5"
        )
    plan = make_plan(
        source.model(), recipe.prune, arguments.sensitivity or source.path / "sensitivity"
    )
    if not arguments.json and leads():
        _show(source, plan)
    if arguments.one_shot:
        loss = prune_in_one_shot(run, recipe, corpus, source=source, plan=plan)
        return _conclude_one_shot(run, plan, loss, as_json=arguments.json)
    outcome = prune(run, recipe, corpus, source=source, plan=plan, labels=labels)
    return conclude(Job(run, recipe, corpus), outcome, as_json=arguments.json)


def _go_on(arguments: argparse.Namespace) -> int:
    from micronet_lm.compression.pruned_run import prune
    from micronet_lm.training import Run

    run = Run.open(arguments.resume)
    run.check_trainable()
    recipe = merge_recipe(run.recipe(), arguments.overrides)
    corpus = run.corpus(arguments.corpus)
    labels = _labels(arguments.labels or (run.input("labels").path if recipe.distill else None))
    outcome = prune(run, recipe, corpus, labels=labels, amend=True)
    return conclude(Job(run, recipe, corpus), outcome, as_json=arguments.json)


def _labels(path: Path | None) -> "SoftLabels | None":
    if path is None:
        return None
    from micronet_lm.compression import SoftLabels

    return SoftLabels.open(path)


def _show(source: "Run", plan: "Plan") -> None:
    table = Table(box=None, header_style="bold", title=f"Sparsity of {source.path}'s matrices")
    for column in ("matrix", "at first", "in the end"):
        table.add_column(column, justify="left" if column == "matrix" else "right")
    for name, final in plan.final.sparsities.items():
        table.add_row(name, f"{plan.initial.sparsities[name]:.4f}", f"{final:.4f}")
    table.add_row("all", f"{plan.initial.sparsity:.4f}", f"{plan.final.sparsity:.4f}", style="bold")
    console = Console()
    console.print(table)
    if plan.final.threshold is not None:
        console.print(
            f"Pruning any one of them alone would raise the perplexity to "
            f"{plan.final.threshold:,.3f} (on the part of the split that was analysed).",
            highlight=False,
            soft_wrap=True,
        )


def _conclude_one_shot(run: "Run", plan: "Plan", loss: float, *, as_json: bool) -> int:
    from micronet_lm.training import perplexity

    if as_json:
        report = {
            "run": str(run.path),
            "sparsity": plan.final.sparsity,
            "validation_perplexity": perplexity(loss),
        }
        print_json(report)
    else:
        print_text(
            f"Pruned in one shot. Validation perplexity {perplexity(loss):,.2f}.\n"
            f"Next: micronet evaluate {run.path} --split test"
        )
    return 0
