"""Download a large file with a progress bar; resume where an interrupted download stopped."""

import http.client
import re
import time
import urllib.error
import urllib.request
from pathlib import Path

from micronet_lm.errors import DownloadError
from micronet_lm.files import make_folder
from micronet_lm.progress import bar

_BLOCK = 1 << 18
_NETWORK = (urllib.error.URLError, http.client.HTTPException, ConnectionError, TimeoutError)


def fetch(
    address: str, target: Path, *, attempts: int = 4, pause: float = 1.0, timeout: float = 30.0
) -> Path:
    """Download `address` to `target` and return `target`; an existing file is not downloaded again.

    The bytes are collected in `target` + `.part`, which an interruption leaves behind and the next
    call resumes. After `attempts` failed connections in a row it gives up; between them it waits
    `pause` seconds, doubled each time. An attempt that received bytes restarts the count.
    """
    if target.exists():
        return target
    make_folder(target.parent)
    part = target.with_name(target.name + ".part")
    failures = 0
    while True:
        before = _size(part)
        try:
            _continue(address, part, timeout)
            break
        except urllib.error.HTTPError as error:
            error.close()
            reason = f"the server answered {error.code} {error.reason}"
            if error.code < 500 and error.code not in (408, 429):
                raise _failed(address, reason) from error
        except _NETWORK as error:
            reason = str(getattr(error, "reason", error)) or type(error).__name__
        failures = 1 if _size(part) > before else failures + 1
        if failures >= attempts:
            raise _failed(address, reason)
        time.sleep(pause * 2 ** (failures - 1))
    part.replace(target)
    return target


def _continue(address: str, part: Path, timeout: float) -> None:
    """Download the missing bytes of `part`; return when it is complete."""
    have = _size(part)
    request = urllib.request.Request(address)  # noqa: S310 (addresses are constants of the project)
    request.add_header("User-Agent", "micronet-lm")
    if have:
        request.add_header("Range", f"bytes={have}-")
    try:
        response = urllib.request.urlopen(request, timeout=timeout)  # noqa: S310 (as above)
    except urllib.error.HTTPError as error:
        if error.code != 416 or not have:
            raise
        # Nothing after our last byte: `part` is complete, or it is a leftover of another file.
        with error:
            total = _number(r"bytes \*/(\d+)", error.headers.get("Content-Range"))
        if total != have:
            part.unlink()
            _continue(address, part, timeout)
        return
    with response:
        begin = _number(r"bytes (\d+)-", response.headers.get("Content-Range"))
        if response.status != 206 or begin != have:
            if response.status == 206 and begin != 0:
                raise http.client.HTTPException(f"asked for byte {have}, got byte {begin}")
            have = 0  # the server ignored the range and sends the whole file
        length = _number(r"(\d+)", response.headers.get("Content-Length"))
        total = None if length is None else have + length
        with (
            bar(f"Fetching {part.stem}", total, unit="B") as advance,
            part.open("ab" if have else "wb") as file,
        ):
            advance(have)
            while data := response.read(_BLOCK):
                file.write(data)
                advance(len(data))
    if total is not None and _size(part) != total:
        raise http.client.HTTPException(f"the connection ended at byte {_size(part)} of {total}")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _number(pattern: str, text: str | None) -> int | None:
    match = re.match(pattern, text or "")
    return int(match[1]) if match else None


def _failed(address: str, reason: str) -> DownloadError:
    return DownloadError(
        f"cannot download {address} ({reason}): check the network and run the command again, or "
        "download the file by other means and give its path with --from"
    )
