"""The model that ships with the package: Python's own documentation in half a megabyte."""

from importlib import resources
from pathlib import Path


def demo_model() -> Path:
    """Give the packed demo; its card says which command made it."""
    return Path(str(resources.files("micronet_lm") / "models" / "demo.safetensors"))
