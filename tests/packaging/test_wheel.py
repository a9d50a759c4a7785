"""A wheel built from the sdist runs models where there is neither a compiler nor torch."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest

import micronet_lm as mn
from micronet_lm.runtime.places import shipped_model

ROOT = Path(__file__).parents[2]
TEXT = "Return a new"
# Left behind in the sources by a build for another platform.
STRAY = "src/micronet_lm/runtime/_native.cpython-311-aarch64-linux-gnu.so"
ASKED = """
import json, sys
import micronet_lm as mn
from micronet_lm.runtime.places import shipped_model

lm = mn.load(shipped_model())
print(json.dumps({
    "file": mn.__file__,
    "engine": type(lm.engine).__name__,
    "words": lm.top_k(sys.argv[1], 5),
    "torch": any(name == "torch" for name in sys.modules),
}))
"""


def test_a_wheel_runs_where_there_is_no_compiler(tmp_path: Path) -> None:
    """One test for all, because only one wheel is to be built."""
    if os.environ.get("MICRONET_WITHOUT_NATIVE"):
        pytest.skip("MICRONET_WITHOUT_NATIVE is set, so a wheel has no engine")
    skip_without_registry(tmp_path)
    files = copy_of_checkout(tmp_path / "source")
    sdist, wheel = built(tmp_path / "source", tmp_path / "dist")
    check_sources(sdist, files)
    check_contents(wheel, files)
    check_abi(wheel, tmp_path)
    for file in (sdist, wheel):
        check_documented_size(file)

    folder = tmp_path / "empty"
    venv.create(folder, with_pip=True)
    python, micronet = folder / "bin" / "python", folder / "bin" / "micronet"
    nowhere = tmp_path / "no-compiler"
    without = {"PATH": str(folder / "bin"), "CC": str(nowhere), "CXX": str(nowhere)}
    pip: list[str | Path] = [python, "-m", "pip"]
    output_of([*pip, "install", "-c", ROOT / "constraints.txt", wheel], tmp_path, without)

    expected = mn.load(shipped_model()).top_k(TEXT, 5)
    predicted = json.loads(output_of([micronet, "predict", TEXT, "--json"], tmp_path, without))
    said = json.loads(output_of([python, "-c", ASKED, TEXT], tmp_path, without))
    assert folder in Path(said["file"]).parents
    assert said["engine"] == "NativeEngine"
    assert not said["torch"]
    for found in ([(w["word"], w["probability"]) for w in predicted["words"]], said["words"]):
        assert [word for word, _ in found] == [word for word, _ in expected]
        assert [p for _, p in found] == pytest.approx([p for _, p in expected], rel=1e-5)
    installed = json.loads(output_of([*pip, "list", "--format", "json"], tmp_path, without))
    assert "torch" not in {package["name"] for package in installed}


def copy_of_checkout(to: Path) -> set[str]:
    """Copy what git knows and what is not committed yet; return the names."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    names = {name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()}
    for name in names:
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, to / name)
    (to / STRAY).write_bytes(b"of another platform")
    return names


def built(source: Path, out: Path) -> tuple[Path, Path]:
    """Build an sdist, and from that a wheel, each in an environment with the build's tools only."""
    if find_spec("build") is None:
        pytest.skip("the package build is not installed: pip install micronet-lm[wheel-test]")
    command = [sys.executable, "-m", "build", "--outdir", str(out), str(source)]
    output_of(command, out.parent, {"PIP_CONSTRAINT": str(ROOT / "constraints.txt")})
    ((sdist,), (wheel,)) = out.glob("*.tar.gz"), out.glob("*.whl")
    return sdist, wheel


def check_sources(sdist: Path, files: set[str]) -> None:
    """Check that an sdist holds what git knows and nothing that was built."""
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for room in ("src/", "native/", "web/", "tests/"):
        wanted = {name for name in files if name.startswith(room)}
        assert {name for name in names if name.startswith(room)} == wanted
    assert {"pyproject.toml", "README.md", "LICENSE", "PKG-INFO"} <= names


def check_abi(wheel: Path, folder: Path) -> None:
    """Check by audits what a wheel asks of Python, and of the system's libraries."""
    stable = sys.version_info >= (3, 12)
    version = f"cp{sys.version_info.major}{sys.version_info.minor}"
    assert ("-cp312-abi3-" if stable else f"-{version}-{version}-") in wheel.name
    if stable and find_spec("abi3audit"):
        output_of([sys.executable, "-m", "abi3audit", "--strict", wheel], folder, {})
    if sys.platform == "linux" and find_spec("auditwheel"):
        said = output_of([sys.executable, "-m", "auditwheel", "show", wheel], folder, {})
        assert "manylinux_2_" in " ".join(said.split()), said


def check_contents(wheel: Path, files: set[str]) -> None:
    """Check that a wheel holds the package, its engine for this platform, and nothing else."""
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
    described = {name for name in names if name.split("/")[0].endswith(".dist-info")}
    package = {n.removeprefix("src/") for n in files if n.startswith("src/micronet_lm/")}
    own = sysconfig.get_config_var("EXT_SUFFIX")
    engine = f"micronet_lm/runtime/_native{'.abi3.so' if sys.version_info >= (3, 12) else own}"
    browsers = {
        f"micronet_lm/page/{name}" for name in files if name.startswith(("web/src/", "web/dist/"))
    }
    assert names - described == package | browsers | {engine}
    needed = {"py.typed", "models/demo.safetensors", "presets/demo.yaml", "presets/paper/base.yaml"}
    needed |= {"page/web/dist/micronet.wasm", "page/web/src/index.js"}
    assert {f"micronet_lm/{name}" for name in needed} <= names


def check_documented_size(file: Path) -> None:
    """Check that docs/platforms.md has the size of a file, to a tenth; it lists those for Linux."""
    page = (ROOT / "docs" / "platforms.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([^`]+)` \|.*\| ([\d.]+) MB \|", page, re.MULTILINE)
    assert {name.split("-")[0] for name, _ in rows} >= {"cp311", "cp312", ".tar.gz"}
    for name, megabytes in rows:
        if name in file.name:
            assert file.stat().st_size / 1e6 == pytest.approx(float(megabytes), rel=0.1)


def skip_without_registry(folder: Path) -> None:
    """Skip where pip cannot fetch a package: a build that fails later fails for its own reasons."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--retries", "1"]
    fetched = subprocess.run(
        [*command, "-d", folder / "probe", "-c", ROOT / "constraints.txt", "nanobind"],
        capture_output=True,
        text=True,
        check=False,
    )
    if fetched.returncode != 0:
        reason = (fetched.stderr.strip().splitlines() or ["no message"])[-1]
        pytest.skip(f"pip cannot fetch packages here: {reason}")


def output_of(command: Sequence[str | Path], folder: Path, more: dict[str, str]) -> str:
    """Run a command that must succeed, away from what this process imports; return its output."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    done = subprocess.run(
        command, cwd=folder, env={**kept, **more}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
