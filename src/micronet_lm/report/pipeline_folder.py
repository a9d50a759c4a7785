"""The folder of a pipeline as reports read it: its records, and what it was started with."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from micronet_lm.errors import RunError
from micronet_lm.files import read_json, refusing_damage
from micronet_lm.pipeline.stages import MODELS
from micronet_lm.pipeline.workspace import RECORDS, read_record

SETUP = "pipeline.json"
"""What a pipeline was started with, in its folder."""

_FIRST = ("corpus", "teacher", "soft-labels", "student", "sensitivity")
STAGES: tuple[str, ...] = (*_FIRST, *MODELS[1:], "pack", "account")
"""All stages that a pipeline may have before its report, in order."""

_FOLDERS = {"prune": "pruned", "search-cache": "searched", "quantize": "quantized"}
_FOLDERS["search-again"] = "again"


def is_pipeline(folder: Path) -> bool:
    """Return whether a folder is that of a pipeline."""
    return (folder / RECORDS).is_dir()


@dataclass(frozen=True, kw_only=True)
class PipelineFolder:
    """A pipeline's folder, finished or not."""

    root: Path
    records: dict[str, Any]
    """The record of each stage, in the stages' order."""
    setup: dict[str, Any]

    @classmethod
    def open(cls, root: Path) -> "PipelineFolder":
        """Read all records; refuse a folder without any."""
        read = (read_record(file) for file in (root / RECORDS).glob("*.json"))
        found = {record.stage: vars(record) for record in read if record is not None}
        records = {name: found[name] for name in STAGES if name in found}
        if not records:
            raise RunError(f"{root} has no stage yet; begin it with micronet run")
        return cls(root=root, records=records, setup=_setup(root / SETUP))

    @property
    def finished(self) -> bool:
        """Whether its account is complete and no stage has started again since."""
        account = self.records.get("account", {"complete": False})
        return bool(account["complete"]) and all(
            name in self.records
            and self.records[name]["complete"]
            and self.records[name]["fingerprint"] == fingerprint
            for name, fingerprint in account["needs"].items()
        )

    @property
    def name(self) -> str:
        """Name of the recipe; of the folder, if the recipe is not recorded."""
        packed = self.records.get("pack", {}).get("settings", {})
        return plain_path(self.setup.get("recipe", packed.get("name", self.root.resolve().name)))

    @property
    def commands(self) -> list[str]:
        """The commands to make it again and to use it; the first is the one that made it."""
        if self.setup:
            overrides = self.setup["overrides"].items()
            words = "".join(f" --{key} {_word(value)}" for key, value in overrides)
            first = f"micronet run {self.name}{words} --out DIR"
        else:  # only a report writes them down
            first = "micronet run RECIPE [--section.key VALUE ...] --out DIR"
        return [
            first,
            "micronet report DIR",
            "micronet inspect DIR/packed/model.safetensors",
            'micronet predict "..." -m DIR/packed/model.safetensors',
        ]

    def runs(self, names: Sequence[str]) -> dict[str, Path]:
        """Return the folders of those of some stages that have begun."""
        return {n: self.root / _FOLDERS.get(n, n) for n in names if n in self.records}

    def seconds(self, stage: str) -> float:
        """Return how long a stage took."""
        record = self.records[stage]
        return float(record["result"].get("seconds", record["seconds"]))


def _setup(file: Path) -> dict[str, Any]:
    """Read what a pipeline was started with; nothing if only its report would write it down."""
    remedy = "remove it to have a report without the recipe's name"
    with suppress(FileNotFoundError), refusing_damage(file, RunError, remedy):
        setup: dict[str, Any] = read_json(file)
        if not isinstance(setup["recipe"], str) or not isinstance(setup["overrides"], dict):
            raise ValueError("it names no recipe or no overrides")
        return setup
    return {}


def plain_path(word: str) -> str:
    """Return only the last part of an absolute path, because reports are shared."""
    return Path(word).name if Path(word).is_absolute() else word


def _word(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(map(str, value))
    return "none" if value is None else plain_path(str(value))
