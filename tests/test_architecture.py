"""The shape of the package: imports go downward only, and running a model never needs torch."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
ROOT = TESTS.parent
PACKAGE = ROOT / "src" / "micronet_lm"

# What each room may import, besides itself and everything below. Rooms on one line are neighbours
# that do not know each other.
LAYERS: list[set[str]] = [
    {"errors", "strict_json"},
    {"checksum", "evaluation", "files", "machine", "progress"},
    {"config"},
    {"layout", "spelling"},
    {"corpus", "model", "ngrams", "runs"},
    {"accounting"},
    {"artifact"},
    {"training", "runtime"},
    {"compression", "typist"},
    {"pipeline"},
    {"diagnosis", "page", "report", "serve", "interop"},
    {"damage"},
    {"cli"},
    {"__main__"},
]
LEVEL = {room: level for level, rooms in enumerate(LAYERS) for room in rooms}
TORCH_FREE = {
    "checksum",
    "errors",
    "evaluation",
    "files",
    "machine",
    "progress",
    "strict_json",
    "config",
    "layout",
    "runs",
    "corpus",
    "ngrams",
    "accounting",
    "artifact",
}
TORCH_FREE |= {"runtime", "serve", "page", "diagnosis", "spelling", "typist"}


def modules() -> Iterator[tuple[str, Path]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        relative = path.relative_to(PACKAGE)
        room = relative.parts[0].removesuffix(".py")
        if room != "__init__":
            yield room, path


def imported_modules(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            assert node.module is not None
            names.add(node.module)
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def rooms_of(names: set[str]) -> set[str]:
    parts = [name.split(".") for name in names]
    return {p[1] for p in parts if p[0] == "micronet_lm" and len(p) > 1 and p[1] in LEVEL}


@pytest.mark.parametrize(
    ("room", "path"), list(modules()), ids=lambda value: str(value).split("lm/")[-1]
)
def test_imports_go_downward_only(room: str, path: Path) -> None:
    assert room in LEVEL, f"{room} has no place in the design; give it one in LAYERS"
    for other in rooms_of(imported_modules(path)) - {room}:
        assert LEVEL[other] < LEVEL[room], f"{path.name} in {room} imports {other}"


def test_the_torch_free_rooms_know_neither_torch_nor_who_does() -> None:
    for room, path in modules():
        if room in TORCH_FREE:
            names = imported_modules(path)
            assert not {name for name in names if name.split(".")[0] == "torch"}, path
            assert rooms_of(names) <= TORCH_FREE, path


def test_files_from_outside_are_opened_by_one_function() -> None:
    """`files.open_regular` never waits for a pipe; what reads by other means is listed here."""
    inside = {
        *("config/loading.py", "corpus/pythondocs.py", "serve/routes_operations.py"),  # our own
        *("accounting/stage_targets.py", "report/claims.py", "report/tables.py", "page/build.py"),
        *("machine.py", "diagnosis.py", "serve/metrics.py", "pipeline/jobs.py"),  # /proc and /sys
        "cli/packed.py",  # a text may come from a pipe
        *("files.py", "pipeline/outputs.py"),  # itself, and after it has asked for regular files
    }
    called = r"\.read_bytes\(\)|\.read_text\(|\.open\(\"r|np\.(load|fromfile)\("
    reads = re.compile(called + r"|(?<![\w.])(?<!def )open\(")
    found = {
        path.relative_to(PACKAGE).as_posix()
        for _, path in modules()
        if reads.search(path.read_text(encoding="utf-8"))
    }
    assert found <= inside, found - inside


def test_torch_is_not_imported_by_the_torch_free_verbs(tmp_path: Path) -> None:
    """In a real process: help, presets and corpora come without torch."""
    script = (
        "import sys; sys.modules['torch'] = None\n"  # importing it now fails
        "import micronet_lm, micronet_lm.corpus, micronet_lm.config, micronet_lm.cli.main as m\n"
        "assert m.main(['presets', 'paper/student', '--json']) == 0\n"
        "assert m.main(['corpus', 'build', '--out', sys.argv[1], '--json']) == 0\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "corpus")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_a_verb_that_needs_torch_says_so_without_it() -> None:
    script = (
        "import sys; sys.modules['torch'] = None\n"
        "import micronet_lm.cli.main as m\n"
        "sys.exit(m.main(['train', 'demo', '--out', 'never']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr == (
        "micronet: this verb needs torch: pip install -c constraints.txt '.[train]' in a clone of "
        "micronet-lm\n"
    )


def sources() -> Iterator[Path]:
    """Every file of source code, whatever its language; no generated or built one."""
    for folder in ("src", "tests", "benchmarks", "examples", "native", "web", "docs"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in {".py", ".cpp", ".hpp", ".h", ".js", ".ts", ".sh"}:
                yield path


def test_files_hold_one_idea() -> None:
    """A file past 400 lines is two ideas."""
    lengths = {
        str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines())
        for path in sources()
    }
    assert len(lengths) > 500
    assert {name: lines for name, lines in lengths.items() if lines > 400} == {}


@pytest.mark.parametrize(
    "path", sorted(TESTS.rglob("*.py")), ids=lambda p: str(p.relative_to(TESTS))
)
def test_tests_share_through_support_only(path: Path) -> None:
    """No test module imports another one or a conftest, not even in a script that it writes."""
    text = path.read_text(encoding="utf-8")
    others = re.findall(r"^ *(?:from|import) +(tests\b(?!\.support\b).*)", text, re.MULTILINE)
    assert others == [], "move what is shared to tests/support"
