"""Settings of a server: limits, allowed hosts and origins, and the folder of sessions."""

import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

MOST_CANDIDATES = 1_000
"""Words that one question may ask for."""
MOST_LOGPROBS = 20
"""Alternatives per token that a completion may tell."""
MOST_CHOICES = 128
"""Completions of one request: prompts times `n`."""
MOST_TEXTS = 1_024
"""Texts that one request may have scored."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Bounds of what clients may ask for; beyond them they are refused with a sentence."""

    body: int = 1 << 20
    """Bytes of a request's body, and of a message on a WebSocket."""
    prompt: int = 16_384
    """Tokens that one request may have read, over all its texts."""
    written: int = 2_048
    """Tokens that one completion may write."""
    seconds: float = 30.0
    """Time for a request to be sent, and for it to be answered."""
    waiting: int = 256
    """Requests that may wait for a worker thread; more are refused with 429."""
    sessions: int = 1_000
    """Sessions, in memory and on disk together."""
    live: int = 128
    """Sessions in memory; the others are on disk until they are asked again."""
    sockets: int = 64
    """WebSockets that are open at once."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All that a server is told when it starts."""

    host: str = "127.0.0.1"
    port: int = 8080
    threads: int = field(default_factory=lambda: max(2, os.cpu_count() or 2))
    """Worker threads; the engine computes in them without Python's global lock."""
    api_key: str | None = None
    """What clients must present as `Authorization: Bearer KEY`."""
    hosts: tuple[str, ...] = ()
    """Host names, besides `localhost` and numeric addresses, by which clients may call."""
    origins: tuple[str, ...] = ()
    """Origins of other sites whose pages may ask (CORS); none where empty."""
    log_texts: bool = False
    """Whether logs hold what clients sent."""
    sessions: Path | None = None
    """Folder of saved sessions; None keeps them in memory only."""
    save_after: float = 2.0
    """Seconds without a question after which a changed session is written to disk."""
    drop_after: float = 300.0
    """Seconds without a question after which a saved session leaves memory."""
    expire_after: float = 7 * 86_400.0
    """Seconds without a question after which a session is deleted."""
    limits: Limits = Limits()


def default_sessions(port: int) -> Path:
    """Return the folder of sessions where none is named: in the user's own state folder.

    The folders above it are made: a new home lacks them.
    """
    home = os.environ.get("XDG_STATE_HOME")
    above = (Path(home) if home else Path.home() / ".local" / "state") / "micronet-lm"
    with suppress(OSError):  # whoever writes there says what is wrong
        above.mkdir(parents=True, exist_ok=True)
    return above / f"sessions-{port}"
