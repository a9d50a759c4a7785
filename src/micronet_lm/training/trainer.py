"""Training steps: the model, the state between steps, and checkpoints.

A step is a function of the weights, the optimizer's means, the streams' state, the seed and the
step's number. All but the seed are in `last.safetensors`, so a killed run resumes bit-exactly.
"""

import math
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from micronet_lm.config import Recipe
from micronet_lm.corpus import Corpus
from micronet_lm.corpus.sampling import Sampler
from micronet_lm.corpus.vocabulary import EOS
from micronet_lm.errors import ConfigError, NonFiniteLossError
from micronet_lm.model import LanguageModel
from micronet_lm.runs import Progress
from micronet_lm.training.agreement import agree_on_state, leaders_checkpoint
from micronet_lm.training.checkpoint import (
    Checkpoint,
    load_model,
    model_tensors,
    part_of,
    result_tensors,
    write_checkpoint,
)
from micronet_lm.training.evaluation import Evaluation, check_ids, evaluate
from micronet_lm.training.loading import Loader
from micronet_lm.training.optimizer import Optimizer
from micronet_lm.training.plugins import Batch, Loss, Objective, Plugin
from micronet_lm.training.precision import FLOAT32, LossScaler, Products, autocast
from micronet_lm.training.processes import Processes
from micronet_lm.training.run import Run, resume_command
from micronet_lm.training.schedule import learning_rate
from micronet_lm.training.schemes import build_model
from micronet_lm.training.streams import Stream, load_streams, stream_tensors


