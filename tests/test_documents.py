"""What the pages point at is there for everyone who gets the repository."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def files_of_the_repository() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    return [ROOT / line for line in listed.stdout.splitlines()]


def test_every_link_and_image_leads_to_a_file_of_the_repository() -> None:
    files = files_of_the_repository()
    there = {path.resolve() for path in files} | {path.parent.resolve() for path in files}
    links = [
        (page, target)
        for page in files
        if page.suffix == ".md"
        for target in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8"))
        if "://" not in target
    ]
    assert len(links) > 20
    broken = [
        f"{page.relative_to(ROOT)} -> {target}"
        for page, target in links
        if (page.parent / target).resolve() not in there
    ]
    assert not broken
