"""The cost of each stage of a recipe: parameters, tokens, memory, disk and time."""

import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from micronet_lm.accounting import PAPER, Target, count, describe
from micronet_lm.config import Recipe, merge_recipe
from micronet_lm.corpus.tokenizers import newest_tokenizer
from micronet_lm.errors import RunError
from micronet_lm.layout import Role, slots
from micronet_lm.pipeline.corpus_size import CorpusSize
from micronet_lm.pipeline.recipes import Recipes
from micronet_lm.pipeline.speed import Speed, speed_of
from micronet_lm.training import Run

SEARCHES = 4.5
"""Time of a cache search in evaluations of the split, at most; measured in docs/results."""

EXACT = 3.0
"""Largest slow-down of a quantized model's exact arithmetic."""

MARGIN = 1.25
"""Memory of a stage in what a short measurement needed: evaluation and saving come on top."""

TRAINING = 3
"""Operations of a training step in forward passes: one forward, two backward."""

SHORT = 5.0
"""Seconds of stages that only read and write files."""


@dataclass(frozen=True, kw_only=True)
class Cost:
    """The cost of a stage; None where a number does not apply or is negligible."""

    parameters: int | None = None
    """Parameters of the model that is trained or read."""
    tokens: int | None = None
    """Number of tokens that it reads."""
    memory: int | None = None
    """Memory in bytes, measured on this machine, with a margin."""
    disk: int | None = None
    """Size of its results in bytes."""
    seconds: float | None = None
    """Time, estimated from a measurement on this machine."""
    operations: float | None = None
    """Multiplications and additions of the models, at most: all bins are counted for all tokens."""
    steps: int | None = None
    """Steps of training, after each of which processes exchange gradients."""
    rows: int | None = None
    """Sequences of a step that are computed together; processes divide them evenly."""

    def as_json(self) -> dict[str, Any]:
        """Return plain values for a JSON object."""
        return asdict(self)


