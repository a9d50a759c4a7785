"""The model that ships with the package: half a megabyte, trained on Python's documentation."""

from importlib import resources
from pathlib import Path


def demo_model() -> Path:
    """Return the path of the packed demo model; its card names the command that made it."""
    return Path(str(resources.files("micronet_lm") / "models" / "demo.safetensors"))
