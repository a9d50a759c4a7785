"""Measure how fast each tokenizer converts WikiText-2's train split, repeated to 100 MB, to ids.

Both passes of a build are measured, each tokenizer in a separate process, together with the
growth of the process's peak memory.

    python benchmarks/corpus.py [--from DIR] [--megabytes N] [--json]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from micronet_lm.corpus import Vocabulary, tokenizer
from micronet_lm.corpus.archives import members
from micronet_lm.corpus.build import count, encode
from micronet_lm.corpus.source import find_source
from micronet_lm.corpus.tokenizers import TOKENIZERS
from micronet_lm.corpus.wikitext import FILES, find_place


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    data = Path(os.environ.get("MICRONET_DATA") or beside)
    parser.add_argument("--from", dest="place", type=Path, default=data, metavar="PATH")
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--measure", nargs=2, metavar=("TEXT", "TOKENIZER"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(*arguments.measure)))
        return
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "text.txt"
        write_text(text, arguments.place, arguments.megabytes * 1_000_000)
        results = {name: in_own_process(text, name) for name in TOKENIZERS}
    if arguments.json:
        print(json.dumps({"benchmark": "corpus", "megabytes": arguments.megabytes, **results}))
        return
    print(f"{'tokenizer':<12}{'tokens':>13}{'count M/s':>12}{'encode M/s':>12}{'memory MB':>12}")
    for name, row in results.items():
        print(
            f"{name:<12}{row['tokens']:>13,.0f}{row['count_tokens_per_second'] / 1e6:>12.2f}"
            f"{row['encode_tokens_per_second'] / 1e6:>12.2f}{row['memory_growth'] / 1e6:>12.1f}"
        )


def write_text(path: Path, place: Path, size: int) -> None:
    """Repeat the train split up to a size in bytes."""
    train = b""
    for member in members(find_place("wikitext-2", place), tuple(FILES)):
        if FILES[member.name] == "train":
            train = member.stream.read()
    with path.open("wb") as file:
        while (left := size - file.tell()) > 0:
            file.write(train[:left].rpartition(b"\n")[0] + b"\n" if left < len(train) else train)


def in_own_process(text: Path, name: str) -> dict[str, float]:
    command = [sys.executable, __file__, "--measure", str(text), name]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    result: dict[str, float] = json.loads(done.stdout)
    return result


def measure(text: str, name: str) -> dict[str, float]:
    chosen = tokenizer(name)
    source = find_source(text, from_path=None, split=None, tokenizer=None, downloads=Path())
    before = peak_memory()
    start = time.perf_counter()
    counts = count(source, chosen)
    counted = time.perf_counter()
    vocabulary = Vocabulary.from_counts(counts.words)
    ready = time.perf_counter()
    encode(source, chosen, vocabulary, counts.tokens, Path(text).parent / name)
    encoded = time.perf_counter()
    after = peak_memory()
    tokens = counts.tokens.total()
    return {
        "tokens": tokens,
        "vocabulary": vocabulary.size,
        "count_tokens_per_second": tokens / (counted - start),
        "encode_tokens_per_second": tokens / (encoded - ready),
        "memory_growth": after - before,
    }


def peak_memory() -> int:
    """Return the peak memory of this process in bytes (Linux).

    `getrusage` is not used, because its peak includes that of the parent process.
    """
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


if __name__ == "__main__":
    main()
