"""End a process as a broken number format does: for real, by an instruction or by a hang."""

import ctypes
import mmap
import os
import sys
from pathlib import Path

_UD2 = {"x86_64": b"\x0f\x0b", "aarch64": b"\x00\x00\x00\x00"}
"""An instruction that every processor of its kind refuses."""


def execute_illegal_instruction(*_: object) -> None:
    """Let the processor meet an instruction that it does not have: SIGILL, as AMX gave it."""
    page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(_UD2[os.uname().machine])
    place = ctypes.addressof(ctypes.c_char.from_buffer(page))
    ctypes.CFUNCTYPE(None)(place)()


def spoil_bfloat16(folder: Path, how: str) -> str:
    """Write a `sitecustomize` that spoils bfloat16 in every fork of a Python process.

    `how` is `dies`, `hangs`, `crawls` (after a first product) or `dies as AMX does`: not where
    ONEDNN_MAX_CPU_ISA is set. Return what PYTHONPATH must be.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sitecustomize.py").write_text(
        "import os, sys, time\n"
        f"HOW = {how!r}\n"
        "entered = 0\n"
        "def enter(self):\n"
        "    global entered\n"
        "    entered += 1\n"
        "    if HOW == 'hangs' or (HOW == 'crawls' and entered > 1):\n"
        "        time.sleep(600)\n"
        "    if HOW == 'crawls':\n"
        "        return real(self)\n"
        "    if HOW == 'dies' or 'ONEDNN_MAX_CPU_ISA' not in os.environ:\n"
        "        from tests.support.illegal import execute_illegal_instruction\n"
        "        execute_illegal_instruction()\n"
        "    return real(self)\n"
        "def spoil(event, arguments):\n"
        "    global real\n"
        "    if event == 'os.fork':\n"  # torch is imported by then
        "        import torch\n"
        "        if torch.autocast.__enter__ is not enter:\n"
        "            real = torch.autocast.__enter__\n"
        "            torch.autocast.__enter__ = enter\n"
        "sys.addaudithook(spoil)\n",
        encoding="utf-8",
    )
    root = str(Path(__file__).parents[2])
    return os.pathsep.join([str(folder), root, *filter(None, [os.environ.get("PYTHONPATH")])])


if __name__ == "__main__":
    execute_illegal_instruction()
    sys.exit("the processor executed it")
