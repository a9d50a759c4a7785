"""Settings and fixtures of the whole suite, and what of it runs where torch is not installed."""

import ast
import atexit
import importlib.util
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from micronet_lm.corpus import Corpus

# Tests compute tiny things, several of them at once: threads would only wait for each other.
# NumPy and torch read it when they are imported, so that the fixtures here import them later.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# What was measured before must decide nothing here, and what is measured here nothing later.
# Workers of xdist inherit the place.
if "PYTEST_XDIST_WORKER" not in os.environ:
    os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="micronet-tests-")
    atexit.register(shutil.rmtree, os.environ["XDG_CACHE_HOME"], ignore_errors=True)

# How long an example takes says how busy the machine is, nothing about the code.
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")

HAS_TORCH = importlib.util.find_spec("torch") is not None
TESTS = Path(__file__).parent
SOURCES = (TESTS.parent / "src", TESTS.parent)
"""Where modules of the project are looked for, by their dotted names."""


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> "Corpus":
    """A corpus small enough to train on in a second."""
    from tests.support.corpora import squares_corpus

    return squares_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="session")
def recipe_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a recipe with all sections."""
    from tests.support.recipes import write_recipes

    return write_recipes(tmp_path_factory.mktemp("recipes"))


@pytest.fixture(scope="session")
def finished(recipe_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pipeline that ran to its end without any interruption; tests only read it."""
    from tests.support.verbs import run_recipe

    return run_recipe(recipe_file, tmp_path_factory.mktemp("pipelines") / "finished")


@pytest.fixture
def alarm() -> Iterator[None]:
    """End a test that waits for ever."""

    def ring(*_: object) -> None:
        raise AssertionError("it waits")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def pytest_report_header() -> str | None:
    if HAS_TORCH:
        return None
    modules = list(TESTS.rglob("test_*.py"))
    left_out = sum(needs_torch(path) for path in modules)
    return f"torch is not installed: {left_out} of {len(modules)} test modules import it, left out"


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out modules that cannot be imported, and folders whose conftest.py cannot."""
    if HAS_TORCH:
        return None
    module = collection_path / "conftest.py" if collection_path.is_dir() else collection_path
    return True if module.suffix == ".py" and module.exists() and needs_torch(module) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what is marked: tests that import no torch, but run a verb that does."""
    for item in items:
        if not HAS_TORCH and item.get_closest_marker("needs_torch"):
            item.add_marker(pytest.mark.skip(reason="torch is not installed"))


def needs_torch(module: Path) -> bool:
    """Follow the imports of a test module and its conftests through the project, down to torch."""
    folders = [folder for folder in module.parents if folder.is_relative_to(TESTS)]
    waiting = [module, *(folder / "conftest.py" for folder in folders)]
    seen: set[Path] = set()
    while waiting:
        path = waiting.pop()
        if path in seen or not path.is_file():
            continue
        seen.add(path)
        names = imported_names(path)
        if any("torch" in name.split(".") for name in names):  # safetensors.torch, too
            return True
        waiting += [file for name in names for file in files_of(name)]
    return False


@cache
def imported_names(path: Path) -> frozenset[str]:
    """Return the dotted names that a file imports when it is loaded, not when it is used."""
    names: set[str] = set()
    waiting: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while waiting:
        node = waiting.pop()
        match node:
            case ast.Import():
                names |= {alias.name for alias in node.names}
            case ast.ImportFrom(module=str(module)):
                names |= {module, *(f"{module}.{alias.name}" for alias in node.names)}
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                pass
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                waiting += node.orelse
            case _:
                waiting += ast.iter_child_nodes(node)
    return frozenset(names)


@cache
def files_of(name: str) -> tuple[Path, ...]:
    """Return the files of the project that importing a dotted name loads."""
    parts = name.split(".")
    stems = [source.joinpath(*parts[:n]) for source in SOURCES for n in range(1, len(parts) + 1)]
    return tuple(
        file
        for stem in stems
        for file in (stem.with_suffix(".py"), stem / "__init__.py")
        if file.is_file()
    )
