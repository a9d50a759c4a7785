"""What the verbs that run a packed file share: the text, the model, and unknown words."""

import errno
import json
import os
import stat
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from micronet_lm.cli.output import harmless, tell
from micronet_lm.cli.parsers import DEFAULT, Arguments
from micronet_lm.corpus.blocks import clean, utf16_command, without_mark
from micronet_lm.errors import CorpusError
from micronet_lm.runs import is_run

if TYPE_CHECKING:
    from micronet_lm.runtime.model import LM

NAMED, LETTERS = 5, 30
"""Unknown words that are named at most, and letters that are shown of each."""

TOKENS = "wikitext"
"""The tokenizer of models that read tokens, not text as people write it."""

_PIPE = "give a text file, or - for standard input, as in: echo TEXT | micronet score -"
"""What to do if something that is not a text file was given for one."""

BYTE = 8
"""Bits per byte of a text that nothing is known about."""

_STRANGE = [
    f"that is more than the {BYTE} bits that a byte has: the text is not of the kind that the "
    "model was trained on"
]


def open_model(model: Path | None, engine: str) -> "LM":
    """Open a packed model; where none is named the one in this folder, or else the demo."""
    from micronet_lm.runtime.model import load
    from micronet_lm.runtime.scores import UnknownWordsWarning

    warnings.simplefilter("ignore", UnknownWordsWarning)  # the command prints its own sentence
    return load(wanted_model(model), engine)  # type: ignore[arg-type]  # argparse lets only these pass


def tell_model(lm: "LM", arguments: Arguments) -> None:
    """Print the name of the model that is used, unless a program reads the output."""
    from micronet_lm.runtime.places import packed_file

    wanted = wanted_model(arguments.model)
    path = packed_file(wanted)
    ships = path != wanted and not wanted.is_dir()
    name = harmless(str(lm.card.get("name") or "unnamed"))
    if not arguments.json:
        where = f"ships with the package: -m {wanted}" if ships else str(path)
        tell(f"model: {name}, {len(lm.vocabulary):,} words ({where})")
        if json.loads(lm.engine.metadata)["tokenizer"] == TOKENS:
            tell("It reads WikiText's tokens, apart by spaces: In 1905 , he did n't")


def wanted_model(model: Path | None) -> Path:
    """Return the model that was named, or else the one in this folder, or else the demo."""
    return model or (DEFAULT if DEFAULT.is_file() else Path("demo"))


def pipeline_file(target: Path) -> Path:
    """Return the packed file of a finished pipeline's folder or of a model that ships.

    Any other target is returned as it is.
    """
    from micronet_lm.runtime.places import packed_file, packed_in

    if not target.is_dir():
        return packed_file(target)
    return target if is_run(target) else packed_in(target) or target


def text_of(words: Sequence[str]) -> str:
    """Join the words of a command line; `-` alone is standard input, without its last line end."""
    if not words and _is_piped():
        tell("micronet: standard input is not read; give - as the text to read it")
    return read_text("-").removesuffix("\n") if list(words) == ["-"] else " ".join(words)


def _is_piped() -> bool:
    """Return whether standard input is a pipe or a file."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (AttributeError, OSError, ValueError):  # closed, or not a file at all
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode)


def read_text(file: str) -> str:
    """Read a text file, or standard input for `-`; line ends of every system are newlines."""
    if not file:
        raise CorpusError("the name of the text file is empty: give one, or - for standard input")
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        return clean(without_mark(data.decode("utf-8")))
    except IsADirectoryError:
        raise CorpusError(
            f"{file} is a folder: give a text file, or - for standard input"
        ) from None
    except (FileNotFoundError, NotADirectoryError):
        raise CorpusError(f"there is no file {shortened(file)}: {_PIPE}") from None
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        raise CorpusError(f"no file has a name of {len(file):,} letters: {_PIPE}") from None
    except UnicodeDecodeError as error:
        name = "standard input" if file == "-" else file
        how = utf16_command(error.object, file) or "convert it first"
        raise CorpusError(f"{name} is not UTF-8 text (byte {error.start}); {how}") from None


def warn_of_unknown_words(lm: "LM", text: str) -> None:
    """Name the words of a text that the model does not know: all are one word to it."""
    unknown = lm.encoder.unknown_words(text)
    if unknown:
        distinct = list(dict.fromkeys(shortened(lm.screen.looks(word) or word) for word in unknown))
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
    """Return a sentence on the share of `<unk>` in a perplexity; empty if no token is unknown."""
    from micronet_lm.runtime.scores import MANY_UNKNOWN

    if not report["unknown"]:
        return []
    many = report["unknown_share"] > MANY_UNKNOWN
    return [
        f"{report['unknown']:,} of these tokens ({100 * report['unknown_share']:.1f} %) are <unk>: "
        "the model did not have to guess which word it was, so the perplexity is too low"
        + ("; with so many it says little about the text" if many else "")
    ]


def open_report(lm: "LM", text: str, threads: int) -> dict[str, Any]:
    """Return bits per byte of a text, for a report; nothing for a model that cannot spell."""
    return {"open_vocabulary": lm.open_score(text, threads).as_json() if lm.can_spell else None}


def open_sentence(report: Mapping[str, Any]) -> list[str]:
    """Return a sentence on the bits per character; empty for a model that cannot spell."""
    found = report.get("open_vocabulary")
    if not found:
        return []
    return [
        f"open vocabulary, unknown words spelled: {found['bits_per_byte']:.4f} bits per byte, "
        f"{found['bits_per_character']:.4f} per character ({found['bytes']:,} bytes, "
        f"{found['spelled']:,} words spelled); not comparable with the perplexity per token above",
        *(_STRANGE if found["bits_per_byte"] > BYTE else []),
    ]


def shortened(word: str) -> str:
    """Return a word in quotes, cut where it is too long for a sentence."""
    shown = harmless(word if len(word) <= LETTERS else word[: LETTERS - 1] + "…")
    return f'"{shown}"' if "'" in shown else f"'{shown}'"
