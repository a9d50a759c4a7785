"""Measure once per machine whether bfloat16 products work and are faster, and keep the answer.

A processor's flags are not enough: on one with AMX, every bfloat16 product of torch ended in
SIGILL; on another, bfloat16 worked but was slower than fp32. So a child process measures
(`probe.py`), and the verdict is kept in the user's cache folder.
"""

import hashlib
import json
import math
import os
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import torch

from micronet_lm.files import read_json, write_text
from micronet_lm.machine import busyness, cache_folder, processor_identity, processor_name

MARGIN = 1.1
"""Smallest speed-up over fp32 for which bfloat16 is chosen, as it rounds more."""

AS_IS = "as-is"
"""Name of the setting that keeps torch's choice of instructions."""

HELD_BACK = "AVX512_CORE_BF16"
"""Value of ONEDNN_MAX_CPU_ISA that keeps torch from AMX's kernels."""

ISA_VARIABLE = "ONEDNN_MAX_CPU_ISA"
"""Environment variable that limits oneDNN's instructions; read at torch's first product."""

OURS = "MICRONET_SET_ONEDNN_ISA"
"""Environment variable that marks the one above as set by this package, for child processes."""

TRIAL_SECONDS, PROBE_SECONDS = 8.0, 30.0
"""Longest time of one trial, and of the whole probe, where the machine is idle (a busy one gets
more); a longer one counts as a hang."""

HUNG = "no answer within"
"""Beginning of the report of a hang."""

DAY = 86_400
"""Seconds for which a hang is remembered: the machine may have been busy."""

FORMAT = 3
"""Version of the measurement; verdicts of others are not used."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """Result of one setting of torch: processor time per step, or how it ended."""

    isa: str | None
    """Value of ONEDNN_MAX_CPU_ISA; None keeps torch's choice."""
    float32: float | None
    """Processor time per step in fp32, in seconds; None if not measured."""
    bfloat16: float | None
    """Processor time per step in bfloat16, in seconds; None if not measured."""
    ended: str | None
    """A signal's name, a hang or an exit code; None after a normal end."""

    @property
    def works(self) -> bool:
        """Whether bfloat16 products gave a result and the process ended normally."""
        return self.bfloat16 is not None and self.ended is None

    @property
    def gain(self) -> float:
        """Speed-up of bfloat16 over fp32; 0 if it does not work."""
        if not self.works or self.float32 is None or self.bfloat16 is None:
            return 0.0
        return self.float32 / self.bfloat16

    def __str__(self) -> str:
        """Describe it in a few words."""
        held = "" if self.isa is None else f" with {ISA_VARIABLE}={self.isa}"
        if self.works:
            return f"bfloat16{held} {self.gain:.2f} times as fast as fp32"
        if self.float32 is None:
            return f"products{held}: {self.ended}"
        return f"bfloat16{held}: {self.ended}"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The measured abilities of this machine's products."""

    trials: tuple[Trial, ...]
    """Results of all settings tried."""

    problem: str | None = None
    """Why nothing could be measured, if so."""

    @property
    def best(self) -> Trial | None:
        """The setting for bfloat16; None if it works in none.

        Another setting than torch's own must be faster by the margin too.
        """
        best: Trial | None = None
        for trial in self.trials:
            if trial.works and (best is None or trial.gain > MARGIN * best.gain):
                best = trial
        return best

    @property
    def precision(self) -> Literal["float32", "bfloat16"]:
        """The precision that `auto` chooses."""
        best = self.best
        return "bfloat16" if best is not None and best.gain >= MARGIN else "float32"

    @property
    def isa(self) -> str | None:
        """Value of ONEDNN_MAX_CPU_ISA that `auto` needs; None keeps torch's choice."""
        best = self.best
        return best.isa if best is not None and self.precision == "bfloat16" else None

    @property
    def broken(self) -> str | None:
        """The error if not even fp32 could be measured."""
        if self.problem is not None:
            return self.problem
        plain = self.trials[0]
        return str(plain) if plain.float32 is None else None

    @property
    def why(self) -> str:
        """The reason in a few words."""
        if self.problem is not None:
            return self.problem
        told = [t for t in self.trials if not t.works or t is self.best]
        return f"{'; '.join(map(str, told))}; {MARGIN:g} times is needed"


