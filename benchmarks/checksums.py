"""What checksums cost: packed files, checkpoints and corpora with and without them, side by side.

    python benchmarks/checksums.py [FILE] [--rounds 40]

FILE is a packed model; without it, the model that ships with the package. Times are those of the
processor, so that other work on the machine changes them little.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

import micronet_lm
from micronet_lm.artifact import read_packed, write_packed
from micronet_lm.checksum import checksum, checksum_in_numpy
from micronet_lm.files import file_sha256
from micronet_lm.runs.checkpoint import (
    FORMAT,
    WITHOUT_CHECKSUMS,
    Progress,
    checksum_entries,
    open_checkpoint,
)
from micronet_lm.runtime.engines import Name, has_native, open_engine

DEMO = Path(micronet_lm.__file__).parent / "models" / "demo.safetensors"


def main() -> None:
    """Measure in turn, so that a busy machine disturbs all alike; print medians and least times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", nargs="?", type=Path, default=DEMO)
    parser.add_argument("--rounds", type=int, default=40)
    arguments = parser.parse_args()
    model = read_packed(arguments.file)
    with tempfile.TemporaryDirectory() as folder:
        paths = {}
        for name in ("with", "without"):
            paths[name] = Path(folder) / f"{name}.safetensors"
            write_packed(paths[name], model, with_checksum=name == "with")
        ids = [number * 7 % model.shape.bounds[-1] for number in range(2000)]
        engines: tuple[Name, ...] = ("native", "numpy") if has_native() else ("numpy",)
        for engine in engines:
            print(engine, json.dumps(_measured(engine, paths, ids, arguments.rounds), indent=1))
        data = paths["with"].read_bytes()
        times: dict[str, list[float]] = {}
        for _ in range(arguments.rounds):
            _time(times, "checksum", lambda: checksum(data))
            _time(times, "numpy", lambda: checksum_in_numpy(np.frombuffer(data, np.uint8)))
        speeds = {name: round(len(data) / min(found) / 1e9, 2) for name, found in times.items()}
        print(f"{len(data):,} bytes; GB/s: {speeds}")
        print("checkpoint", json.dumps(_checkpoint(Path(folder), arguments.rounds), indent=1))
        print("corpus", json.dumps(_corpus(Path(folder), arguments.rounds), indent=1))


def _checkpoint(folder: Path, rounds: int) -> dict[str, float]:
    """Write and read 24 tensors of a million floats, as a model and Adam's means have them."""
    generator = np.random.default_rng(0)
    tensors = {f"model.{n}": generator.normal(size=1 << 20).astype(np.float32) for n in range(24)}
    path, times = folder / "last.safetensors", dict[str, list[float]]()
    progress = json.dumps(vars(Progress()))

    def write(with_sums: bool) -> None:
        format_ = FORMAT if with_sums else WITHOUT_CHECKSUMS
        sums = checksum_entries(tensors, progress) if with_sums else {}
        save_file(tensors, path, {"format": format_, "progress": progress, **sums})

    def read() -> None:
        with open_checkpoint(path) as reader:
            for name in reader.names:
                reader.tensor(name)

    for _ in range(max(3, rounds // 8)):
        for name in ("with", "without"):
            _time(times, f"write {name}", partial(write, name == "with"))
            _time(times, f"read {name}", read)
    return _summary(times)


def _corpus(folder: Path, rounds: int) -> dict[str, float]:
    """Hash ids of a split once, as opening it does, beside what reading them all takes."""
    path, times = folder / "train.npy", dict[str, list[float]]()
    np.save(path, np.random.default_rng(0).integers(0, 30000, 8 << 20).astype(np.uint16))
    for _ in range(max(3, rounds // 8)):
        _time(times, "sha256", partial(file_sha256, path))
        _time(times, "sum", lambda: int(np.load(path, mmap_mode="r").sum(dtype=np.int64)))
    size = path.stat().st_size
    return {f"{name}, ms per 100 MB": round(min(t) / size * 1e11, 1) for name, t in times.items()}


def _measured(
    engine: Name, paths: dict[str, Path], ids: list[int], rounds: int
) -> dict[str, float]:
    times: dict[str, list[float]] = {}
    opened = {name: open_engine(path, engine) for name, path in paths.items()}
    for number in range(rounds):
        # The one that goes first pays for what the other finds in the processor's cache.
        for name in ("with", "without") if number % 2 else ("without", "with"):
            _time(times, f"open {name}", partial(open_engine, paths[name], engine))
            if engine == "native" and number < 10:
                _time(times, f"score {name}", partial(opened[name].score, ids))
    return _summary(times)


def _time(times: dict[str, list[float]], name: str, call: Callable[[], object]) -> None:
    begin = time.process_time()  # of this process alone: others do not count
    call()
    times.setdefault(name, []).append(time.process_time() - begin)


def _summary(times: dict[str, list[float]]) -> dict[str, float]:
    found = {}
    for name in {name.split()[0]: None for name in times}:
        for pick, kind in ((statistics.median, "median"), (min, "least")):
            pair = [pick(times[f"{name} {which}"]) for which in ("with", "without")]
            found[f"{name}, {kind}, ms without"] = round(1000 * pair[1], 3)
            found[f"{name}, {kind}, with / without"] = round(pair[0] / pair[1], 4)
    return found


if __name__ == "__main__":
    main()
