"""Every stage of a pipeline on the pretended GPU, or on the CPU: what each found.

`python -m tests.support.gpu_stages FOLDER DEVICE [STAGE…]` prints one JSON object per stage. It is
a process of its own because the device stays until the process ends.
"""

import json
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from tests.support.corpora import squares_corpus
from tests.support.pretended_gpu import NAME, PretendedGpu, bring_gpu
from tests.support.recipes import tiny_recipe
from torch import Tensor

from micronet_lm.compression import (
    SoftLabels,
    Surface,
    distill,
    search_cache,
    write_searched_run,
    write_soft_labels,
)
from micronet_lm.compression.pruned_run import make_plan, prune, prune_in_one_shot, pruned_recipe
from micronet_lm.compression.quantization import quantize, quantized_recipe
from micronet_lm.compression.quantization.sweep import Menu, sweep
from micronet_lm.compression.sensitivity import analyse, analyse_run
from micronet_lm.compression.temperature import fold_temperature, search_temperature
from micronet_lm.config import Recipe
from micronet_lm.corpus import Corpus
from micronet_lm.model import StreamState
from micronet_lm.pipeline import speedometer
from micronet_lm.pipeline.stage_work import measured
from micronet_lm.training import Run, evaluate, loading, next_word_loss, train
from micronet_lm.training import device as devices
from micronet_lm.training import trainer as trainers
from micronet_lm.training.agreement import digest
from micronet_lm.training.checkpoint import read_checkpoint
from micronet_lm.training.hebbian import Hebbian
from micronet_lm.training.open_evaluation import open_log_probabilities
from micronet_lm.training.processes import Processes
from micronet_lm.training.schemes import build_model
from micronet_lm.training.trainer import Trainer

Stage = Callable[[Path, Corpus], dict[str, Any]]

SHORT = {"train__steps": 6, "train__evaluate_every": 3}

TRAININGS: dict[str, dict[str, Any]] = {
    "train": {},
    "train, cache": {"cache__size": 60},
    "train, cache with a ramp": {"cache__size": 60, "cache__ramp": 30},
    "train, Hebbian": {"hebbian__limit": 50},
    "train, cache, Hebbian, streams": {
        "cache__size": 60,
        "hebbian__limit": 50,
        "train__sampling": "stream",
        "train__accumulate": 2,
    },
    "train, cache, prefix": {"cache__size": 60, "train__prefix": 16},
    "train, beginnings": {"cache__size": 60, "train__beginnings": 0.5},
    "train, dropout": {"model__dropout": 0.1, "model__dropout_places": "code"},
    "train, Muon": {"train__optimizer": "muon"},
    "train, bfloat16": {"cache__size": 60, "hebbian__limit": 50, "train__precision": "bfloat16"},
    "train, float16": {"cache__size": 60, "hebbian__limit": 50, "train__precision": "float16"},
}


def main(folder: Path, device: str, names: list[str]) -> None:
    """Do the stages, each in the order in which they need each other."""
    built = folder / "built"
    corpus = Corpus.open(built) if built.is_dir() else squares_corpus(folder)
    for name in names or list(STAGES):
        told: dict[str, Any] = {"stage": name}
        with on_device(device) as gpu:
            try:
                told |= STAGES[name](folder, corpus)
            except Exception:  # the next stages are tried too
                told["failed"] = traceback.format_exc()
        if gpu is not None:
            told |= {"launched": gpu.launched.total(), "copies": sorted(set(gpu.copied))}
        print(json.dumps(told), flush=True)  # noqa: T201


@contextmanager
def on_device(device: str) -> Iterator[PretendedGpu | None]:
    """Make the pretended GPU the device of everything that asks for one."""
    if device != NAME:
        yield None
        return
    with (
        mock.patch.object(devices, "ACCELERATOR", NAME),
        mock.patch.object(devices, "_is_available", lambda: True),
        PretendedGpu() as gpu,
    ):
        yield gpu


def trained(name: str) -> Stage:
    def work(folder: Path, corpus: Corpus) -> dict[str, Any]:
        run = place(folder, name)
        recipe = tiny_recipe(corpus, **SHORT, **TRAININGS[name])
        # In two parts: what was saved must find its way back to the device.
        train(run, shorter(recipe), corpus, quiet=True)
        outcome = train(run, recipe, corpus, amend=True, quiet=True)
        return {"loss": outcome.best_loss, "bits": bits(run)}

    return work


