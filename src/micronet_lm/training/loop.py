"""The one training loop. Techniques plug in through `plugins`; none has a loop of its own."""

import math
import os
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from micronet_lm.config import Recipe, TrainConfig
from micronet_lm.corpus import Corpus
from micronet_lm.machine import processor_name
from micronet_lm.model import LanguageModel
from micronet_lm.training.agreement import agree_on_sources
from micronet_lm.training.evaluation import perplexity
from micronet_lm.training.hebbian import Hebbian
from micronet_lm.training.interruption import Interruption, deferred_interruption
from micronet_lm.training.memory import keep_freed_memory
from micronet_lm.training.metrics import Metrics
from micronet_lm.training.plugins import Objective, Plugin, check_handled, next_word_loss
from micronet_lm.training.precision import agree_on_products
from micronet_lm.training.processes import Processes, joined_processes
from micronet_lm.training.progress_line import ProgressLine
from micronet_lm.training.run import Input, Run, resume_command
from micronet_lm.training.trainer import Trainer


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a call of `train` ended."""

    finished: bool
    """Whether the last step was reached; False after an interruption."""

    step: int
    """Number of finished steps."""

    best_loss: float
    """Smallest validation loss; infinite before the first evaluation."""

    best_step: int | None
    """Number of finished steps at the smallest validation loss."""

    seconds: float
    """Time spent in training steps, interruptions excluded."""


def train(
    run: Run,
    recipe: Recipe,
    corpus: Corpus,
    *,
    model: LanguageModel | None = None,
    objective: Objective = next_word_loss,
    plugins: Sequence[Plugin] = (),
    inputs: Mapping[str, Input] | None = None,
    inherited: Mapping[str, Tensor] | None = None,
    amend: bool = False,
    quiet: bool = False,
) -> Outcome:
    """Train in `run`'s folder until the last step; resume from its last checkpoint if it has one.

    `recipe.model.vocabulary` must be the corpus's. The recipe switches on the cache and the Hebbian
    update; other techniques are `plugins`. A new run begins with `model`, or with fresh weights,
    and with the tensors `inherited` from the plug-ins of the model's own run. A folder of a run
    with another recipe, corpus or other `inputs` is refused; with `amend`, those keys of `train`
    that may change during a run may differ. Ctrl-C saves and returns an unfinished outcome. Under
    `torchrun` every process calls this and gets the same outcome.
    """
    check_handled(recipe, objective, plugins)
    make_deterministic()
    keep_freed_memory()
    with (
        joined_processes() as processes,
        deferred_interruption() as interruption,
        run.locked() if processes.leads else nullcontext(),
    ):
        if processes.leads:
            run.check(recipe, corpus, inputs, amend=amend)
        agree_on_sources(processes, recipe, corpus, inputs)
        # The recipe's own plug-ins act first: masks, for example, must be applied last.
        hebbian = [Hebbian(recipe.hebbian)] if recipe.hebbian else []
        every = [*hebbian, *plugins]
        products = agree_on_products(
            recipe.train.precision,
            run.products() if processes.leads else None,
            processes,
            resume=resume_command(run.path, recipe),
        )
        trainer = Trainer(
            *(run, recipe, corpus, processes, objective, every, model, inherited), products=products
        )
        if processes.leads:  # only now, so that a run that cannot begin leaves no files
            run.begin(recipe, corpus, inputs, products)
        with (
            Metrics(run.path, step=trainer.progress.step, silent=not processes.leads) as metrics,
            ProgressLine(recipe.train.steps, quiet=quiet or not processes.leads) as line,
        ):
            step, config = trainer.progress.step, recipe.train
            line.say(
                f"{run.path}: {f'resuming after step {step:,}' if step else 'starting'}; "
                f"{config.steps:,} step{'' if config.steps == 1 else 's'} of "
                f"{config.batch * config.window:,} tokens, "
                f"{corpus.tokens('train'):,} tokens in the training split"
            )
            line.say(str(products))
            metrics.note("machine", step, {**products.as_json(), **_machine(processes)})
            finished = _steps(trainer, config, metrics, line, processes, interruption)
        progress = trainer.progress
        del trainer  # frees the gradient exchange before the process group ends
    return Outcome(
        finished=finished,
        step=progress.step,
        best_loss=math.inf if progress.best_loss is None else progress.best_loss,
        best_step=progress.best_step,
        seconds=progress.seconds,
    )


def _steps(
    trainer: Trainer,
    config: TrainConfig,
    metrics: Metrics,
    line: ProgressLine,
    processes: Processes,
    interruption: Interruption,
) -> bool:
    """Do all remaining steps; return False when interrupted before the last."""
    while trainer.progress.step < config.steps:
        values = trainer.step()
        step = trainer.progress.step
        last = step == config.steps
        pace = config.batch * config.window / values.pop("seconds")
        line.show(step, loss=_of_next_word(values), tokens_per_second=pace)
        if last or step % config.log_every == 0:
            values |= trainer.take_means()
            values |= {"perplexity": perplexity(_of_next_word(values)), "tokens_per_second": pace}
            metrics.write("train", step, values)
        evaluated = last or step % config.evaluate_every == 0
        if evaluated:
            _evaluate(trainer, metrics, line)
        # All processes must stop after the same step, whichever of them got the signal.
        requests = [float(interruption.requested), float(interruption.save_requested)]
        asked, saving = processes.mean(requests)
        # The best and the last checkpoint must belong to the same sequence of steps.
        if evaluated or asked + saving > 0 or step % config.save_every == 0:
            interruption.save_requested = False
            trainer.save()
        if asked > 0 and not last:
            return False
    if trainer.progress.best_step is None:  # stopped before the evaluation, with no steps left
        _evaluate(trainer, metrics, line)
        trainer.save()
    return True


def _machine(processes: Processes) -> dict[str, Any]:
    """Return what a run's speed and last bits depend on besides its recipe."""
    return {
        "processor": processor_name(),
        "torch": torch.__version__,
        "processes": processes.count,
        "threads": torch.get_num_threads(),
    }


def _of_next_word(values: Mapping[str, float]) -> float:
    """Return the loss that gives the perplexity; an objective may minimize another."""
    return values.get("hard_loss", values["loss"])


def _evaluate(trainer: Trainer, metrics: Metrics, line: ProgressLine) -> None:
    result = trainer.evaluate()
    if result is not None:
        step = trainer.progress.step
        metrics.write("valid", step, result.as_json())
        best = "  (best)" if trainer.progress.best_step == step else ""
        line.say(f"step {step:,}  validation perplexity {result.perplexity:,.2f}{best}")


def make_deterministic() -> None:
    """Make torch's results bit-exactly repeatable on the same machine."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True)
    # Filling fresh memory would cost a pass over it; no code here reads uninitialized memory.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
