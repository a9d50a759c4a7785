"""Convert a quantized model to stored integers and scales, and back.

`NAME` holds a parameter's integers and `NAME.steps` its scales; `activations.PLACE` holds a row
(range, scale) for each quantizer of a place. Tensors that are not quantized are stored unchanged.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from micronet_lm.model.transformer import LanguageModel

_OWN = "quantizers."
"""Prefix of the names of the quantizers' own tensors in a state."""


_MODULE, _FILE = ".scales", ".steps"
"""Suffix of a quantizer's scales in a module and, since the first format, in files."""


def file_names(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors of a module's state by their names in files."""
    return _renamed(state, _MODULE, _FILE)


def module_names(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return a file's tensors by their names in a module's state."""
    return _renamed(tensors, _FILE, _MODULE)


def _renamed(tensors: Mapping[str, Tensor], old: str, new: str) -> dict[str, Tensor]:
    return {
        name.removesuffix(old) + new if name.startswith(_OWN) and name.endswith(old) else name: t
        for name, t in tensors.items()
    }


@torch.no_grad()
def stored_tensors(model: LanguageModel) -> dict[str, Tensor]:
    """Return a model's tensors as they are stored: floats, or integers with scales."""
    state: dict[str, Tensor] = dict(model.state_dict())
    if model.quantizers is None:
        return state
    found = {name: tensor for name, tensor in state.items() if not name.startswith(_OWN)}
    for name, quantizer in model.quantizers.of_weights().items():
        dtype = torch.int8 if quantizer.bits <= 8 else torch.int16
        found[name] = quantizer.integers(state[name]).to(dtype)
        found[f"{name}.steps"] = quantizer.current_scales().clone()
    for place, quantizers in model.quantizers.of_activations().items():
        columns = (quantizers.current_ranges(), quantizers.current_scales())
        found[f"activations.{place}"] = torch.stack(columns, dim=1)
    return found


def is_stored(tensors: Mapping[str, Tensor]) -> bool:
    """Return whether tensors come from `stored_tensors` rather than from a plain state."""
    return not any(name.startswith(_OWN) for name in tensors)


@torch.no_grad()
def state_of_stored(model: LanguageModel, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Convert stored tensors to a state for a model that is quantized in the same way.

    Mismatches are left to the loading of the state to report.
    """
    if model.quantizers is None:
        return dict(tensors)
    state = dict(tensors)
    for name, quantizer in model.quantizers.of_weights().items():
        scales = state.pop(f"{name}.steps", None)
        if name not in state or scales is None or state[name].is_floating_point():
            continue
        own = f"{_OWN}weights.{name.replace('.', '/')}"
        whole = state[name]
        state[name] = whole.float() * scales.view(-1, *[1] * (whole.ndim - 1))
        state[f"{own}.scales"] = scales
        if quantizer.moves is not None:
            state[f"{own}.moves"] = torch.zeros_like(scales)
    for place, quantizers in model.quantizers.of_activations().items():
        rows = state.pop(f"activations.{place}", None)
        if rows is None:
            continue
        own = f"{_OWN}activations.{place}"
        state[f"{own}.ranges"], state[f"{own}.scales"] = rows.unbind(dim=1)
        if quantizers.moves is not None:
            state[f"{own}.moves"] = torch.zeros(len(rows))
    return state
