"""Where packed models lie: by path, in the folder of a run, or by the name of one that ships."""

from importlib import resources
from pathlib import Path

from micronet_lm.errors import ArtifactError
from micronet_lm.runs.files import PACKED

_MODELS = resources.files("micronet_lm") / "models"


def shipped_models() -> list[str]:
    """Name the models that ship with the package."""
    return sorted(Path(entry.name).stem for entry in _MODELS.iterdir() if entry.is_file())


def shipped_model(name: str = "demo") -> Path:
    """Return the packed file of a model that ships; its card says which command made it."""
    return Path(str(_MODELS / f"{name}.safetensors"))


def packed_file(model: Path | str) -> Path:
    """Return the packed file that is meant: a file, a folder that holds one, or a name."""
    path = Path(model)
    if path.is_dir():
        for place in (path / PACKED, path / "packed" / PACKED):
            if place.is_file():
                return place
        raise ArtifactError(
            f"the folder {path} holds no packed model ({PACKED}): pack it with micronet pack {path}"
        )
    if not path.exists() and str(model) in shipped_models():
        return shipped_model(str(model))
    return path
