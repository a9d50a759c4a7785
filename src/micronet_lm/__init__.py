"""Language models that fit anywhere."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from micronet_lm.runtime.model import LM, State, load

__version__ = "0.1.0"
__all__ = ["LM", "State", "__version__", "load"]


def __getattr__(name: str) -> Any:
    """Import the API for running models on first use, so that `--help` stays quick."""
    if name in {"LM", "State", "load"}:
        from micronet_lm.runtime import model

        return getattr(model, name)
    raise AttributeError(f"module 'micronet_lm' has no attribute {name!r}")
