"""Bytes and perplexity of KenLM's models of several orders and prunings, and the text under xz.

python benchmarks/ngram_sizes.py CORPUS --kenlm FOLDER [--json]

FOLDER holds KenLM's programs `lmplz`, `build_binary` and `query` (docs/results/short-texts.md has
how to build them). Models are estimated line by line with modified Kneser-Ney smoothing on the ids
of the training split, so that `<unk>` is an ordinary word. They are tries with 8-bit probabilities.
"""

import argparse
import json
import lzma
import re
import subprocess
import tempfile
from pathlib import Path

from micronet_lm.corpus import Corpus

PRUNINGS = {
    2: ["0", "0 1", "0 3"],
    3: ["0", "0 1", "0 1 2", "0 3 3"],
    5: ["0", "0 1", "0 1 1 2", "0 2 2 3", "0 5 5 5"],
}
"""By order: counts up to these numbers are left out, of each length of n-gram."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--kenlm", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    corpus = Corpus.open(asked.corpus)
    texts = {split: lines(corpus, split) for split in ("train", "valid", "test")}
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as folder:
        for order, prunings in PRUNINGS.items():
            for pruning in prunings:
                binary = estimated(asked.kenlm, texts["train"], order, pruning, Path(folder))
                found = {s: perplexity(asked.kenlm, binary, texts[s]) for s in ("valid", "test")}
                rows.append({"order": order, "pruning": pruning, "bytes": binary.stat().st_size})
                rows[-1].update(found)
                if not asked.json:
                    print(rows[-1], flush=True)
    floor = len(lzma.compress(words(corpus, "test"), preset=9 | lzma.PRESET_EXTREME))
    report = {"kenlm": rows, "xz": {"test_bytes": len(words(corpus, "test")), "compressed": floor}}
    print(json.dumps(report, indent=1) if asked.json else report["xz"])


def lines(corpus: Corpus, split: str) -> bytes:
    """Return a split with its words as numbers, one line per line of the text."""
    end = corpus.vocabulary.words.index("<eos>")
    numbers = ("\n" if n == end else f"{n} " for n in corpus.split(split).tolist())
    return "".join(numbers).encode()


def words(corpus: Corpus, split: str) -> bytes:
    """Return a split as its text of tokens."""
    names = corpus.vocabulary.words
    tokens = (names[n] for n in corpus.split(split).tolist())
    return "".join("\n" if name == "<eos>" else f"{name} " for name in tokens).encode()


def estimated(programs: Path, text: bytes, order: int, pruning: str, folder: Path) -> Path:
    """Return the file of a model of one order: a trie with 8-bit probabilities and backoffs."""
    arpa, binary = folder / "model.arpa", folder / "model.trie"
    given = ["-o", str(order), "-S", "500M", "-T", str(folder), "--arpa", str(arpa)]
    run([programs / "lmplz", *given, "--prune", *pruning.split()], text)
    run([programs / "build_binary", "-q", "8", "-b", "8", "-a", "22", "trie", arpa, binary])
    return binary


def perplexity(programs: Path, binary: Path, text: bytes) -> float:
    """Return KenLM's own perplexity of a text, line ends included."""
    said = run([programs / "query", "-v", "summary", binary], text)
    found = re.search(r"Perplexity including OOVs:\s*([\d.]+)", said)
    if found is None:
        raise SystemExit(f"KenLM's query printed no perplexity: {said!r}")
    return float(found[1])


def run(command: list[str | Path], text: bytes = b"") -> str:
    """Run a program and return what it printed; a failure ends this program with its message."""
    done = subprocess.run(command, input=text, capture_output=True, check=False)
    if done.returncode:
        raise SystemExit(f"{command[0]} failed: {done.stderr.decode(errors='replace')[-500:]}")
    return done.stdout.decode()


if __name__ == "__main__":
    main()
