"""Counters of a server in Prometheus's text form."""

import resource
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

BOUNDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Upper bounds of the histogram of answering times, in seconds."""

_HELP = {
    "micronet_requests_total": ("counter", "Requests answered, by route, method and status."),
    "micronet_refused_total": ("counter", "Requests refused, by reason."),
    "micronet_tokens_total": ("counter", "Tokens that models read or wrote for clients."),
    "micronet_batches_total": ("counter", "Batches of texts that were scored."),
    "micronet_batched_texts_total": ("counter", "Texts in those batches."),
    "micronet_requests_in_hand": ("gauge", "Requests that are computed or wait for a thread."),
    "micronet_sessions": ("gauge", "Sessions in memory (live) and on disk only (saved)."),
    "micronet_sockets": ("gauge", "WebSockets that are open."),
    "micronet_models_reopened_total": ("counter", "Models opened again after their file changed."),
    "process_resident_memory_bytes": ("gauge", "Memory of the process."),
    "process_cpu_seconds_total": ("counter", "Processor time of the process."),
    "process_start_time_seconds": ("gauge", "When the process started, in Unix time."),
}


class Metrics:
    """What is counted; used by the event loop only."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str, int]] = Counter()
        self.refused: Counter[str] = Counter()
        self.tokens: Counter[str] = Counter()
        self.reopened = 0
        self.sockets = 0
        self._started = time.time()
        self._buckets: dict[str, list[int]] = {}
        self._seconds: Counter[str] = Counter()

    def answered(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count one request."""
        self.requests[route, method, status] += 1
        buckets = self._buckets.setdefault(route, [0] * (len(BOUNDS) + 1))
        buckets[next((n for n, most in enumerate(BOUNDS) if seconds <= most), len(BOUNDS))] += 1
        self._seconds[route] += seconds  # type: ignore[assignment]  # a Counter of floats adds as well

    def text(self, gauges: Mapping[str, Mapping[str, float]]) -> str:
        """Return all of it; `gauges` are the numbers of the moment, by name and labels."""
        families: dict[str, Mapping[str, float]] = {
            "micronet_requests_total": {
                _labels(route=route, method=method, status=str(status)): count
                for (route, method, status), count in self.requests.items()
            },
            "micronet_refused_total": {_labels(reason=why): n for why, n in self.refused.items()},
            "micronet_tokens_total": {_labels(kind=kind): n for kind, n in self.tokens.items()},
            "micronet_models_reopened_total": {"": self.reopened},
            "micronet_sockets": {"": self.sockets},
            "process_resident_memory_bytes": {"": resident_bytes()},
            "process_cpu_seconds_total": {"": time.process_time()},
            "process_start_time_seconds": {"": self._started},
            **gauges,
        }
        lines: list[str] = []
        for name, values in families.items():
            kind, about = _HELP[name]
            lines += [f"# HELP {name} {about}", f"# TYPE {name} {kind}"]
            lines += [f"{name}{labels} {number:.10g}" for labels, number in values.items()]
        return "\n".join([*lines, *self._histogram(), ""])

    def _histogram(self) -> Iterator[str]:
        name = "micronet_request_seconds"
        yield f"# HELP {name} Time from a request's first byte to its answer's last."
        yield f"# TYPE {name} histogram"
        for route, buckets in self._buckets.items():
            total = 0
            for bound, count in zip([*map(str, BOUNDS), "+Inf"], buckets, strict=True):
                total += count
                yield f"{name}_bucket{_labels(route=route, le=bound)} {total}"
            yield f"{name}_sum{_labels(route=route)} {self._seconds[route]:.6f}"
            yield f"{name}_count{_labels(route=route)} {total}"


def labelled(label: str, numbers: Mapping[str, float]) -> dict[str, float]:
    """Return numbers with the text of one label each."""
    return {_labels(**{label: value}): number for value, number in numbers.items()}


def resident_bytes() -> float:
    """Return the memory of this process; its peak where the system does not tell more."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return float(pages * resource.getpagesize())
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0


def _labels(**labels: str) -> str:
    escaped = {
        key: value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        for key, value in labels.items()
    }
    return "{" + ",".join(f'{key}="{value}"' for key, value in escaped.items()) + "}"
