"""Prune a trained run: gradually during further training, or in one shot."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from micronet_lm.compression.allocation import Allocation, by_slope, by_threshold, uniform
from micronet_lm.compression.gradual_pruning import GradualPruning, prune_once
from micronet_lm.compression.sensitivity import load_sensitivity
from micronet_lm.compression.softlabels import SoftLabels
from micronet_lm.compression.sources import train_on
from micronet_lm.config import PruneConfig, Recipe, merge_recipe, with_train_changes
from micronet_lm.corpus import Corpus
from micronet_lm.errors import ConfigError, RunError, UsageError
from micronet_lm.files import read_json, write_text
from micronet_lm.layout import counted_size, prunable_sizes
from micronet_lm.model import LanguageModel
from micronet_lm.runs.files import PRUNING
from micronet_lm.training import Outcome, Run, evaluate


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The sparsity of every matrix, before and after."""

    initial: Allocation
    """Allocation before the first step."""

    final: Allocation
    """Allocation at the end."""

    def as_json(self) -> dict[str, Any]:
        """Return plain values for a JSON object."""
        return {
            "sparsity": self.final.sparsity,
            "threshold": self.final.threshold,
            "initial_sparsity": self.initial.sparsity,
            "matrices": {
                name: {"initial": self.initial.sparsities[name], "final": sparsity}
                for name, sparsity in self.final.sparsities.items()
            },
        }

    @classmethod
    def load(cls, file: Path) -> "Plan":
        """Read the values that `as_json` returned."""
        try:
            tree = read_json(file)
            parts = {
                key: {name: float(entry[key]) for name, entry in tree["matrices"].items()}
                for key in ("initial", "final")
            }
            return cls(
                initial=Allocation(
                    threshold=None,
                    sparsity=tree["initial_sparsity"],
                    sparsities=parts["initial"],
                ),
                final=Allocation(
                    threshold=tree["threshold"],
                    sparsity=tree["sparsity"],
                    sparsities=parts["final"],
                ),
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise RunError(f"{file} cannot be read ({error}): prune again") from None


def pruned_recipe(source: Run, changes: Mapping[str, Any], *, distilled: bool = False) -> Recipe:
    """Make the recipe of a pruned version of a run from the run's own.

    `changes` are dotted keys. The section `train` gets what `prune.train` says.
    """
    bare: dict[str, Any] = (
        {} if distilled else {"distill": None}
    )  # its own labels are not used again
    recipe = merge_recipe(source.recipe(), {"prune.every": 1000, **bare, **changes})
    assert recipe.prune is not None  # noqa: S101
    if recipe.quantize is not None:
        raise UsageError(
            f"{source.path} is quantized: a quantized model cannot be trained further; prune the "
            "run that it was made from, then quantize that"
        )
    if distilled and recipe.distill is None:
        raise UsageError(
            "--labels needs a section distill: the run has none; name one of its keys, such as "
            "--distill.weight_max 0.5"
        )
    return with_train_changes(merge_recipe(recipe, {"prune.train": None}), recipe.prune.train)


def make_plan(model: LanguageModel, config: PruneConfig, analysis: Path) -> Plan:
    """Divide the sparsity among the matrices; `analysis` is the folder of their sensitivity."""
    first, last = min(config.initial_sparsity, config.sparsity), config.sparsity
    sizes = prunable_sizes(model.config, config.weights)
    total = counted_size(model.config, config.weights)
    if config.allocation == "uniform":
        return Plan(initial=uniform(sizes, first, total), final=uniform(sizes, last, total))
    every = load_sensitivity(analysis, model).curves()
    if missing := sizes.keys() - every.keys():
        raise RunError(
            f"{analysis} has no curve of {min(missing)}: analyse again with micronet sensitivity "
            f"--weights {config.weights}"
        )
    curves = {name: every[name] for name in sizes}
    share = by_slope if config.allocation == "slope" else by_threshold
    return Plan(initial=share(curves, sizes, first, total), final=share(curves, sizes, last, total))


def prune(
    run: Run,
    recipe: Recipe,
    corpus: Corpus,
    *,
    source: Run | None = None,
    plan: Plan | None = None,
    labels: SoftLabels | None = None,
    amend: bool = False,
    quiet: bool = False,
) -> Outcome:
    """Train a pruned version of `source`'s best model in `run`, in the one training loop.

    A run that resumes needs neither source nor plan: it recorded both. With `labels` the recipe's
    distillation is on. The word counters of a Hebbian update continue where the source's ended.
    """
    config = recipe.prune
    if config is None:
        raise ConfigError("the recipe has no section prune: give one of its keys to switch it on")
    if recipe.distill is not None:
        if labels is None:
            raise ConfigError("the recipe has a section distill: give soft labels with --labels")
        labels.check_corpus(corpus)
    whole = plan or Plan.load(run.path / PRUNING)
    plugin = GradualPruning(
        whole.initial.sparsities,
        whole.final.sparsities,
        steps=config.steps or recipe.train.steps,
        every=config.every,
        weights=config.weights,
        record=lambda: write_text(run.path / PRUNING, json.dumps(whole.as_json(), indent=1) + "\n"),
    )
    return train_on(
        run,
        recipe,
        corpus,
        plugin=plugin,
        model=None if source is None else source.model(),
        source=source,
        labels=labels if recipe.distill else None,
        amend=amend,
        quiet=quiet,
    )


def prune_in_one_shot(
    run: Run, recipe: Recipe, corpus: Corpus, *, source: Run, plan: Plan
) -> float:
    """Prune at once without training; return the validation loss."""
    run.check_place(source)
    model = source.model()
    prune_once(model, plan.final.sparsities)
    loss = evaluate(model, corpus.split("valid")).loss
    progress = replace(source.progress(), best_loss=loss)
    record = {"verb": "prune --one-shot", "run": str(source.path)}
    run.write_result(record, recipe, corpus, model, progress, source)
    write_text(run.path / PRUNING, json.dumps(plan.as_json(), indent=1) + "\n")
    return loss
