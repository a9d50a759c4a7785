"""Decode bytes to text, about a mebibyte of whole lines at a time."""

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from micronet_lm.errors import CorpusError

BLOCK = 1 << 20  # bytes read at once; only a longer line needs more memory


class Readable(Protocol):
    """What gives bytes."""

    def read(self, size: int = -1, /) -> bytes:
        """Read at most `size` bytes."""


class Block(NamedTuple):
    """Some whole lines of one split."""

    split: str
    text: str
    """The lines without trailing white space, each with its newline."""
    size: int
    """Number of bytes read for it."""


def read_blocks(
    stream: Readable, split: str, *, name: str, start: int = 0, size: int | None = None
) -> Iterator[Block]:
    """Read UTF-8 lines from a stream positioned at byte `start` of the file `name`.

    `size` is the number of bytes to read, None for all. A newline is added to a last line without
    one, so that every line of a corpus ends in `<eos>`.
    """
    held: list[bytes] = []  # the beginning of a line whose end has not been read
    left = size
    while data := stream.read(BLOCK if left is None else min(BLOCK, left)):
        if left is not None:
            left -= len(data)
        cut = _last_line_end(data)
        if not cut:
            held.append(data)
            continue
        whole = b"".join([*held, data[:cut]])
        held = [data[cut:]] if cut < len(data) else []
        yield Block(split, _lines(whole, name, start), len(whole))
        start += len(whole)
    if left:
        raise CorpusError(f"{name} shrank by {left} bytes while being read: build the corpus again")
    if held:
        whole = b"".join(held)
        yield Block(split, _lines(whole + b"\n", name, start), len(whole))


def clean(text: str) -> str:
    """Return text with newlines for every kind of line end, and no white space before one."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return "\n".join(map(str.rstrip, text.split("\n")))


def utf16_command(data: bytes, name: str) -> str:
    """Return how to convert a text in UTF-16, as Windows writes it; empty for other bytes."""
    if not data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return ""
    return f"it is UTF-16, so convert it: iconv -f UTF-16 -t UTF-8 {name} > text.txt"


def without_mark(text: str) -> str:
    """Return a file's text without the byte order mark that some programs put in front."""
    return text.removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}")


def _last_line_end(data: bytes) -> int:
    """Return where the last line of a block begins that may not be whole."""
    # A carriage return at the very end may be half of a line end.
    return max(data.rfind(b"\n"), data.rfind(b"\r", 0, len(data) - 1)) + 1


def _lines(data: bytes, name: str, start: int) -> str:
    """Decode lines; drop trailing white space and a byte order mark at the start of the file."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        at = start + error.start
        raise CorpusError(
            f"{name} is not UTF-8: byte {data[error.start]:#04x} at offset {at} cannot be decoded; "
            + (
                (utf16_command(data, name) if start == 0 else "")
                or "convert the file to UTF-8 or leave it out"
            )
        ) from error
    return clean(without_mark(text) if start == 0 else text)
