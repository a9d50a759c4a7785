"""Download a large file with a progress bar; resume where an interrupted download stopped.

A server may be slow, endless or wrong on purpose, so a download has a budget: bytes, seconds and a
slowest rate. A part is resumed only from the version of the file that it began with.
"""

import http.client
import os
import re
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from micronet_lm.errors import DownloadError
from micronet_lm.files import make_folder, open_own, read_small, write_text
from micronet_lm.progress import bar

_BLOCK = 1 << 18
_LONGEST_TAG = 1 << 10
_NETWORK = (urllib.error.URLError, http.client.HTTPException, ConnectionError, TimeoutError)


@dataclass(frozen=True, kw_only=True)
class Budget:
    """What a download may take; beyond it, the download ends in an error."""

    bytes: int = 1 << 30
    """Most bytes of the file."""
    seconds: float = 6 * 3600.0
    """Most time of all attempts together."""
    slowest: float = 1 << 10
    """Fewest bytes per second, as a mean over `patience` seconds."""
    patience: float = 60.0
    """Seconds after which a slow connection is given up."""


DEFAULT = Budget()


def fetch(
    address: str,
    target: Path,
    *,
    attempts: int = 4,
    pause: float = 1.0,
    timeout: float = 30.0,
    budget: Budget = DEFAULT,
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
    failures, begin = 0, time.monotonic()
    while True:
        before = _size(part)
        try:
            _Transfer(address, part, timeout, budget, begin).run()
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
        wait = pause * 2 ** (failures - 1)
        if time.monotonic() - begin + wait > budget.seconds:
            raise _failed(address, f"{budget.seconds:,.0f} seconds have passed; last: {reason}")
        time.sleep(wait)
    part.replace(target)
    _tag_file(part).unlink(missing_ok=True)
    return target


class _Transfer:
    """One connection that brings the missing bytes of a part."""

    def __init__(
        self, address: str, part: Path, timeout: float, budget: Budget, begin: float
    ) -> None:
        self._address, self._part, self._timeout = address, part, timeout
        self._budget, self._begin = budget, begin

    def run(self) -> None:
        """Download what is missing; return when the part is complete."""
        part, have = self._part, _size(self._part)
        try:
            response = urllib.request.urlopen(self._request(have), timeout=self._timeout)  # noqa: S310 (addresses are constants of the project)
        except urllib.error.HTTPError as error:
            if error.code != 416 or not have:
                raise
            # Nothing after our last byte: `part` is complete, or it is a leftover of another file.
            with error:
                total = _number(r"bytes \*/(\d+)", error.headers.get("Content-Range"))
            if total != have:
                part.unlink()
                self.run()
            return
        with response:
            begin = _number(r"bytes (\d+)-", response.headers.get("Content-Range"))
            if response.status != 206 or begin != have:
                if response.status == 206 and begin != 0:
                    raise http.client.HTTPException(f"asked for byte {have}, got byte {begin}")
                have = 0  # the server ignored the range, or has another version of the file
            length = _number(r"(\d+)", response.headers.get("Content-Length"))
            total = None if length is None else have + length
            self._check_size(total or 0)
            if not have:
                _remember_version(part, response.headers)
            self._copy(response, have, total)
        if total is not None and _size(part) != total:
            raise http.client.HTTPException(
                f"the connection ended at byte {_size(part)} of {total}"
            )

    def _request(self, have: int) -> urllib.request.Request:
        request = urllib.request.Request(self._address)  # noqa: S310 (as above)
        request.add_header("User-Agent", "micronet-lm")
        if have:
            request.add_header("Range", f"bytes={have}-")
            if version := _version(self._part):
                request.add_header("If-Range", version)
        return request

    def _copy(self, response: Any, have: int, total: int | None) -> None:
        """Append the bytes of a response to the part, within the budget."""
        flags = os.O_WRONLY | (os.O_APPEND if have else os.O_TRUNC)
        since, received = time.monotonic(), 0
        with (
            bar(f"Fetching {self._part.stem}", total, unit="B") as advance,
            open_own(self._part, flags) as file,
        ):
            advance(have)
            while data := response.read1(_BLOCK):  # what has arrived: a full block may never do
                have += len(data)
                received += len(data)
                self._check_size(have)
                file.write(data)
                advance(len(data))
                now = time.monotonic()
                if now - self._begin > self._budget.seconds:
                    raise _failed(self._address, f"{self._budget.seconds:,.0f} seconds have passed")
                if now - since >= self._budget.patience:
                    if received < self._budget.slowest * (now - since):
                        raise http.client.HTTPException(
                            f"fewer than {self._budget.slowest:,.0f} bytes per second arrived"
                        )
                    since, received = now, 0

    def _check_size(self, size: int) -> None:
        if size > self._budget.bytes:
            self._part.unlink(missing_ok=True)
            _tag_file(self._part).unlink(missing_ok=True)
            raise _failed(
                self._address,
                f"the file has more than the {self._budget.bytes:,} bytes that are allowed",
            )


def _remember_version(part: Path, headers: Any) -> None:
    """Write down which version of the file a part belongs to, if the server says it."""
    tag = headers.get("ETag") or ""
    # A weak tag does not promise the same bytes, which a resumed download needs.
    version = tag if tag and not tag.startswith("W/") else headers.get("Last-Modified") or ""
    if version and len(version) < _LONGEST_TAG and version.isascii() and version.isprintable():
        write_text(_tag_file(part), version)
    else:
        _tag_file(part).unlink(missing_ok=True)


def _version(part: Path) -> str | None:
    try:
        text = read_small(_tag_file(part), _LONGEST_TAG).decode("ascii")
    except (OSError, UnicodeDecodeError):
        return None
    return text if text.isprintable() else None


def _tag_file(part: Path) -> Path:
    return part.with_name(part.name + ".version")


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
