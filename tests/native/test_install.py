"""`make install`, and programs in four languages that use what it puts in place."""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

import micronet_lm as mn
from micronet_lm.runtime.places import shipped_model

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "native" / "examples"
TEXT = "Return a ne"


def output(command: Sequence[str | Path], more: Mapping[str, str] | None = None) -> str:
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, **(more or {})}
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    build, prefix = tmp_path_factory.mktemp("build"), tmp_path_factory.mktemp("prefix")
    options = "-DCMAKE_BUILD_TYPE=None -DCMAKE_CXX_FLAGS=-O0 -DCMAKE_INSTALL_LIBDIR=lib"
    places = [f"PREFIX={prefix}", f"INSTALL_BUILD={build}", f"INSTALL_OPTIONS={options}"]
    output(["make", "-C", ROOT, "install", *places])
    return prefix


def check(command: Sequence[str | Path], more: Mapping[str, str] | None = None) -> None:
    """A program's suggestions are Python's, and a wrong model ends in a sentence."""
    expected = [word for word, _ in mn.load().suggest(TEXT, 3)]
    assert output([*command, shipped_model(), TEXT], more).split() == expected
    wrong = subprocess.run(
        [*command, ROOT / "Makefile", TEXT],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **(more or {})},
    )
    assert wrong.returncode == 1
    assert "the header claims" in wrong.stderr


def test_cmake_projects_find_it(prefix: Path, tmp_path: Path) -> None:
    output(["cmake", "-S", EXAMPLES / "cmake", "-B", tmp_path, f"-DCMAKE_PREFIX_PATH={prefix}"])
    output(["cmake", "--build", tmp_path])
    check([tmp_path / "suggest"])
    assert "dictionary" in output([tmp_path / "next_words", shipped_model(), "Return", "a", "new"])


@pytest.mark.parametrize("kind", ["shared", "static"])
def test_pkg_config_names_what_a_compiler_needs(prefix: Path, tmp_path: Path, kind: str) -> None:
    """A program of C alone: with the static library, the flags must name the run-time of C++."""
    compiler = shutil.which("cc")
    if not compiler or not shutil.which("pkg-config"):
        pytest.skip("cc or pkg-config is not installed")
    lib = prefix / "lib"
    if kind == "static":  # no shared library that the linker would prefer
        shutil.copytree(lib, tmp_path / "lib", ignore=shutil.ignore_patterns("*.so*"))
        lib = tmp_path / "lib"
    more = {"PKG_CONFIG_PATH": str(prefix / "lib" / "pkgconfig")}
    asked = ["pkg-config", *(["--static"] if kind == "static" else []), "micronet"]
    assert output([*asked, "--modversion"], more).strip() == mn.__version__
    flags = output([*asked, "--cflags"], more).split()
    libraries = [
        flag.replace(str(prefix / "lib"), str(lib))
        for flag in output([*asked, "--libs"], more).split()
    ]
    built = tmp_path / "next_words"
    output([compiler, *flags, EXAMPLES / "next_words.c", "-o", built, *libraries, "-lm"])
    found = {"LD_LIBRARY_PATH": str(lib)} if kind == "shared" else {}
    said = output([built, shipped_model(), "Return", "a", "new"], found)
    assert "dictionary" in said


def test_only_the_functions_of_the_header_are_visible(prefix: Path) -> None:
    nm = shutil.which("nm")
    if not nm:
        pytest.skip("nm is not installed")
    lines = output([nm, "-D", "--defined-only", prefix / "lib" / "libmicronet.so"]).splitlines()
    names = {line.split()[-1] for line in lines}
    assert {"mn_model_open", "mn_text_suggest"} <= names
    assert {name for name in names if not name.startswith("mn_")} == set()


def test_rust(prefix: Path, tmp_path: Path) -> None:
    if not shutil.which("rustc"):
        pytest.skip("rustc is not installed")
    built, lib = tmp_path / "suggest", prefix / "lib"
    output(["rustc", "-l", "micronet", "-L", lib, "-o", built, EXAMPLES / "suggest.rs"])
    check([built], {"LD_LIBRARY_PATH": str(lib)})


def test_go(prefix: Path, tmp_path: Path) -> None:
    if not shutil.which("go") or not shutil.which("pkg-config"):
        pytest.skip("go or pkg-config is not installed")
    more = {
        "PKG_CONFIG_PATH": str(prefix / "lib" / "pkgconfig"),
        "LD_LIBRARY_PATH": str(prefix / "lib"),
        "GOCACHE": str(tmp_path / "cache"),
        "GOFLAGS": "-mod=mod",
        "GO111MODULE": "off",
    }
    built = tmp_path / "suggest"
    output(["go", "build", "-o", built, EXAMPLES / "go" / "suggest.go"], more)
    check([built], more)
