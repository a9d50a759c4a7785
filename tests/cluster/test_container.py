"""Jobs in containers of bubblewrap, by the script of docs/cluster.md."""

import json
import shutil
import sys
from pathlib import Path

import pytest
from tests.support.cluster_jobs import (
    INTERFACE,
    LIMITS,
    LONG,
    PRECISION,
    changed,
    long_teacher_by_two,
    page,
    start,
    worker_of,
)
from tests.support.processes import ROOT
from tests.support.recipes import write_recipes
from tests.support.runs import same_tensors
from tests.support.slurm import Cluster
from tests.support.waiting import wait_until

LAST = "last.safetensors"


def container(cluster: Cluster, shared: Path) -> Path:
    """Write the page's script with the folders of this machine."""
    script = page().split("```sh\n")[1].split("```")[0]
    # What Python needs besides its virtual environment, whose packages may be elsewhere.
    needed = {ROOT, sys.base_prefix, *(word for word in sys.path if "site-packages" in word)}
    folders = [*needed, str(cluster.folder)]
    binds = " ".join(f"--ro-bind {folder} {folder}" for folder in sorted(folders))
    changes = {
        "--ro-bind /opt/venv /container": f"--ro-bind {sys.prefix} /container {binds}",
        "--bind /shared /shared": f"--bind {shared} {shared}",
    }
    file = shared / "container.sh"
    file.write_text(changed(script, changes))
    file.chmod(0o755)
    return file


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="apt-get install bubblewrap")
def test_a_training_in_containers_on_two_nodes(cluster: Cluster, tmp_path: Path) -> None:
    """It is warned, saves and is requeued from inside; its bits are those of two processes here."""
    recipe, out, log = write_recipes(tmp_path), tmp_path / "jobs", tmp_path / "log.txt"
    words = ["run", str(recipe), "--out", str(out), *LIMITS, *PRECISION, *LONG, *INTERFACE]
    words += ["--nodes", "teacher=2", "--python", str(container(cluster, tmp_path))]
    parent = start(cluster, words, log)
    metrics = out / "teacher" / "metrics.jsonl"
    wait_until(lambda: metrics.exists() and '"step": 20' in metrics.read_text(), "steps", 240)
    (job,) = json.loads((out / "jobs" / "submitted.json").read_text()).values()
    place = cluster.job(job)["BatchHost"]
    worker = worker_of(cluster, place, 0) or worker_of(cluster, place, 1)
    numbers = [Path(f"/proc/{pid}/ns/pid").readlink() for pid in (worker, "self")]
    assert numbers[0] != numbers[1]
    inside = {path.name for path in Path(f"/proc/{worker}/root").iterdir()}
    assert "container" in inside
    assert not inside & {"boot", "home", "var"}
    cluster.run(["scancel", "--signal=USR2", job])
    wait_until(lambda: cluster.job(job)["Restarts"] == "1", "a requeue", 120)
    assert (out / "teacher" / LAST).exists()
    cluster.hurry()
    assert parent.wait(400) == 0, log.read_text()
    long_teacher_by_two(recipe, out / "corpus", tmp_path / "two", *LONG[:-2])
    assert same_tensors(out / "teacher" / LAST, tmp_path / "two" / LAST)