class Trainer:
    """A model in training, in one of the processes that train it."""

    def __init__(
        self,
        run: Run,
        recipe: Recipe,
        corpus: Corpus,
        processes: Processes,
        objective: Objective,
        plugins: Sequence[Plugin] = (),
        model: LanguageModel | None = None,
        inherited: Mapping[str, Tensor] | None = None,
        *,
        products: Products = FLOAT32,
    ) -> None:
        config = recipe.train
        self._rows, rest = divmod(config.batch, processes.count * config.accumulate)
        if rest:
            raise ConfigError(
                f"train.batch must be a multiple of {processes.count * config.accumulate} for "
                f"{processes.count} processes with {config.accumulate} parts each, got "
                f"{config.batch}: choose another"
            )
        self._run, self._recipe, self._config, self._processes = run, recipe, config, processes
        self._plugins, self._products = plugins, products
        self._valid = corpus.split("valid")
        sampler = Sampler(
            corpus.split("train"),
            sampling=config.sampling,
            batch=config.batch,
            window=config.window,
            seed=config.seed,
            beginnings=config.beginnings,
            line_end=corpus.vocabulary.id(EOS),
            prefix=config.prefix,
        )
        share = self._rows * config.accumulate
        self._loader = Loader(sampler, processes, share, prefix=bool(config.prefix))
        for split in ("train", "valid"):
            check_ids(corpus.split(split), recipe.model)
        torch.manual_seed(config.seed)
        if model is None:
            model = build_model(recipe)
            model.softmax.start_from_frequencies(corpus.vocabulary.counts)
        self.model = model.to(processes.device)
        for plugin in plugins:
            plugin.prepare(self.model, processes)
            if own := part_of(inherited or {}, f"plugin.{plugin.name}"):
                plugin.load(own)
        self._optimizer, self._scaler = Optimizer(self.model, config), LossScaler(products)
        self._streams: list[Stream | None] = [None] * config.accumulate
        self.progress = Progress()
        if (last := leaders_checkpoint(run.last, processes)) is not None:
            self._load(last)
        agree_on_state(processes, self.progress, self._tensors())
        self._loaded = self.progress.step
        self._loss: nn.Module = _Loss(self.model, objective, carry=config.sampling == "stream")
        if processes.count > 1:
            self._loss = DistributedDataParallel(self._loss)

    def step(self) -> dict[str, float]:
        """Do one optimizer step; return its losses, gradient norm, learning rate and seconds."""
        begin = time.perf_counter()
        number, config, processes = self.progress.step, self._config, self._processes
        rate = learning_rate(config, number)
        seeds = np.random.SeedSequence([config.seed, number, processes.rank])
        torch.manual_seed(int(seeds.generate_state(1, np.uint64)[0]))
        self.model.train()

        share = self._loader.batch(number)
        hidden, reported = [], []
        for part in range(config.accumulate):
            rows = slice(part * self._rows, (part + 1) * self._rows)
            batch = share.part(rows) if config.accumulate > 1 else share
            stream = None if share.fresh else self._streams[part]
            with self._no_sync() if part < config.accumulate - 1 else nullcontext():
                with autocast(self._products, processes.device):
                    part_loss, states, self._streams[part] = self._loss(batch, stream)
                total, parts = part_loss.total, config.accumulate
                self._scaler.scaled(total / parts if parts > 1 else total).backward()
            reported.append(part_loss.reported())
            hidden.append(states.detach())
        if number + 1 < config.steps:
            self._loader.prefetch(number + 1)

        sums: dict[str, float] = {}
        for numbers in reported:  # now a GPU is waited for
            sums = _added(sums, {name: float(value) for name, value in numbers.items()})
        means = processes.mean([value / config.accumulate for value in sums.values()])
        losses = dict(zip(sums, means, strict=True))
        loss = losses.pop("loss")
        finite = math.isfinite(loss)
        norm = self._optimizer.step(rate, self._scaler) if finite else math.nan
        if math.isfinite(norm):
            self._scaler.keep()
        elif finite and self._scaler.skip():
            self._optimizer.clear()
            norm = 0.0  # of what was applied
        else:
            what = "the gradient" if math.isfinite(loss) else f"the loss ({loss})"
            raise self._divergence(f"step {number + 1}: {what} is not finite", rate)
        if self._plugins:
            states = torch.cat(hidden) if len(hidden) > 1 else hidden[0]
            for plugin in self._plugins:
                plugin.after_step(self.model, states, share)

        seconds = time.perf_counter() - begin
        self.progress = replace(
            self.progress,
            step=number + 1,
            pending_loss=self.progress.pending_loss + loss,
            pending_steps=self.progress.pending_steps + 1,
            pending_numbers=_added(self.progress.pending_numbers, losses),
            seconds=self.progress.seconds + seconds,
        )
        numbers = {key: n for plugin in self._plugins for key, n in plugin.numbers().items()}
        if (cache := self.model.cache) is not None:
            numbers |= {"cache_theta": cache.theta.item(), "cache_lam": cache.lam.item()}
        own = {"loss": loss, "gradient_norm": norm, "learning_rate": rate, "seconds": seconds}
        return own | losses | numbers | self._scaler.numbers()

    def take_means(self) -> dict[str, float]:
        """Return the means of the objective's numbers since the last call, also before a resume."""
        progress = self.progress
        sums = {"loss": progress.pending_loss, **progress.pending_numbers}
        self.progress = replace(progress, pending_loss=0.0, pending_steps=0, pending_numbers={})
        return {name: value / progress.pending_steps for name, value in sums.items()}

    def evaluate(self) -> Evaluation | None:
        """Evaluate on the validation split, and save the model if it is the best so far.

        The leader evaluates; the other processes wait for its loss and return None.
        """
        result = evaluate(self.model, self._valid) if self._processes.leads else None
        loss = self._processes.share(result.loss if result else 0.0)
        if not math.isfinite(loss):
            rate = learning_rate(self._config, self.progress.step - 1)
            what = f"step {self.progress.step}: the validation loss ({loss}) is not finite"
            raise self._divergence(what, rate)
        best = self.progress.best_loss
        settled = all(plugin.settled(self.progress.step) for plugin in self._plugins)
        if settled and (best is None or loss < best):
            self.progress = replace(self.progress, best_loss=loss, best_step=self.progress.step)
            if self._processes.leads:
                write_checkpoint(self._run.best, result_tensors(self.model), self.progress)
        return result

    def save(self) -> None:
        """Write everything that the next step depends on; refuse non-finite weights."""
        tensors = self._tensors()
        checked = [t for name, t in tensors.items() if not name.startswith("plugin.")]
        if not all(bool(tensor.isfinite().all()) for tensor in checked):
            rate = learning_rate(self._config, self.progress.step - 1)
            raise self._divergence(f"step {self.progress.step}: a weight is not finite", rate)
        streams = [stream for stream in self._streams if stream is not None]
        if streams:
            gathered = stream_tensors(streams, self._processes)
            tensors |= {f"stream.{name}": tensor for name, tensor in gathered.items()}
        if self._processes.leads:
            write_checkpoint(self._run.last, tensors, self.progress)

    def _tensors(self) -> dict[str, Tensor]:
        """Return what all processes have in common: weights, optimizer and plug-ins."""
        tensors = model_tensors(self.model)
        tensors |= {f"optimizer.{name}": t for name, t in self._optimizer.tensors().items()}
        tensors |= {f"scaler.{name}": t for name, t in self._scaler.tensors().items()}
        for plugin in self._plugins:
            tensors |= {f"plugin.{plugin.name}.{n}": t for n, t in plugin.tensors().items()}
        return tensors

    def _load(self, checkpoint: Checkpoint) -> None:
        load_model(self.model, checkpoint, self._run.last)
        self._optimizer.load(checkpoint.part("optimizer"))
        self._scaler.load(checkpoint.part("scaler"))
        for plugin in self._plugins:
            plugin.load(checkpoint.part(f"plugin.{plugin.name}"))
        if streams := checkpoint.part("stream"):
            parts = self._config.accumulate
            self._streams = list(
                load_streams(streams, self._processes, rows=self._rows, parts=parts)
            )
        self.progress = checkpoint.progress

    def _no_sync(self) -> Any:
        """Skip the exchange of gradients, which only the last part of a batch needs."""
        if isinstance(self._loss, DistributedDataParallel):
            return self._loss.no_sync()
        return nullcontext()

    def _divergence(self, what: str, rate: float) -> NonFiniteLossError:
        """Name a checkpoint that is good, and a rate that is lower.

        What stood before the step that failed is not good if it was loaded as it is: the next step
        from there fails again, at any rate. Then the best model is what is left.
        """
        lower = self._config.learning_rate / 2
        while float(f"{lower:.3g}") >= self._config.learning_rate:  # a rate near 0
            lower /= 2
        command = (
            f"{resume_command(self._run.path, self._recipe)} --train.learning_rate {lower:.3g}"
        )
        if not self._run.last.is_file():
            told = f"none is saved yet; begin again with --train.learning_rate {lower:.3g}"
        elif self.progress.step == self._loaded and self.progress.step > 0:
            best = self._run.best
            good = f"the last good model is {best}" if best.is_file() else "no good one is saved"
            told = (
                f"{self._run.last} leads there at once; {good}; try a lower rate: {command}, or "
                "begin again in another folder"
            )
        else:
            told = (
                f"the last good checkpoint is {self._run.last}; resume with a lower rate: {command}"
            )
        return NonFiniteLossError(f"{what} at learning rate {rate:.3g}; {told}")


