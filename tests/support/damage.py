"""Ways in which a JSON file can be something else than what was written."""

import os
from pathlib import Path

from micronet_lm.files import LARGEST_RECORD

_TEXTS = {
    "a name twice": '{"step": 1, "step": 2}\n',
    "not a number": '{"step": NaN}\n',
    "infinite": '{"step": 1e999}\n',
    "a long number": '{"step": ' + "7" * 500 + "}\n",
    "nested": "[" * 100_000 + "\n",
    "half a character": '{"step": "\\ud800"}\n',
}
SPOILED = {
    "a pipe": "it is not a regular file",
    "a folder": "it is a directory",
    "too large": "it has more than 67,108,864 bytes",
    "not UTF-8": "is not UTF-8",
    "a name twice": "names 'step' twice",
    "not a number": "has the number NaN",
    "infinite": "has the number '1e999', which is not below 1e308",
    "a long number": "has a number of 500 characters",
    "nested": "has values within values without end",
    "half a character": "has text with half of a surrogate pair",
}
"""What a reader says of each."""


def spoil(file: Path, how: str) -> None:
    """Put something in the place of a file."""
    file.unlink(missing_ok=True)
    if how == "a pipe":
        os.mkfifo(file)
    elif how == "a folder":
        file.mkdir()
    elif how == "too large":
        with file.open("wb") as out:
            out.truncate(LARGEST_RECORD + 1)
    else:
        file.write_bytes(_TEXTS[how].encode() if how in _TEXTS else b'"\xff"\n')
