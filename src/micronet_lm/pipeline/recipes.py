"""Split one recipe into the recipes of its models: teacher, student, pruned."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from micronet_lm.config import (
    CorpusConfig,
    Recipe,
    load_scaled,
    merge_recipe,
    preset_names,
    with_train_changes,
)
from micronet_lm.errors import ConfigError

TEACHER = "teacher."
"""Prefix of overrides for the teacher's recipe: `--teacher.train.steps 100`."""

_OWN = (".yaml", ".yml")
"""Suffixes of a user's own recipes."""

_LATER: dict[str, Any] = dict.fromkeys(
    ("prune", "search", "quantize", "ngrams", "spelling", "pack")
)
"""Sections that act after a model's first training."""

_WHOLE: dict[str, Any] = {**_LATER, "cluster": None}
"""Sections that are not part of a model's own recipe."""


@dataclass(frozen=True, kw_only=True)
class Recipes:
    """The recipes of a pipeline's models; None for a model that it does not have."""

    name: str
    """Name of the whole recipe, for the model's card."""

    whole: Recipe
    """The whole recipe."""

    teacher: Recipe | None
    """The teacher, trained on the same corpus."""

    student: Recipe
    """The model itself; with a section `distill` it learns from the teacher."""

    pruned: Recipe | None
    """The student while it is pruned."""

    scaled: Mapping[str, int] = field(default_factory=dict)
    """Keys that followed a changed number of steps."""

    asked: str = ""
    """What follows `micronet run` in the command that makes the model, if it is not the name."""

    @property
    def trained(self) -> dict[str, Recipe]:
        """Return the recipe that each stage trains with, by the stage's name."""
        found = {"teacher": self.teacher, "student": self.student, "prune": self.pruned}
        return {stage: recipe for stage, recipe in found.items() if recipe is not None}

    @property
    def corpus(self) -> CorpusConfig:
        """The corpus of all models."""
        return self.whole.corpus


def whole_recipe(name: str) -> str:
    """Return the preset of a scale's whole pipeline, `demo/micronet` for `demo`; else the name."""
    return f"{name}/micronet" if f"{name}/micronet" in preset_names() else name


def take_apart(name: str, overrides: Mapping[str, Any] | None = None) -> Recipes:
    """Load a preset or a recipe file, and return the recipes of its models.

    Overrides that begin with `teacher.` change the teacher's recipe. Of either recipe, what is
    counted in steps follows a changed number of steps (`config/scaling.py`).
    """
    own = {k: v for k, v in (overrides or {}).items() if not k.startswith(TEACHER)}
    others = {k: v for k, v in (overrides or {}).items() if k.startswith(TEACHER)}
    recipe, scaled = load_scaled(name, own)
    recipes = split_recipe(Path(name).stem if name.endswith(_OWN) else name, recipe, others)
    return replace(recipes, scaled={**scaled, **recipes.scaled})


def split_recipe(
    name: str, recipe: Recipe, for_teacher: Mapping[str, Any] | None = None
) -> Recipes:
    """Return the recipes of a recipe's models."""
    student = merge_recipe(recipe, _WHOLE)
    teacher, scaled = _teacher(recipe, for_teacher or {})
    return Recipes(
        name=name,
        whole=recipe,
        teacher=teacher,
        student=student,
        pruned=_pruned(recipe, student),
        scaled={f"{TEACHER}{key}": value for key, value in scaled.items()},
    )


def _teacher(
    recipe: Recipe, overrides: Mapping[str, Any]
) -> tuple[Recipe | None, Mapping[str, int]]:
    """Return the teacher's recipe, and what of it followed a changed number of steps."""
    if recipe.distill is None:
        if overrides:
            raise ConfigError(
                f"--{next(iter(overrides))}: the recipe has no teacher: give one with "
                "--distill.teacher RECIPE"
            )
        return None, {}
    name = recipe.distill.teacher
    if name is None:
        raise ConfigError(
            "the recipe has a section distill but no teacher: give its recipe with "
            "--distill.teacher"
        )
    changes = {key.removeprefix(TEACHER): value for key, value in overrides.items()}
    teacher, scaled = load_scaled(name, changes)
    for section in ("distill", *_LATER):
        if getattr(teacher, section) is not None:
            raise ConfigError(
                f"{name}: a teacher is only trained, but this recipe has a section {section}: "
                "give a recipe without it as distill.teacher"
            )
    same = {"corpus": recipe.corpus.model_dump(), "model.vocabulary": recipe.model.vocabulary}
    same |= {"cluster": None}
    return merge_recipe(teacher, same), scaled


def _pruned(recipe: Recipe, student: Recipe) -> Recipe | None:
    """Return the student's recipe with pruning and its changes of `train`, without the teacher."""
    if recipe.prune is None:
        return None
    section = {**recipe.prune.model_dump(), "train": None}
    pruned = with_train_changes(merge_recipe(student, {"distill": None}), recipe.prune.train)
    return merge_recipe(pruned, {"prune": section})
