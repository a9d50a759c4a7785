"""SLURM's commands as small programs that a test answers for: no cluster, no job ever runs.

`sbatch` numbers and keeps scripts, `squeue` prints the states that the test set, `scancel` keeps
the numbers that it was given. The real thing is in `tests/support/slurm.py`, and takes minutes.
"""

import os
from pathlib import Path

import pytest

_PROGRAMS = {
    "sbatch": """
number=$(($(ls "$HERE" | grep -c '^script-') + 1))
cp "$1" "$HERE/script-$number"
echo "Submitted batch job $number"
""",
    "squeue": """
[ -e "$HERE/silent" ] && exit 1
case "$*" in
*exit_code*) cat "$HERE/exit_code" ;;
*) cat "$HERE"/state-* 2>/dev/null ;;
esac
exit 0
""",
    "scancel": 'echo "$1" >> "$HERE/cancelled"\n',
    "srun": "exit 1\n",
}


class StubCluster:
    """What the commands answer, and what they were asked."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._here = folder / "slurm"
        self._here.mkdir()
        for name, text in _PROGRAMS.items():
            program = folder / name
            program.write_text(f"#!/bin/sh\nHERE='{self._here}'\n{text}")
            program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")

    def set(self, number: int, state: str, reason: str = "None", place: str = "") -> None:
        """Set the state of a job."""
        (self._here / f"state-{number}").write_text(f"{number}|{state}|{reason}|{place}\n")

    def forget(self, number: int) -> None:
        """Forget a job, as a cluster does some minutes after its end."""
        (self._here / f"state-{number}").unlink()

    def exits_with(self, code: int) -> None:
        """Set the exit code of jobs."""
        (self._here / "exit_code").write_text(f"{code << 8}\n")

    def silence(self, silent: bool = True) -> None:
        """Stop answering, or answer again."""
        if silent:
            (self._here / "silent").touch()
        else:
            (self._here / "silent").unlink()

    @property
    def scripts(self) -> list[str]:
        """The scripts that were submitted, in order."""
        files = sorted(self._here.glob("script-*"), key=lambda file: int(file.name[7:]))
        return [file.read_text() for file in files]