class _Loss(nn.Module):
    """The model with its objective, as one module whose gradients processes exchange."""

    def __init__(self, model: LanguageModel, objective: Objective, *, carry: bool) -> None:
        super().__init__()
        self.model = model
        self.objective = objective
        self._carry = carry

    def forward(self, batch: Batch, stream: Stream | None) -> tuple[Loss, Tensor, Stream | None]:
        """Return the loss, the hidden states, and the streams for the next step."""
        if stream is None and batch.prefix is not None:
            stream = self._read(batch.prefix, batch.inputs)
        before, memory = (stream.state, stream.memory) if stream else (None, None)
        hidden, after = self.model(batch.inputs, before)
        loss = self.objective(self.model, hidden, batch, memory)
        if not self._carry:
            return loss, hidden, None
        memory = self.model.remember(memory, hidden, batch.targets)
        return loss, hidden, Stream(state=after.detach(), memory=memory)

    @torch.no_grad()
    def _read(self, prefix: Tensor, inputs: Tensor) -> Stream:
        """Return keys, values and the cache's contents after a prefix of the windows."""
        hidden, state = self.model(prefix)
        followers = torch.cat([prefix[:, 1:], inputs[:, :1]], dim=1)
        return Stream(state=state, memory=self.model.remember(None, hidden, followers))


def _added(one: Mapping[str, float], other: Mapping[str, float]) -> dict[str, float]:
    """Add numbers by name."""
    return {name: one.get(name, 0.0) + value for name, value in other.items()}
