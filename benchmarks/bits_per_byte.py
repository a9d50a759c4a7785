"""Bits per byte of a text: packed models beside KenLM with a spelling model, and compressors.

    python benchmarks/bits_per_byte.py src/micronet_lm/models/demo.safetensors \
        --corpus data/python-docs --lmplz lmplz

The text is the test split of the corpus's source, or another one, as the model's tokenizer keeps
it. A model that cannot spell gets a spelling model of the corpus's rare words, at most 5 % of its
file. KenLM's 5-gram (modified Kneser-Ney) has the same vocabulary and the same spelling model.
Compressors see the text alone (`alone`), and after the training split (`after`: the bytes that the
text adds to those of the training split, which is what models know, too).
"""

import argparse
import json
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from keystrokes import kenlm, source_text
from micronet_lm.artifact import read_packed, write_packed
from micronet_lm.artifact.spelled import spelling_of
from micronet_lm.config import SpellingConfig
from micronet_lm.corpus import Corpus
from micronet_lm.runtime.model import LM, load

COMPRESSORS = {
    "xz -9e": ["xz", "-9e", "-k", "-c"],
    "zstd -19 --ultra": ["zstd", "-19", "--ultra", "-q", "-c"],
    "7z PPMd": ["7z", "a", "-m0=PPMd:o=16:mem=256m", "-bso0", "-bsp0"],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("models", type=Path, nargs="+", help="packed models of the corpus")
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument(
        "--lmplz", help="KenLM's program of that name; without it KenLM is left out"
    )
    parser.add_argument("--text", type=Path, help="the text to score; the test split without it")
    parser.add_argument("--from", type=Path, dest="place", help="where a published corpus is")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    corpus = Corpus.open(arguments.corpus)
    rows: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if arguments.text:
            text = arguments.text.read_text(encoding="utf-8")
        else:
            text = source_text(corpus, "test", arguments.place)
        lm = None
        for path in arguments.models:
            own = spelled(path, corpus, folder / path.name)
            lm = load(own)
            for learn in (False, True):
                found = lm.open_score(text, learn=learn)
                how = "learning" if learn else "fixed"
                rows[f"{path.name}, {how}"] = {
                    "bits per byte": found.bits_per_byte,
                    "bits per character": found.bits_per_character,
                    "bytes of the model": own.stat().st_size,
                    "words spelled": found.spelled,
                }
        assert lm is not None  # noqa: S101
        shown = lm.join(lm.encoder.tokens(text))
        if arguments.lmplz:
            other: LM = kenlm(arguments.lmplz, corpus, lm, folder)
            found = other.open_score(text, learn=False)
            rows["KenLM 5-gram with the spelling model"] = {
                "bits per byte": found.bits_per_byte,
                "bits per character": found.bits_per_character,
                "bytes of the model": (folder / "5-gram.arpa").stat().st_size,
            }
        rows |= compressed(shown, source_text(corpus, "train", arguments.place), folder)
    size = len(shown.encode())
    if arguments.json:
        print(json.dumps({"bytes": size, "characters": len(shown), "rows": rows}))
        return
    print(f"{size:,} bytes, {len(shown):,} characters\n")
    columns = ["bits per byte", "bits per character", "bytes of the model", "words spelled"]
    print("| | " + " | ".join(columns) + " |\n" + "|---" * 5 + "|")
    for row, values in rows.items():
        cells = [f"{values[c]:,.3f}" if c in values else "" for c in columns[:2]]
        cells += [f"{values[c]:,}" if c in values else "" for c in columns[2:]]
        print(f"| {row} | " + " | ".join(cells) + " |")


def spelled(path: Path, corpus: Corpus, out: Path) -> Path:
    """Return a file of the model that can spell."""
    model = read_packed(path)
    if model.spelling is not None:
        return path
    spelling = spelling_of(corpus, SpellingConfig(), path.stat().st_size)
    write_packed(out, replace(model, spelling=spelling))
    return out


def compressed(text: str, before: str, folder: Path) -> dict[str, dict[str, float]]:
    """Compress a text alone and after another one with every program that is installed."""
    size, characters = len(text.encode()), len(text)
    rows = {}
    for name, command in COMPRESSORS.items():
        if not shutil.which(command[0]):
            continue
        run = _compressor(command, folder)
        alone, both, first = run(text), run(before + text), run(before)
        for how, taken in (("alone", alone), ("after the training split", both - first)):
            rows[f"{name}, {how}"] = {
                "bits per byte": 8 * taken / size,
                "bits per character": 8 * taken / characters,
            }
    return rows


def _compressor(command: list[str], folder: Path) -> Callable[[str], int]:
    def run(text: str) -> int:
        source, archive = folder / "text", folder / "archive.7z"
        source.write_text(text, encoding="utf-8")
        archive.unlink(missing_ok=True)
        into = [str(archive)] if command[0] == "7z" else []
        done = subprocess.run([*command, *into, str(source)], capture_output=True, check=True)
        return archive.stat().st_size if into else len(done.stdout)

    return run


if __name__ == "__main__":
    main()
