"""A run folder: its recipe, its corpus, its metrics and its checkpoints."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from micronet_lm.config import Recipe, changed_keys, dump_recipe
from micronet_lm.corpus import Corpus
from micronet_lm.corpus.store import open_known
from micronet_lm.errors import RunError
from micronet_lm.files import check_folder, locked, read_json, refusing_damage, write_text
from micronet_lm.model import LanguageModel
from micronet_lm.runs import Progress, Which, check_run, run_input, run_recipe
from micronet_lm.runs.files import BEST, CORPUS, COUNTERS, LAST, PRECISION, RECIPE, RESULT, STAGES
from micronet_lm.runs.seal import sealed
from micronet_lm.training.checkpoint import (
    load_model,
    read_checkpoint,
    result_tensors,
    write_checkpoint,
)
from micronet_lm.training.device import this_device
from micronet_lm.training.precision import Products
from micronet_lm.training.schemes import build_model

SEEN = "plugin.hebbian.seen"
"""Name of the Hebbian update's counters in a checkpoint."""

FIXED = {f"train.{key}" for key in ("batch", "window", "sampling", "beginnings", "prefix", "seed")}
"""Keys of `train` that a run cannot change, because they decide the order of the text."""


@dataclass(frozen=True, kw_only=True)
class Input:
    """An input of a run besides the corpus, such as a teacher's soft labels."""

    path: Path
    """Its path."""

    fingerprint: str
    """Hash of its contents."""


