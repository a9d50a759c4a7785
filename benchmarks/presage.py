"""Presage (Debian: `presage`, `libpresage1v5`) as a keyboard, through its own C interface.

Its n-gram database is made by its own program `text2ngram` from the text that all others learn
from, capitals kept. With learning, its recency predictor remembers what was typed. Its user
database is left out: with it Presage 0.9.1 ends the process by an assertion of its own
(`smoothedNgramPredictor.cpp`, numerator <= denominator) after some hundred words.
"""

import ctypes
import ctypes.util
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

SHOWN = 2000
"""Characters before the cursor that Presage is shown: its window for changes is 80."""

CONFIGURATION = Path("/etc/presage.xml")
_PAST = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)


def is_there() -> bool:
    """Return whether Presage is installed."""
    found = shutil.which("text2ngram") and ctypes.util.find_library("presage")
    return bool(found) and CONFIGURATION.is_file()


def train(text: str, folder: Path) -> Path:
    """Make Presage's database of 1-, 2- and 3-grams of a text."""
    source, database = folder / "train.txt", folder / "presage.db"
    source.write_text(text, encoding="utf-8")
    program = shutil.which("text2ngram") or "text2ngram"
    for options in (["-n", "1"], ["-n", "2", "-a"], ["-n", "3", "-a"]):
        command = [program, *options, "-f", "sqlite", "-o", str(database), str(source)]
        subprocess.run(command, check=True, capture_output=True)
    return database


class Presage:
    """A keyboard of `micronet_lm.typist`."""

    def __init__(
        self, database: Path, words: frozenset[str], folder: Path, *, learning: bool, slots: int = 3
    ) -> None:
        self._words = words
        self._learning = learning
        self._text = ""
        self._shown = ctypes.create_string_buffer(b"", 4 * SHOWN + 1)
        self._nothing = ctypes.create_string_buffer(b"", 1)
        self._callbacks = (
            _PAST(lambda _: ctypes.addressof(self._shown)),
            _PAST(lambda _: ctypes.addressof(self._nothing)),
        )
        configuration = folder / f"presage-{learning}.xml"
        configuration.write_text(_configured(database, folder, learning, slots), encoding="utf-8")
        self._library = ctypes.CDLL(ctypes.util.find_library("presage"))
        self._presage = ctypes.c_void_p()
        self._check(
            self._library.presage_new_with_config(
                self._callbacks[0],
                None,
                self._callbacks[1],
                None,
                str(configuration).encode(),
                ctypes.byref(self._presage),
            )
        )

    def read(self, text: str) -> None:
        """Read what was typed or picked next."""
        self._text = (self._text + text)[-SHOWN:]
        if not self._learning and "\n" in text:
            self._text = self._text.rpartition("\n")[2]
        self._shown.value = self._text.encode()

    def suggest(self, k: int) -> Sequence[str]:
        """Return the k best whole words."""
        result = ctypes.POINTER(ctypes.c_char_p)()
        self._check(self._library.presage_predict(self._presage, ctypes.byref(result)))
        words: list[str] = []
        while (word := result[len(words)]) is not None:
            words.append(word.decode("utf-8", "replace"))
        self._library.presage_free_string_array(result)
        return words[:k]

    def knows(self, word: str) -> bool:
        """Return whether the training text has a word."""
        return word in self._words

    def _check(self, code: int) -> None:
        if code:
            raise RuntimeError(f"Presage gave the error {code}")


def _configured(database: Path, folder: Path, learning: bool, slots: int) -> str:
    """Return Debian's configuration with our database, capitals and slots."""
    text = CONFIGURATION.read_text(encoding="utf-8")
    predictors = "DefaultSmoothedNgramPredictor"
    if learning:
        predictors += " DefaultRecencyPredictor"
    changes = {
        "PREDICTORS": predictors,
        "LOWERCASE_MODE": "no",
        "ONLINE_LEARNING": "yes" if learning else "no",
        "SUGGESTIONS": str(slots),
        "REPEAT_SUGGESTIONS": "yes",
    }
    for key, value in changes.items():
        text = re.sub(f"<{key}>[^<]*</{key}>", f"<{key}>{value}</{key}>", text)
    own = [str(database), str(folder / "presage-user.db")]
    return re.sub(r"(<DBFILENAME>)[^<]*(</DBFILENAME>)", lambda m: m[1] + own.pop(0) + m[2], text)
