"""Quantize a trained run: calibrate it, and train it with rounding in the forward pass."""

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from micronet_lm.compression.quantization.aware_training import QuantizationAware
from micronet_lm.compression.quantization.calibration import calibrate
from micronet_lm.compression.softlabels import SoftLabels
from micronet_lm.compression.sources import inputs_of, train_on
from micronet_lm.config import Recipe, merge_recipe
from micronet_lm.corpus import Corpus
from micronet_lm.errors import ConfigError, RunError
from micronet_lm.model import LanguageModel
from micronet_lm.progress import bar
from micronet_lm.training import Outcome, Run, evaluate
from micronet_lm.training.schemes import scheme_of


def quantized_recipe(
    source: Recipe, changes: Mapping[str, Any], *, distilled: bool = False
) -> Recipe:
    """Return the recipe of a quantized version of a run, from the run's own.

    `changes` are dotted keys, mainly those of `quantize`. Section `train` takes its values from
    section `quantize` unless `changes` has others. Training is in float32: bfloat16 has 8
    significant bits and cannot represent integers of 9.
    """
    if source.quantize is not None:
        raise RunError("the run is already quantized: quantize the run that it was made from")
    bare: dict[str, Any] = {} if distilled else {"distill": None}  # without its own labels
    config = merge_recipe(source, {**bare, "quantize.bits": 9, **changes}).quantize
    assert config is not None  # noqa: S101
    training: dict[str, Any] = {
        "train.steps": max(1, config.steps),
        "train.learning_rate": config.learning_rate,
        "train.final_learning_rate": 0.0,
        "train.warmup": 0,
        "train.precision": "float32",
        "prune": None,  # already done; its zeros stay
    }
    if not config.hebbian:
        training["hebbian"] = None
    if config.batch is not None:
        training |= {"train.batch": config.batch, "train.accumulate": 1}
    return merge_recipe(source, {**bare, **training, "quantize.bits": 9, **changes})


def quantize(
    run: Run,
    recipe: Recipe,
    corpus: Corpus,
    *,
    source: Run | None = None,
    labels: SoftLabels | None = None,
    amend: bool = False,
    quiet: bool = False,
) -> Outcome:
    """Write a quantized version of `source`'s best model to `run`.

    With 0 `quantize.steps` it is only calibrated, and the folder is a result. Otherwise it is
    trained in the one loop; a run that resumes needs no source. With `labels` it is distilled.
    """
    check_quantizable(recipe, corpus, labels)
    config = recipe.quantize
    assert config is not None  # noqa: S101
    if config.steps == 0:
        if source is None:
            raise RunError(f"{run.path} is only calibrated: there is no training to resume")
        return _calibrate_only(run, recipe, corpus, source)
    model = None
    if source is not None and not run.last.is_file():
        run.check(recipe, corpus, inputs_of(source, labels), amend=amend)
        model = calibrated_model(source, recipe, corpus)
    return train_on(
        run,
        recipe,
        corpus,
        plugin=QuantizationAware(config),
        model=model,
        source=source,
        labels=labels,
        amend=amend,
        quiet=quiet,
    )


def check_quantizable(recipe: Recipe, corpus: Corpus, labels: SoftLabels | None) -> None:
    """Refuse recipes that would fail, or be partly ignored, only after some work."""
    config = recipe.quantize
    if config is None:
        raise ConfigError("the recipe has no section quantize: give one of its keys, such as bits")
    if config.steps == 0:
        if labels is not None or recipe.distill is not None:
            raise ConfigError(
                "0 steps train nothing, so there is nothing to distil: leave out --labels and the "
                "keys of distill, or choose --steps 1 or more"
            )
        return
    if recipe.train.precision != "float32":
        raise ConfigError(
            "train.precision must be float32 for quantization-aware training, got "
            f"{recipe.train.precision}, which cannot represent {config.bits}-bit integers"
        )
    if labels is None:
        if recipe.distill is not None:
            raise ConfigError("the recipe has a section distill: give soft labels with --labels")
        return
    if recipe.distill is None:
        raise ConfigError(
            "--labels needs a section distill, but the run has none: give one of its keys, such as "
            "--distill.weight_max 0.5"
        )
    labels.check_corpus(corpus)
    labels.check_recipe(recipe.distill)


def calibrated_model(source: Run, recipe: Recipe, corpus: Corpus) -> LanguageModel:
    """Quantize a run's best model with scales from its weights and from the training split."""
    scheme, config = scheme_of(recipe), recipe.quantize
    assert scheme is not None and config is not None  # noqa: S101
    model = source.model()
    model.quantize(scheme)
    ids = corpus.split("train")
    tokens = min(len(ids) - 1, config.calibration_tokens)
    with bar("Calibrating", total=tokens, unit="tokens") as advance:
        calibrate(model, ids, config, advance=advance)
    return model


def _calibrate_only(run: Run, recipe: Recipe, corpus: Corpus, source: Run) -> Outcome:
    begin = time.perf_counter()
    run.check_place(source)
    model = calibrated_model(source, recipe, corpus)
    seconds = time.perf_counter() - begin
    loss = evaluate(model, corpus.split("valid")).loss
    progress = replace(source.progress(), best_loss=loss)
    record = {"verb": "quantize, calibration only", "run": str(source.path)}
    run.write_result(record, recipe, corpus, model, progress, source)
    return Outcome(finished=True, step=0, best_loss=loss, best_step=None, seconds=seconds)