class Costs:
    """Costs of the stages of one recipe on one text; a shape is measured on demand."""

    def __init__(self, recipes: Recipes, facts: CorpusSize) -> None:
        self._recipes, self._facts = recipes, facts

    def of(self, stage: str, folder: Path) -> Cost:
        """Estimate a stage; finished steps of a training in its folder are not counted."""
        cost = self._of(stage, folder)
        return cost if cost.memory is None else replace(cost, memory=int(MARGIN * cost.memory))

    def _of(self, stage: str, folder: Path) -> Cost:
        recipes = self._recipes
        if stage in recipes.trained:
            return self._training(recipes.trained[stage], folder)
        match stage:
            case "corpus":
                return self._corpus()
            case "soft-labels" if recipes.teacher:
                return self._labels(recipes.teacher)
            case "sensitivity" if recipes.pruned:
                return self._sensitivity(recipes.pruned)
            case "search-cache" | "search-again" if recipes.whole.search:
                return self._search(recipes.whole.search.cache_size)
            case "quantize" if recipes.whole.quantize:
                return self._quantize(recipes.whole.quantize.steps)
            case _:
                return Cost(seconds=SHORT)

    def _corpus(self) -> Cost:
        tokens = sum(self._facts.tokens.values())
        sample = "the quick brown fox jumps over the lazy dog .\n" * 4000
        split = newest_tokenizer(self._recipes.corpus.tokenizer or "word")
        begin = time.perf_counter()
        count = len(split.tokens(sample))
        pace = (time.perf_counter() - begin) / count
        # Two passes, and the second also converts words to ids.
        return Cost(tokens=tokens, disk=tokens * self._facts.id_bytes, seconds=3 * pace * tokens)

    def _training(self, recipe: Recipe, folder: Path) -> Cost:
        shape, config = self._shaped(recipe), recipe.train
        speed, target = speed_of(shape), _target(shape)
        parameters = target.parameters
        left = max(0, config.steps - _done(folder))
        evaluations = left // config.evaluate_every + 1
        read = evaluations * self._facts.tokens["valid"] + self._facts.tokens["test"]
        return Cost(
            parameters=parameters,
            tokens=left * config.batch * config.window,
            memory=speed.train_memory,
            disk=16 * parameters,  # the best weights, and the last with both means of Adam
            seconds=left * speed.step_seconds + read * speed.read_seconds,
            operations=_operations(target)
            * (TRAINING * left * config.batch * config.window + read),
            steps=left,
            rows=config.batch // config.accumulate,
        )

    def _labels(self, teacher: Recipe) -> Cost:
        shape, config = self._shaped(teacher), self._recipes.student.distill
        assert config is not None  # noqa: S101
        speed, tokens = speed_of(shape), self._facts.tokens["train"]
        size = self._facts.id_bytes + (2 if config.method == "top-k" else 0)
        target = _target(shape)
        return Cost(
            parameters=target.parameters,
            tokens=tokens,
            memory=speed.read_memory,
            operations=_operations(target) * tokens,
            disk=tokens * config.count * size,
            seconds=tokens * speed.label_seconds,
        )

    def _sensitivity(self, pruned: Recipe) -> Cost:
        shape = self._shaped(self._recipes.student)
        assert pruned.prune is not None  # noqa: S101
        matrices = sum(slot.role is not Role.POSITIONS for slot in slots(shape.model))
        part = min(pruned.prune.analysed_tokens, self._facts.tokens["valid"])
        return self._reading(shape, (9 * matrices + 1) * part)

    def _search(self, size: int) -> Cost:
        shape = merge_recipe(self._shaped(self._recipes.student), {"cache.size": size})
        tokens = int(SEARCHES * self._facts.tokens["valid"]) + self._facts.tokens["test"]
        cost = self._reading(shape, tokens)
        # The hidden states, those multiplied by θ, and the keys of all queries.
        kept = 3 * 4 * shape.model.width * self._facts.tokens["valid"]
        return replace(cost, memory=(cost.memory or 0) + kept)

    def _quantize(self, steps: int) -> Cost:
        """Estimate steps in float32, and evaluation in the exact arithmetic of integers."""
        shape = merge_recipe(
            self._shaped(self._recipes.student), {"train.precision": "float32", "distill": None}
        )
        config, tokens = shape.train, self._facts.tokens["valid"] + self._facts.tokens["test"]
        speed, target = speed_of(shape), _target(shape)
        trained, parameters = steps * config.batch * config.window, target.parameters
        return Cost(
            parameters=parameters,
            tokens=trained + tokens,
            operations=_operations(target) * (TRAINING * trained + tokens),
            steps=steps,
            rows=config.batch // config.accumulate,
            memory=speed.train_memory + 8 * parameters,  # the exact arithmetic is in doubles
            disk=16 * parameters,
            seconds=EXACT * (steps * speed.step_seconds + tokens * speed.read_seconds),
        )

    def _reading(self, shape: Recipe, tokens: int) -> Cost:
        speed: Speed = speed_of(shape)
        target = _target(shape)
        return Cost(
            parameters=target.parameters,
            tokens=tokens,
            operations=_operations(target) * tokens,
            memory=speed.read_memory,
            seconds=tokens * speed.read_seconds,
        )

    def _shaped(self, recipe: Recipe) -> Recipe:
        """Return the recipe with the vocabulary size of the text."""
        return merge_recipe(recipe, {"model.vocabulary": self._facts.words})


def _target(shape: Recipe) -> Target:
    # Shares of bins matter only for the input's projection, a small part of the operations.
    return describe(shape, "recipe", (1,) * (len(shape.model.cutoffs) + 1))


def _operations(target: Target) -> float:
    """Return the operations per token of a model, as the accounting counts them."""
    return float(count(target, PAPER).operations)


def _done(folder: Path) -> int:
    """Return the number of finished steps of a run in this folder."""
    try:
        return Run(folder).progress("last").step
    except RunError:
        return 0
