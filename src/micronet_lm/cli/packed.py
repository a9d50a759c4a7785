"""What the verbs that run a packed file share: the text, the model, and unknown words."""

import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from micronet_lm.cli.output import harmless, tell
from micronet_lm.cli.parsers import DEFAULT, Arguments
from micronet_lm.corpus.blocks import clean, without_mark
from micronet_lm.errors import CorpusError

if TYPE_CHECKING:
    from micronet_lm.runtime.model import LM

NAMED, LETTERS = 5, 30
"""Unknown words that are named at most, and letters that are shown of each."""


def open_model(model: Path | None, engine: str) -> "LM":
    """Open a packed model; where none is named the one in this folder, or else the demo."""
    from micronet_lm.runtime.model import load
    from micronet_lm.runtime.scores import UnknownWordsWarning

    warnings.simplefilter("ignore", UnknownWordsWarning)  # it is said in a sentence of its own
    return load(wanted_model(model), engine)  # type: ignore[arg-type]  # argparse lets only these pass


def tell_model(lm: "LM", arguments: Arguments) -> None:
    """Say which model gives the answer, unless a program reads it."""
    from micronet_lm.runtime.places import packed_file

    wanted = wanted_model(arguments.model)
    path = packed_file(wanted)
    ships = path != wanted and not wanted.is_dir()
    name = harmless(str(lm.card.get("name") or "unnamed"))
    if not arguments.json:
        where = "ships with the package" if ships else str(path)
        tell(f"model: {name}, {len(lm.vocabulary):,} words ({where})")


def wanted_model(model: Path | None) -> Path:
    """Return the model that was named, or else the one in this folder, or else the demo."""
    return model or (DEFAULT if DEFAULT.is_file() else Path("demo"))


def text_of(words: Sequence[str]) -> str:
    """Join the words of a command line; `-` alone is standard input, without its last line end."""
    return read_text("-").removesuffix("\n") if list(words) == ["-"] else " ".join(words)


def read_text(file: str) -> str:
    """Read a text file, or standard input for `-`; line ends of every system are newlines."""
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        return clean(without_mark(data.decode("utf-8")))
    except UnicodeDecodeError as error:
        name = "standard input" if file == "-" else file
        raise CorpusError(
            f"{name} is not UTF-8 text (byte {error.start}); convert it first"
        ) from None


def warn_of_unknown_words(lm: "LM", text: str) -> None:
    """Name the words of a text that the model does not know: all are one word to it."""
    unknown = lm.encoder.unknown_words(text)
    if unknown:
        distinct = [_short(word) for word in dict.fromkeys(unknown)]
        named = ", ".join(distinct[:NAMED]) + (", ..." if distinct[NAMED:] else "")
        number = len(lm.encoder.tokens(text))
        tell(
            f"micronet: {len(unknown)} of {number} tokens are not in the model's vocabulary and "
            f"are read as <unk>: {named}"
        )


def unknown_share(unknown: int, tokens: int) -> dict[str, float]:
    """Return how many of the predicted tokens are `<unk>`, for a report."""
    return {"unknown": unknown, "unknown_share": unknown / tokens}


def unknown_sentence(report: Mapping[str, Any]) -> list[str]:
    """Say how much of a perplexity is that of `<unk>`; nothing where no token is."""
    from micronet_lm.runtime.scores import MANY_UNKNOWN

    if not report["unknown"]:
        return []
    many = report["unknown_share"] > MANY_UNKNOWN
    return [
        f"{report['unknown']:,} of these tokens ({100 * report['unknown_share']:.1f} %) are <unk>: "
        "which word stands there was not asked, so the perplexity is lower than that of the text "
        "itself" + ("; with so many it says little about the text" if many else "")
    ]


def _short(word: str) -> str:
    return repr(word if len(word) <= LETTERS else word[: LETTERS - 1] + "…")
