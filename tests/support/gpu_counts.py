"""The operations that one training step of the paper's student launches on a GPU, by part.

`python -m tests.support.gpu_counts RECIPE gpu-sizes [KEY=NUMBER…]` prints one JSON object;
`cpu-sizes` computes in the pieces of a processor. Widths are small, as they change no count: the
numbers of tokens, words, layers and heads are the recipe's.
"""

import json
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest import mock

import numpy as np
import torch
from tests.support.gpu_stages import on_device
from tests.support.pretended_gpu import NAME, PretendedGpu, bring_gpu
from torch import Tensor

from micronet_lm.config import Recipe, load_recipe
from micronet_lm.corpus import Corpus
from micronet_lm.model import Cache, LanguageModel, sizes
from micronet_lm.model.adaptive import AdaptiveSoftmax
from micronet_lm.training import Run, next_word_loss
from micronet_lm.training.hebbian import Hebbian
from micronet_lm.training.loop import make_deterministic
from micronet_lm.training.optimizer import Optimizer
from micronet_lm.training.precision import Products
from micronet_lm.training.processes import joined_processes
from micronet_lm.training.trainer import Trainer

NARROW = {
    "model.width": 16,
    "model.embedding_widths": [16, 4, 2],
    "model.key_width": 2,
    "model.value_width": 2,
    "model.ffn_width": 16,
}
PARTS = {
    (LanguageModel, "forward"): "embedding and layers",
    (AdaptiveSoftmax, "log_probability"): "softmax",
    (Cache, "log_probability"): "cache",
    (Tensor, "backward"): "backward",
    (Optimizer, "step"): "optimizer",
    (Hebbian, "after_step"): "Hebbian update",
}


def text(recipe: Recipe) -> Corpus:
    """Make a corpus of random words, the frequent ones first, as the paper's bins have them."""
    random, words = np.random.default_rng(0), recipe.model.bounds
    shares = (0.807, 0.145, 0.048)  # of WikiText-103's test split
    bins = random.choice(3, size=60_000, p=shares)
    low, high = np.array(words[:-1])[bins], np.array(words[1:])[bins]
    ids = (low + random.random(len(bins)) * (high - low)).astype(np.uint32)
    vocabulary = SimpleNamespace(counts=[1] * words[-1], id=lambda _: 0)
    made = SimpleNamespace(vocabulary=vocabulary, split=lambda _: ids)
    return cast("Corpus", made)


def count(recipe: Recipe) -> dict[str, Any]:
    """Return what the second step launches and waits for."""
    make_deterministic()
    with on_device(NAME) as gpu, tempfile.TemporaryDirectory() as folder:
        assert gpu is not None
        with joined_processes() as processes:
            plugins = [Hebbian(recipe.hebbian)] if recipe.hebbian else []
            made = (Run(Path(folder)), recipe, text(recipe), processes, next_word_loss, plugins)
            trainer = Trainer(*made, products=Products(precision="float32"))
            parts: Counter[str] = Counter()
            trainer.step()
            gpu.called = 0
            gpu.launched.clear()
            gpu.waited.clear()
            gpu.copied.clear()
            patches = [
                mock.patch.object(owner, name, counted(getattr(owner, name), gpu, parts, part))
                for (owner, name), part in PARTS.items()
            ]
            for patch in patches:
                patch.start()
            trainer.step()
            mock.patch.stopall()
    parts["the rest"] = gpu.launched.total() - parts.total()
    return {
        "parts": parts,
        "launched": gpu.launched.total(),
        "called": gpu.called,
        "most": dict(gpu.launched.most_common(12)),
        "waited": gpu.waited,
        "copies": gpu.copied,
    }


def counted(function: Any, gpu: PretendedGpu, parts: Counter[str], part: str) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        before, inner = gpu.launched.total(), parts.total()
        result = function(*args, **kwargs)
        parts[part] += gpu.launched.total() - before - (parts.total() - inner)
        return result

    return call


if __name__ == "__main__":
    warnings.simplefilter("error")
    torch.set_num_threads(1)
    bring_gpu()
    name, small, *changes = sys.argv[1:]
    if small == "cpu-sizes":
        sizes.GPU = sizes.CPU
    own = dict(change.split("=") for change in changes)
    wanted = load_recipe(name, {**NARROW, **{k: int(v) for k, v in own.items()}})
    print(json.dumps(count(wanted)))  # noqa: T201
