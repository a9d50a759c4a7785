"""A checksum at the end of a small text file, so that an edit or damage is noticed."""

import re

from micronet_lm.checksum import checksum

_SEAL = re.compile(r"# checksum of the lines above: ([0-9a-f]{16})\n?\Z")


def sealed(text: str) -> str:
    """Return a text with its checksum as the last line, a comment of YAML."""
    return f"{text}# checksum of the lines above: {checksum(text.encode())}\n"


def seal_holds(text: str) -> bool | None:
    """Return whether a text has the checksum that it names; None if it names none."""
    found = _SEAL.search(text)
    return None if found is None else checksum(text[: found.start()].encode()) == found[1]
