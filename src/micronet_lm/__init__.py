"""Language models that fit anywhere."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from micronet_lm.runtime.model import LM, load
    from micronet_lm.runtime.scores import UnknownWordsWarning
    from micronet_lm.runtime.state import State

__version__ = "0.1.0"
__all__ = ["LM", "State", "UnknownWordsWarning", "__version__", "load"]

if not TYPE_CHECKING:  # a checker of types is to see the names above and no others

    def __dir__() -> list[str]:
        return __all__

    def __getattr__(name: str) -> Any:
        """Import the API for running models on first use, so that `--help` stays quick."""
        modules = {
            "LM": "model",
            "load": "model",
            "State": "state",
            "UnknownWordsWarning": "scores",
        }
        if name in modules:
            from importlib import import_module

            return getattr(import_module(f"micronet_lm.runtime.{modules[name]}"), name)
        raise AttributeError(f"module 'micronet_lm' has no attribute {name!r}")
