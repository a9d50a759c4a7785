"""Find packed models: by path, in the folder of a run, or by the name of one that ships."""

from importlib import resources
from pathlib import Path

from micronet_lm.errors import ArtifactError, nearest
from micronet_lm.runs import is_run
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
    if not isinstance(model, str | Path):
        raise ArtifactError(f"a model is a path or a name, got {type(model).__name__}")
    path = Path(model)
    if path.is_dir():
        if place := packed_in(path):
            return place
        remedy = (
            f"pack it with micronet pack {path}"
            if is_run(path)
            else "give a packed file, or the folder of a run or of a finished pipeline"
        )
        raise ArtifactError(f"the folder {path} holds no packed model ({PACKED}): {remedy}")
    if not path.exists() and str(model) in shipped_models():
        return shipped_model(str(model))
    hint = nearest(str(model), shipped_models())
    if not path.exists() and hint:
        raise ArtifactError(f"there is no file or model {path}{hint}")
    return path


def file_to_open(model: Path | str) -> Path:
    """Return the packed file that is meant; refuse what is neither a file nor a model's name."""
    path = packed_file(model)
    if not path.exists() and path.suffix != Path(PACKED).suffix:
        raise ArtifactError(
            f"there is no file or model {path}: give a packed file, the folder of a run or "
            f"pipeline, or the name of a model that ships ({', '.join(shipped_models())})"
        )
    return path


def packed_in(folder: Path) -> Path | None:
    """Return the packed file of a run's or pipeline's folder; None if there is none."""
    places = (folder / PACKED, folder / "packed" / PACKED)
    return next((place for place in places if place.is_file()), None)
