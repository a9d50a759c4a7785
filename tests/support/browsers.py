"""Chromium, driven by Playwright; tests that need them are skipped where one is missing."""

import functools
import json
import shutil
import subprocess
from pathlib import Path

import pytest

AXE = "node_modules/axe-core/axe.min.js"


def chromium() -> str:
    """Return the browser's path, or skip the test."""
    pytest.importorskip("playwright", reason="the client playwright is not installed")
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        pytest.skip("chromium is not installed: apt install chromium")
    return found


@functools.cache
def axe_source(folder: Path) -> str | None:
    """Return axe-core, fetched by npm into a folder; None where that is not possible."""
    npm = shutil.which("npm")
    if npm is None:
        return None
    (folder / "package.json").write_text(json.dumps({"private": True}))
    try:
        subprocess.run(
            [npm, "install", "--silent", "--no-audit", "--no-fund", "axe-core@4.14.0"],
            cwd=folder,
            check=True,
            capture_output=True,
            timeout=60,
        )
    except (subprocess.SubprocessError, OSError):
        return None
    return (folder / AXE).read_text(encoding="utf-8")
