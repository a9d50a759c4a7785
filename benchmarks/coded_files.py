"""Bytes and opening time of a packed model with prefix codes, beside the same without them."""

import argparse
import json
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from micronet_lm.artifact import open_packed, write_packed
from micronet_lm.artifact.anatomy import file_bytes
from micronet_lm.runtime.engines import NAMES, has_native, open_engine
from micronet_lm.runtime.places import packed_file


def seconds_to_open(path: Path, engine: str) -> float:
    """Return the processor time of opening a file once."""
    begin = time.process_time()
    open_engine(path, engine)  # type: ignore[arg-type]  # one of NAMES
    return time.process_time() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?", default="demo", help="a packed file, or a shipped name")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    model = open_packed(packed_file(arguments.model)).model
    with tempfile.TemporaryDirectory() as folder:
        files = {name: Path(folder) / name for name in ("plain", "coded")}
        for name, path in files.items():
            write_packed(path, replace(model, coded=name == "coded"))
        found: dict[str, object] = {
            name: file_bytes(open_packed(path).container) for name, path in files.items()
        }
        for engine in (name for name in NAMES if name != "auto"):
            if engine == "native" and not has_native():
                continue
            times = [
                {name: seconds_to_open(path, engine) for name, path in files.items()}
                for _ in range(arguments.rounds)
            ]
            found[f"opening, {engine}"] = {
                "milliseconds": {
                    name: 1e3 * statistics.median(own[name] for own in times) for name in files
                },
                "ratio": statistics.median(own["coded"] / own["plain"] for own in times),
            }
    if arguments.json:
        print(json.dumps(found))
        return
    for what, numbers in found.items():
        print(f"{what}: {numbers}")


if __name__ == "__main__":
    main()
