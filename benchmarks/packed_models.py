"""Packed models of the paper's shape with random weights, and the same weights in torch."""

from pathlib import Path

import torch

from micronet_lm.artifact import read_packed, write_packed
from micronet_lm.artifact.random_model import Choice, random_model
from micronet_lm.config import CODE_PLACES, CacheConfig, load_recipe
from micronet_lm.model import LanguageModel


def paper_student(path: Path, *, bits: int, cache: int, sparsity: float, vocabulary: int) -> None:
    """Write the paper's student, pruned, and quantized at the places of the authors' code."""
    shape = load_recipe("paper/student", {"model.vocabulary": vocabulary}).model
    choice = Choice(
        cache=cache,
        sparsity=sparsity,
        bits=bits,
        places=CODE_PLACES if bits < 32 else (),
        scale_per_row=bits < 32,
    )
    write_packed(path, random_model(shape, choice))


def torch_model(path: Path) -> LanguageModel:
    """Return a torch model with the weights of a packed file as fp32, not quantized."""
    packed = read_packed(path)
    own_cache = packed.cache
    cache = None
    if own_cache is not None:
        cache = CacheConfig(**vars(own_cache))
    model = LanguageModel(packed.shape, cache)
    floats = {name: torch.tensor(w.floats()) for name, w in packed.tensors.items()}
    own = {name: value for name, value in model.state_dict().items() if name.startswith("cache.")}
    model.load_state_dict({**floats, **own})
    return model.eval()