def shorter(recipe: Recipe) -> Recipe:
    train_ = recipe.train.model_copy(update={"steps": recipe.train.steps // 2})
    return recipe.model_copy(update={"train": train_})


def place(folder: Path, name: str) -> Run:
    return Run(folder / name.replace(", ", "-").replace(" ", "-"))


def source(folder: Path) -> Run:
    return place(folder, "train, cache, Hebbian, streams")


def bits(run: Run) -> str:
    path = run.last if run.last.is_file() else run.best
    return digest(read_checkpoint(path).tensors)


def evaluated(folder: Path, corpus: Corpus) -> dict[str, Any]:
    model = source(folder).model()
    found = {split: evaluate(model, corpus.split(split)).loss for split in ("valid", "test")}
    size = model.config.bounds[-1]
    ids = corpus.split("test")[:300].astype("int64")
    ids[::7] = size + 1
    logs = open_log_probabilities(model, ids, [-9.0, -8.0], 0, chunk=100)
    return {**found, "open": float(logs.mean()), "device": str(next(model.parameters()).device)}


def labelled(folder: Path, corpus: Corpus) -> dict[str, Any]:
    found: dict[str, Any] = {}
    teacher = place(folder, "train, cache").model()
    for method in ("top-k", "sampled"):
        out = folder / f"labels-{method}"
        report = write_soft_labels(
            teacher, corpus, out, method=method, count=5, shard_tokens=1500, quiet=True
        )
        found[method] = report.mass
        found[f"{method} bits"] = report.fingerprint
    return found


def distilled(folder: Path, corpus: Corpus) -> dict[str, Any]:
    run = place(folder, "distill")
    more = {"cache__size": 60, "hebbian__limit": 50, "distill__top_k": 5}
    recipe = tiny_recipe(corpus, **SHORT, **more)
    labels = SoftLabels.open(folder / "labels-top-k")
    outcome = distill(run, recipe, corpus, labels, quiet=True)
    return {"loss": outcome.best_loss, "bits": bits(run)}


def analysed(folder: Path, corpus: Corpus) -> dict[str, Any]:
    out = folder / "sensitivity"
    out.mkdir()
    result = analyse_run(source(folder), corpus.split("valid")[:200], out, grid=(0.3, 0.7))
    losses = [loss for points in result.losses.values() for loss in points.values()]
    return {"base": result.base, "sum": sum(losses)}


def pruned(folder: Path, corpus: Corpus) -> dict[str, Any]:
    changes = {"prune.sparsity": 0.4, "prune.every": 2, "prune.steps": 6, "train.steps": 8}
    run, begin = place(folder, "prune"), source(folder)
    recipe = pruned_recipe(begin, {**changes, "prune.allocation": "threshold"})
    assert recipe.prune is not None
    plan = make_plan(begin.model(), recipe.prune, folder / "sensitivity")
    outcome = prune(run, recipe, corpus, source=begin, plan=plan, quiet=True)
    shot = prune_in_one_shot(place(folder, "one shot"), recipe, corpus, source=begin, plan=plan)
    return {"loss": outcome.best_loss, "bits": bits(run), "one shot": shot}


def searched(folder: Path, corpus: Corpus) -> dict[str, Any]:
    run, ids = source(folder), corpus.split("valid")
    model = run.model()
    tau = search_temperature(model, Surface(model, ids), confirm=True)
    fold_temperature(model, tau)
    surface = Surface(model, ids)
    search = search_cache(model, surface, size=80, ramp=40, confirm=True)
    assert search.kept is not None
    out = folder / "searched"
    write_searched_run(run, "best", corpus, "valid", search, out, temperature=tau)
    test = measured(Run(out), corpus)
    return {"loss": search.kept.loss, "test": test["test_perplexity"], "bits": bits(Run(out))}


def quantized(folder: Path, corpus: Corpus) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for learned in (False, True):
        begin, run = place(folder, "prune"), Run(folder / f"quantized-{learned}")
        changes = {"quantize.bits": 6, "quantize.steps": 3, "quantize.learned": learned}
        changes |= {"quantize.calibration_tokens": 200, "train.batch": 2}
        recipe = quantized_recipe(begin.recipe(), changes)
        outcome = quantize(run, recipe, corpus, source=begin, quiet=True)
        test = measured(run, corpus)["test_perplexity"]
        found |= {f"loss {learned}": outcome.best_loss, f"test {learned}": test}
        found[f"bits {learned}"] = bits(run)
    return found


def swept(folder: Path, corpus: Corpus) -> dict[str, Any]:
    changes = {"quantize.calibration_tokens": 200}
    menu = Menu(bits=[6], methods=["calibrated", "fitted"], tokens=200, changes=changes)
    result = sweep(folder / "sweep", source(folder), corpus, menu)
    return {
        f"{p.method} {w}": getattr(p, w)
        for p in result.points
        for w in ("perplexity", "divergence")
    }


def timed(measure: Callable[[Recipe], Any]) -> Stage:
    """Return a measurement for a plan as a stage; how often it waits for the device is counted."""

    def work(folder: Path, corpus: Corpus) -> dict[str, Any]:
        recipe = tiny_recipe(corpus, **TRAININGS["train, cache, Hebbian, streams"])
        with mock.patch.object(speedometer, "wait_for") as wait_for:
            measure(recipe)
        devices_ = {str(call.args[0]) for call in wait_for.call_args_list}
        return {"waited for": sorted(devices_)}

    return work


def exchanged(folder: Path, corpus: Corpus) -> dict[str, Any]:
    """Do what several processes exchange, under NCCL's rule: only what is on the GPU."""
    seen: Counter[str] = Counter()

    def check(name: str, *tensors: Tensor) -> None:
        seen[name] += 1
        for tensor in tensors:
            if tensor.device.type != NAME or not tensor.is_contiguous():
                raise RuntimeError(f"NCCL: {name} of a tensor on {tensor.device}")

    def all_gather(parts: list[Tensor], own: Tensor) -> None:
        check("all_gather", own, *parts)
        for part in parts:  # the other process has the same
            part.copy_(own)

    def all_reduce(tensor: Tensor) -> None:
        check("all_reduce", tensor)
        tensor.mul_(2)

    def broadcast(tensor: Tensor, src: int) -> None:
        check("broadcast", tensor)

    folder.mkdir(parents=True, exist_ok=True)
    exchange = {"all_gather": all_gather, "all_reduce": all_reduce, "broadcast": broadcast}
    pair = Processes(rank=0, count=2, device=devices.this_device())
    recipe = tiny_recipe(corpus, **TRAININGS["train, cache, Hebbian, streams"])
    assert recipe.hebbian is not None
    with ExitStack() as stack:
        for name, function in exchange.items():
            stack.enter_context(mock.patch.object(torch.distributed, name, function))
        stack.enter_context(mock.patch.object(trainers, "DistributedDataParallel", Alone))
        torch.manual_seed(0)
        model = build_model(recipe).to(devices.this_device()).eval()
        result = analyse(model, corpus.split("valid")[:60], folder / "p", pair, grid=(0.5,))
        run = place(folder, "exchange")
        run.path.mkdir(parents=True)
        hebbian = Hebbian(recipe.hebbian)
        trainer = Trainer(run, recipe, corpus, pair, next_word_loss, [hebbian])
        trainer.step()
        trainer.evaluate()
        trainer.save()
        Trainer(run, recipe, corpus, pair, next_word_loss, [hebbian]).step()
    return {"base": result.base, "exchanged": seen}


class Alone(torch.nn.Module):
    """Stands in for DDP, whose C++ reads memory that the pretended GPU does not have."""

    def __init__(self, module: torch.nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, *args: Any) -> Any:
        return self.module(*args)

    def no_sync(self) -> AbstractContextManager[None]:
        return nullcontext()


def ruled(folder: Path, corpus: Corpus) -> dict[str, Any]:
    """Break each of the device's own rules."""
    here = torch.ones(3, 4, device=torch.device(NAME, 0))
    broken: dict[str, Callable[[], Any]] = {
        "two devices": lambda: here + torch.ones(4),
        "two devices in a product": lambda: torch.mm(here, torch.ones(4, 4)),
        "an index of the CPU": lambda: here[torch.tensor([0, 1])],
        "a number among tensors": lambda: torch.stack([here[0, 0], torch.ones(())]),
        "numpy": here.numpy,
        "not repeatable": lambda: here.cumsum(0),
    }
    said = {}
    for name, breaking in broken.items():
        try:
            breaking()
        except (RuntimeError, TypeError) as error:
            said[name] = str(error)
    fine = here * torch.tensor(2.0)  # a number is allowed
    return {"refused": said, "of": list(broken), "computed": fine.sum().item()}


def planted(name: str, stage: str, change: Any) -> Stage:
    """Return a stage with a mistake in it."""

    def work(folder: Path, corpus: Corpus) -> dict[str, Any]:
        place_of = folder / name.replace(" ", "-")
        place_of.mkdir()
        with change():
            return STAGES[stage](place_of, corpus)

    return work


STAGES: dict[str, Stage] = {
    "rules": ruled,
    **{name: trained(name) for name in TRAININGS},
    "evaluate": evaluated,
    "soft labels": labelled,
    "distill": distilled,
    "sensitivity": analysed,
    "prune": pruned,
    "cache search": searched,
    "quantize": quantized,
    "sweep": swept,
    "exchange": exchanged,
    "speed of reading": timed(speedometer.reading),
    "speed of training": timed(speedometer.training),
}

EMPTY = StreamState.empty


def _empty_on_the_cpu(*args: Any) -> StreamState:
    return EMPTY(*args[:2])


MISTAKES: dict[str, tuple[str, Any]] = {
    "a state on the CPU": (
        "train",
        lambda: mock.patch.object(StreamState, "empty", _empty_on_the_cpu),
    ),
    "batches on the CPU": (
        "train",
        lambda: mock.patch.object(loading, "on_device", lambda array, _: torch.from_numpy(array)),
    ),
    "gathers of what is on the CPU": (
        "exchange",
        lambda: mock.patch.object(Processes, "gather", _gathered_where_it_is),
    ),
}
"""Mistakes, each of which a stage must fail with."""


def _gathered_where_it_is(self: Processes, tensor: Tensor) -> Tensor:
    parts = [torch.empty_like(tensor) for _ in range(self.count)]
    torch.distributed.all_gather(parts, tensor)
    return torch.cat(parts)


STAGES |= {f"mistake: {name}": planted(name, *both) for name, both in MISTAKES.items()}


if __name__ == "__main__":
    warnings.simplefilter("error")
    torch.set_num_threads(1)
    if sys.argv[2] == NAME:
        bring_gpu()
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
