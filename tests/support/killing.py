"""Runs `micronet` and kills itself in a given stage, before its nth file gets its name.

python killing.py STAGE N run ...
"""

import os
import signal
import sys
from pathlib import Path
from typing import Any

from micronet_lm.cli.main import main
from micronet_lm.pipeline.workspace import Workspace

STAGE, NUMBER, WORDS = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
left = [-1]  # renames until the end; negative: the stage has not begun
begin, replace = Workspace.begin, Path.replace


def watched_begin(self: Workspace, stage: Any) -> Any:
    record = begin(self, stage)
    left[0] = NUMBER if stage.name == STAGE else -1
    return record


def watched_replace(self: Path, target: Any) -> Any:
    left[0] -= left[0] > 0
    if left[0] == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return replace(self, target)


Workspace.begin = watched_begin  # type: ignore[method-assign]
Path.replace = watched_replace  # type: ignore[method-assign]
sys.exit(main(WORDS))
