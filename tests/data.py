"""Where tests and benchmarks find WikiText-2, which is no part of the project."""

import os
from pathlib import Path

MISSING = "WikiText-2 is not here: set MICRONET_DATA to a folder with wikitext-2*.zip or .tar*"


def data_folder() -> Path:
    """Give the folder that data is looked for in, whether it exists or not."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    return Path(os.environ.get("MICRONET_DATA") or beside)


def wikitext_2_archive() -> Path | None:
    """Give the archive in the folder MICRONET_DATA, or else in `../shared/data`."""
    folder = data_folder()
    found = sorted([*folder.glob("wikitext-2*.zip"), *folder.glob("wikitext-2*.tar*")])
    return found[0] if found else None
