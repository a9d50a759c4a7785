"""Logs: one JSON object per line on standard error, with texts of clients only if asked for."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, TextIO

SHOWN = 2_000
"""Characters of a client's text that are logged, where texts are."""


class Log:
    """A log of lines of JSON."""

    def __init__(self, stream: TextIO | None = None, *, texts: bool = False) -> None:
        self._stream = stream or sys.stderr
        self.texts = texts
        """Whether the texts of clients may be logged."""

    def info(self, event: str, **fields: Any) -> None:
        """Log what went well."""
        self._write("info", event, fields)

    def error(self, event: str, **fields: Any) -> None:
        """Log what went wrong."""
        self._write("error", event, fields)

    def _write(self, level: str, event: str, fields: dict[str, Any]) -> None:
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = {"time": now, "level": level, "event": event, **fields}
        self._stream.write(json.dumps(line) + "\n")
        self._stream.flush()


class Forwarding(logging.Handler):
    """Passes warnings and errors of the libraries underneath on to the log."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Log one record, its traceback included."""
        trace = {}
        if record.exc_info:
            trace["traceback"] = logging.Formatter().formatException(record.exc_info)
        self._log.error(record.getMessage(), source=record.name, **trace)
