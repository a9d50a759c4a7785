"""Choose the engine that runs a packed file: the native one where it is built, else NumPy."""

from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from micronet_lm.errors import InferenceError
from micronet_lm.runtime.engine import Engine

Name = Literal["auto", "native", "numpy"]
NAMES: tuple[Name, ...] = ("auto", "native", "numpy")


def has_native() -> bool:
    """Return whether the native engine was built with this package."""
    return find_spec("micronet_lm.runtime._native") is not None


def open_engine(path: Path | str, name: Name = "auto") -> Engine:
    """Open a packed file with an engine; `auto` takes the native one where it is built."""
    if name not in NAMES:
        raise InferenceError(f"there is no engine {name!r}: choose one of {', '.join(NAMES)}")
    if name == "native" and not has_native():
        raise InferenceError(
            "the native engine is not built in this installation: choose the engine 'numpy', or "
            "install again with a C++ compiler"
        )
    if name == "native" or (name == "auto" and has_native()):
        from micronet_lm.runtime.native import NativeEngine

        return NativeEngine(path)

    from micronet_lm.runtime.reference import NumpyEngine

    return NumpyEngine(path)
