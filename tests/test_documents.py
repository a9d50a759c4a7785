"""What the pages point at is there for everyone who gets the repository."""

import re
import runpy
import subprocess
from pathlib import Path

import pytest
import yaml

import micronet_lm
from micronet_lm.cli.cluster import OPTIONS
from micronet_lm.config import describe_keys

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


def test_every_test_that_a_page_names_exists() -> None:
    pages = [path for path in files_of_the_repository() if path.suffix == ".md"]
    named = {
        (file, name)
        for page in pages
        for file, name in re.findall(r"(tests/[\w/]+\.py)::(\w+)", page.read_text("utf-8"))
    }
    assert len(named) > 10
    assert {
        (file, name)
        for file, name in named
        if f"\ndef {name}(" not in (ROOT / file).read_text(encoding="utf-8")
    } == set()


def test_every_option_of_a_cluster_has_a_test_on_its_page() -> None:
    page = (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8")
    shown = page.split("## What was run")[1]
    for option in OPTIONS:
        assert re.search(rf"^\|.*`{option}\b.*\|", page, flags=re.MULTILINE), option
        assert option in shown, option


def test_every_make_target_that_is_named_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z0-9-]+):", makefile, flags=re.MULTILINE))
    pages = [path for path in files_of_the_repository() if path.suffix in (".md", ".yml")]
    named = {
        (page.relative_to(ROOT).as_posix(), name)
        for page in [*pages, ROOT / ".ci" / "run"]
        if page.is_file()  # a source distribution has no .ci
        for name in re.findall(
            r"(?:^|`|run: )make ([a-z0-9-]+)", page.read_text(encoding="utf-8"), flags=re.MULTILINE
        )
    }
    assert {"test", "test-base", "docs", "wheel", "native-test"} <= {name for _, name in named}
    assert {(page, name) for page, name in named if name not in targets} == set()


def table(page: str) -> list[list[str]]:
    """Cells of the page's first table, without its head and without bold type."""
    rows = [line for line in (ROOT / page).read_text("utf-8").splitlines() if line.startswith("|")]
    return [[cell.strip(" *") for cell in row.strip("|").split("|")] for row in rows[2:]]


def test_the_picture_and_the_table_of_readme_have_the_measured_numbers() -> None:
    picture = runpy.run_path(str(ROOT / "docs" / "pictures" / "pipeline.py"))
    measured = picture["stages"](picture["PAGE"].read_text(encoding="utf-8"))
    assert len(measured) == 6
    assert picture["PICTURE"].read_text(encoding="utf-8") == picture["draw"](measured)

    rows = [row[1:] for row in table("README.md")][: len(measured)]
    assert rows == [
        [stage.test, f"{stage.storage:,}", f"{stage.operations:,}", f"{stage.size:,}"]
        for stage in measured
    ]


def test_one_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == micronet_lm.__version__
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    released = re.findall(r"^## \[(\d.*)\] - (.*)$", changes, flags=re.MULTILINE)
    assert released[0] == (micronet_lm.__version__, str(citation["date-released"]))


def test_the_changelog_keeps_its_order() -> None:
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    order = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]
    for section in changes.split("\n## ")[1:]:
        kinds = [order.index(kind) for kind in re.findall(r"^### (.*)$", section, re.MULTILINE)]
        assert kinds
        assert kinds == sorted(set(kinds))


def test_the_glossary_has_each_term_once_and_keys_that_exist() -> None:
    page = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    heads = re.findall(r"^- (\*\*.*?\*\*[^:]*): ", page, flags=re.MULTILINE)
    terms = [term for head in heads for term in re.findall(r"\*\*(.*?)\*\*", head)]
    assert len(terms) > 50
    assert len(terms) == len(set(terms))
    named = re.findall(r"keys? `([a-z_.]+)`(?: and `([a-z_.]+)`)?", " ".join(page.split()))
    keys = {key for pair in named for key in pair if key}
    assert len(keys) > 8
    assert keys - set(re.findall(r"^  --([a-z_.]+)", describe_keys(), re.MULTILINE)) == set()


def test_architecture_is_short_and_its_table_of_changes_names_what_is_there() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert len(page.split()) < 2500  # drawings and tables included
    rows = page.split("## You want to change something")[1].split("\n## ")[0]
    named = re.findall(r"`([a-z_0-9./*]+)`", rows)
    assert len(named) > 20
    homes = (ROOT, ROOT / "src" / "micronet_lm")
    assert [name for name in named if not any(any(home.glob(name)) for home in homes)] == []


def test_what_a_change_touches_is_there() -> None:
    page = (ROOT / "docs" / "changing.md").read_text(encoding="utf-8")
    named = re.findall(
        r"`([a-z_0-9./*-]+/(?:[a-z_0-9*-]+\.[a-z]+)?|[a-z_0-9]+\.(?:py|cpp|hpp|js))`", page
    )
    homes = (ROOT, ROOT / "src" / "micronet_lm")
    assert len(named) > 50
    for name in named:
        pattern = name if "/" in name else f"**/{name}"
        assert any(any(home.glob(pattern)) for home in homes), name


def test_every_room_is_in_the_drawing() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    drawn = set(re.findall(r"[a-z_]+", page.split("```\n┌")[1].split("```")[0]))
    package = ROOT / "src" / "micronet_lm"
    rooms = {path.parent.name for path in package.glob("*/__init__.py")}
    rooms |= {path.stem for path in package.glob("[a-z]*.py")}
    assert rooms - drawn == set()


def test_every_program_of_the_benchmarks_is_in_their_page() -> None:
    page = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
    programs = {path.name for path in (ROOT / "benchmarks").glob("*.py")}
    assert len(programs) > 25
    assert programs - set(re.findall(r"`([a-z_]+\.py)\b", page)) == set()
