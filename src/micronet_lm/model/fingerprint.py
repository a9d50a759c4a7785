"""A hash that identifies a model; results made from a model record it."""

import hashlib
import json

from micronet_lm.config import identifying
from micronet_lm.model.transformer import LanguageModel


def fingerprint_of(model: LanguageModel) -> str:
    """Return one hash of a model's weights, shape and cache."""
    cache = "0"
    if model.cache is not None:
        cache = str(model.cache.size) + (f" ramp {model.cache.ramp}" if model.cache.ramp else "")
        cache += f" fade {model.cache.fade}" if model.cache.fade else ""
    shape = json.dumps(identifying(model.config, "model."), separators=(",", ":"))
    digest = hashlib.sha256(f"{shape} cache {cache}\n".encode())
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().data)
    return digest.hexdigest()