class Run:
    """Names and small files of one run folder; the tensors are read on demand."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def last(self) -> Path:
        """The newest checkpoint, with all that training needs to resume."""
        return self.path / LAST

    @property
    def best(self) -> Path:
        """The model with the smallest validation loss."""
        return self.path / BEST

    @property
    def recipe_file(self) -> Path:
        """The resolved recipe."""
        return self.path / RECIPE

    @property
    def result_file(self) -> Path:
        """How this folder was made, if not by training."""
        return self.path / RESULT

    @property
    def precision_file(self) -> Path:
        """The precision of its products, chosen when the run began."""
        return self.path / PRECISION

    @classmethod
    def open(cls, path: Path) -> "Run":
        """Open a run folder; refuse any other."""
        check_run(path)
        return cls(path)

    def check_folder(self) -> None:
        """Refuse a place where there can be no run, before any work is done for it."""
        try:
            check_folder(self.path)
        except OSError as error:
            raise RunError(f"{self.path}: {error.strerror}") from None
        if (self.path / STAGES).is_dir():
            raise RunError(
                f"{self.path} holds a pipeline of micronet run, not a training run; choose another "
                f"--out, such as {self.path}-run"
            )

    def check_trainable(self) -> None:
        """Refuse to train a result that was made without training."""
        if self.result_file.is_file():
            raise RunError(
                f"{self.path} is a result, which cannot be trained further: train the run that it "
                "was made from, or choose another --out"
            )

    def check(
        self,
        recipe: Recipe,
        corpus: Corpus,
        inputs: Mapping[str, Input] | None = None,
        *,
        amend: bool = False,
    ) -> None:
        """Refuse to resume a run that was started with another recipe, corpus or other input.

        With `amend`, keys that may change during a run are not compared.
        """
        self.check_folder()
        self.check_trainable()
        if not self.recipe_file.is_file():
            return
        changed = [
            key
            for key in changed_keys(self.recipe(), recipe)
            if not (amend and key.startswith("train.") and key not in FIXED)
            # `auto` means the precision that the run was started with.
            and not (key == "train.precision" and recipe.train.precision == "auto")
        ]
        if changed:
            raise RunError(
                f"{self.path} holds a run with another {', '.join(changed)}: choose another --out, "
                f"or resume it unchanged: {resume_command(self.path, self.recipe())}"
            )
        self.corpus(corpus.path)
        for name, given in (inputs or {}).items():
            own = self.input(name)
            if given.fingerprint != own.fingerprint:
                raise RunError(
                    f"{given.path} are not the {name} of this run (fingerprint "
                    f"{given.fingerprint[:12]}, the run's is {own.fingerprint[:12]}): give the "
                    f"right ones with --{name}, or choose another --out"
                )

    def products(self) -> Products | None:
        """Read the precision of its products; None before training has begun."""
        file, remedy = self.precision_file, "remove it to choose the precision again"
        with suppress(FileNotFoundError), refusing_damage(file, RunError, remedy):
            return Products.from_json(read_json(file))
        return None

    def begin(
        self,
        recipe: Recipe,
        corpus: Corpus,
        inputs: Mapping[str, Input] | None = None,
        products: Products | None = None,
    ) -> None:
        """Record the run's recipe and inputs, before its first step."""
        if products is not None:
            write_text(self.precision_file, json.dumps(products.as_json(), indent=2) + "\n")
        own = Input(path=corpus.path, fingerprint=corpus.fingerprint)
        for name, given in {CORPUS: own, **(inputs or {})}.items():
            place = os.path.relpath(given.path, self.path)
            reference = {"path": place, "fingerprint": given.fingerprint}
            write_text(self.path / f"{name}.json", json.dumps(reference, indent=2) + "\n")
        write_text(self.recipe_file, sealed(dump_recipe(recipe)))

    def check_place(self, source: "Run") -> None:
        """Refuse to overwrite `source`, or anything that is not a result."""
        self.check_folder()
        if self.path.resolve() == source.path.resolve():
            raise RunError(f"{self.path} is the run itself: choose another --out")
        if self.recipe_file.is_file() and not self.result_file.is_file():
            raise RunError(f"{self.path} holds a trained run: choose another --out")
        held = self.path.is_dir() and any(self.path.iterdir())
        if held and not self.result_file.is_file():
            raise RunError(
                f"{self.path} exists and is not a result of an earlier call: choose another --out"
            )

    def write_result(
        self,
        record: Mapping[str, Any],
        recipe: Recipe,
        corpus: Corpus,
        model: LanguageModel,
        progress: Progress,
        source: "Run",
    ) -> None:
        """Write this folder as a run with a model that was made from `source` without training.

        `record` says how it was made. The source's Hebbian counters go along. Until it is complete,
        the folder is not a run.
        """
        counters = source.counters()
        with self.locked():
            self.recipe_file.unlink(missing_ok=True)
            write_text(self.result_file, json.dumps(record) + "\n")
            write_checkpoint(self.best, result_tensors(model), progress)
            if counters:
                write_checkpoint(self.path / COUNTERS, counters, progress)
            self.begin(recipe, corpus)

    def counters(self) -> dict[str, Tensor]:
        """Read how often its Hebbian update has seen each word; nothing if it had none."""
        for file in (self.last, self.path / COUNTERS):
            if file.is_file() and (found := read_checkpoint(file, prefix=SEEN).tensors):
                return found
        return {}

    def progress(self, which: Which = "best") -> Progress:
        """Read the run's progress at a checkpoint."""
        return read_checkpoint(self._checkpoint(which), prefix="none").progress

    def recipe(self) -> Recipe:
        """Read the run's resolved recipe."""
        return run_recipe(self.path)

    def corpus(self, path: Path | None = None) -> Corpus:
        """Open the corpus that the run was made with, at its recorded path or the given one."""
        own = self.input(CORPUS)
        return open_known(path or own.path, own.fingerprint)

    def input(self, name: str) -> Input:
        """Read an input's path and fingerprint from `corpus.json` or a similar file."""
        path, fingerprint = run_input(self.path, name)
        return Input(path=path, fingerprint=fingerprint)

    def model(self, which: Which = "best") -> LanguageModel:
        """Build the run's model with the weights of a checkpoint, on this process's device."""
        path = self._checkpoint(which)
        model = build_model(self.recipe())
        load_model(model, read_checkpoint(path, prefix="model."), path)
        return model.to(this_device()).eval()

    def _checkpoint(self, which: Which) -> Path:
        path = self.best if which == "best" else self.last
        if which == "best" and not path.is_file() and self.last.is_file():
            raise RunError(f"{self.path} has not been evaluated yet: choose --checkpoint last")
        return path

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock this folder for training; the lock is released when its process ends."""
        self.check_folder()
        try:
            with locked(self.path):
                for leftover in self.path.glob(".*.safetensors.*.tmp"):  # of a run that was killed
                    leftover.unlink()
                yield
        except BlockingIOError:
            raise RunError(
                f"another process is training in {self.path}: wait for it or choose another --out"
            ) from None


def resume_command(path: Path, recipe: Recipe) -> str:
    """Return the command that resumes a run."""
    verb = "distill" if recipe.distill else "train"
    verb = "quantize" if recipe.quantize else "prune" if recipe.prune else verb
    return f"micronet {verb} --resume {path}"
