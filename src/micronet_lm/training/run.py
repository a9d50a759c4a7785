"""A run's folder: its recipe, its corpus, its metrics and its checkpoints."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import yaml

from micronet_lm.config import Recipe, changed_keys, dump_recipe, parse_recipe
from micronet_lm.corpus import Corpus
from micronet_lm.errors import ConfigError, RunError
from micronet_lm.files import write_text
from micronet_lm.model import LanguageModel
from micronet_lm.training.checkpoint import load_model, read_checkpoint

FIXED = {"train.batch", "train.window", "train.sampling", "train.seed"}
"""Keys of `train` that a run keeps from its first step on: they say which text comes when."""


class Run:
    """Names and small files of one run folder; the tensors are read on demand."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def last(self) -> Path:
        """The newest checkpoint, with all that training needs to go on."""
        return self.path / "last.safetensors"

    @property
    def best(self) -> Path:
        """The model with the smallest validation loss."""
        return self.path / "best.safetensors"

    @property
    def recipe_file(self) -> Path:
        """The resolved recipe."""
        return self.path / "recipe.yaml"

    @property
    def search_file(self) -> Path:
        """The cache search that this folder is the result of, if it is one."""
        return self.path / "search.json"

    @classmethod
    def open(cls, path: Path) -> "Run":
        """Open a folder that a training run has begun."""
        run = cls(path)
        if not run.recipe_file.is_file():
            raise RunError(
                f"{path} is not a run: it has no recipe.yaml ('micronet train' makes one)"
            )
        return run

    def check(self, recipe: Recipe, corpus: Corpus, *, amend: bool = False) -> None:
        """Refuse to go on with a run that was begun with another recipe or corpus.

        With `amend`, what a run can change on its way is left out of the comparison.
        """
        if self.search_file.is_file():
            raise RunError(
                f"{self.path} is the result of a cache search and not trained further; "
                "train the run that was searched, or choose another --out"
            )
        if not self.recipe_file.is_file():
            return
        changed = [
            key
            for key in changed_keys(self.recipe(), recipe)
            if not (amend and key.startswith("train.") and key not in FIXED)
        ]
        if changed:
            raise RunError(
                f"{self.path} holds a run with another {', '.join(changed)}; choose another --out, "
                f"or go on with it as it is: micronet train --resume {self.path}"
            )
        self.corpus(corpus.path)

    def begin(self, recipe: Recipe, corpus: Corpus) -> None:
        """Write down what this run is made of, before its first step."""
        place = os.path.relpath(corpus.path, self.path)
        reference = {"path": place, "fingerprint": corpus.fingerprint}
        write_text(self.path / "corpus.json", json.dumps(reference, indent=2) + "\n")
        write_text(self.recipe_file, dump_recipe(recipe))

    def recipe(self) -> Recipe:
        """Read the run's resolved recipe."""
        try:
            tree = yaml.safe_load(self.recipe_file.read_text(encoding="utf-8"))
            return parse_recipe(tree, origin="its recipe")
        except (yaml.YAMLError, UnicodeDecodeError, ConfigError) as error:
            why = " ".join(str(error).split())
            raise RunError(f"{self.recipe_file} is damaged ({why}); restore it") from None

    def corpus(self, path: Path | None = None) -> Corpus:
        """Open the corpus that the run was made with, wherever it is now."""
        try:
            reference: dict[str, Any] = json.loads((self.path / "corpus.json").read_text("utf-8"))
            place = path or Path(os.path.normpath(self.path / reference["path"]))
            fingerprint = str(reference["fingerprint"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise RunError(
                f"{self.path}/corpus.json cannot be read ({error}); restore it"
            ) from None
        if not place.is_dir():
            raise RunError(f"the run's corpus is no longer at {place}; name it with --corpus")
        corpus = Corpus.open(place)
        if corpus.fingerprint != fingerprint:
            raise RunError(
                f"{place} is not the corpus of this run (fingerprint {corpus.fingerprint[:12]}, "
                f"the run's is {fingerprint[:12]}); name the right one with --corpus"
            )
        return corpus

    def model(self, which: Literal["best", "last"] = "best") -> LanguageModel:
        """Build the run's model with the weights of a checkpoint."""
        path = self.best if which == "best" else self.last
        if which == "best" and not path.is_file() and self.last.is_file():
            raise RunError(f"{self.path} has not been evaluated yet; take --checkpoint last")
        recipe = self.recipe()
        model = LanguageModel(recipe.model, recipe.cache)
        load_model(model, read_checkpoint(path, prefix="model."), path)
        return model.eval()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from training in this folder; the lock dies with its holder."""
        self.path.mkdir(parents=True, exist_ok=True)
        with (self.path / ".lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise RunError(
                    f"another process is training in {self.path}; "
                    "wait for it or choose another --out"
                ) from None
            for leftover in self.path.glob(".*.safetensors.*.tmp"):  # of a run that was killed
                leftover.unlink()
            yield