_asked: dict[str, Verdict] = {}
"""Verdicts read by this process, by their files' names."""


def machine_verdict(*, again: bool = False) -> Verdict:
    """Return this machine's verdict; measure it if there is none yet, or `again`."""
    file = verdict_file()
    if not again:
        if file.name in _asked:
            return _asked[file.name]
        with suppress(OSError, ValueError, TypeError, KeyError):
            _asked[file.name] = _read(file)
            return _asked[file.name]
    verdict = _measure()
    _asked[file.name] = verdict
    if verdict.problem is None:
        with suppress(OSError):  # without a writable cache folder it is measured again next time
            write_text(file, _text(verdict))
    return verdict


def verdict_file() -> Path:
    """Return the path of the verdict for this machine, torch and number of threads."""
    environment = _environment()
    settings = [environment.get(name) for name in (ISA_VARIABLE, "ATEN_CPU_CAPABILITY")]
    asked = [FORMAT, processor_identity(), torch.__version__, torch.get_num_threads(), settings]
    key = hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:16]
    return cache_folder() / f"precision-{key}.json"


def hold_back(isa: str) -> None:
    """Limit oneDNN's instructions in this process and its children, if that is not too late."""
    os.environ[ISA_VARIABLE], os.environ[OURS] = isa, "1"


def _environment() -> dict[str, str]:
    """Return the user's environment, without this package's own setting."""
    ours = {ISA_VARIABLE, OURS} if OURS in os.environ else set()
    return {name: value for name, value in os.environ.items() if name not in ours}


def _read(file: Path) -> Verdict:
    kept = read_json(file)
    trials = tuple(Trial(**trial) for trial in kept["trials"])
    seconds = [taken for trial in trials for taken in (trial.float32, trial.bfloat16)]
    if not trials or not all(taken is None or 0 < taken < math.inf for taken in seconds):
        raise ValueError("a damaged file")
    hung = any(trial.ended is not None and HUNG in trial.ended for trial in trials)
    if hung and time.time() - file.stat().st_mtime > DAY:
        raise ValueError("a hang of long ago")
    return Verdict(trials=trials)


def _text(verdict: Verdict) -> str:
    kept: dict[str, Any] = {
        "processor": processor_name(),
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "precision": verdict.precision,
        "trials": [asdict(trial) for trial in verdict.trials],
    }
    return json.dumps(kept, indent=1) + "\n"


def _measure() -> Verdict:
    """Measure in a child process; a crash is an answer too."""
    settings, environment = [AS_IS], _environment()
    if ISA_VARIABLE not in environment:  # a value set by the user is kept
        settings.append(HELD_BACK)
    wait = busyness()
    words = [sys.executable, "-m", "micronet_lm.training.precision.probe"]
    words += [str(torch.get_num_threads()), str(TRIAL_SECONDS * wait), *settings]
    limit = PROBE_SECONDS * wait
    try:
        done = subprocess.run(  # noqa: S603
            words,
            capture_output=True,
            text=True,
            env=environment,
            check=False,
            timeout=limit,
        )
        trials = tuple(Trial(**trial) for trial in json.loads(done.stdout))
    except subprocess.TimeoutExpired:
        return Verdict(trials=(), problem=f"the probe gave {HUNG} {limit:.0f} s")
    except (OSError, ValueError, TypeError) as error:
        lines = done.stderr.strip().splitlines() if isinstance(error, ValueError) else []
        return Verdict(trials=(), problem=f"the probe failed ({(lines or [str(error)])[-1]})")
    return Verdict(trials=trials)
