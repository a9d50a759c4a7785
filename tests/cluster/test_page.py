"""The commands, options and recipe of docs/cluster.md as they stand there, with other sizes."""

import json
import re
from pathlib import Path

import pytest
from tests.support.cluster_jobs import (
    INTERFACE,
    PRECISION,
    changed,
    command,
    job_of,
    page,
    start,
)
from tests.support.recipes import write_recipes
from tests.support.slurm import Cluster

RECIPE, OUT = "wikitext-2/micronet", "runs/wikitext-2"


@pytest.fixture(name="recipe", scope="module")
def _recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_recipes(tmp_path_factory.mktemp("recipes"))


def test_a_gpu_and_what_the_table_of_options_has(
    cluster: Cluster, recipe: Path, tmp_path: Path
) -> None:
    """The first command: the stages that compute get a GPU each, and all get what is asked for."""
    out, log = tmp_path / "jobs", tmp_path / "log.txt"
    words = command("run", {RECIPE: str(recipe), OUT: str(out)})
    examples = ["4:00:00", "exclude=node7", "teacher=1-12:00:00"]
    assert all(example in page() for example in examples)
    words += ["--time", "4:00:00", "--time", "teacher=1-12:00:00", "--slurm", "exclude=mn3"]
    words += ["--memory", "800M", "--memory", "teacher=1G", "--cpus", "2", "--jobs", "1"]
    parent = start(cluster, [*words, *PRECISION, "--until", "soft-labels"], log)
    assert parent.wait(400) == 0, log.read_text()
    asked = {name: cluster.job(job_of(out, name)) for name in ("corpus", "teacher", "soft-labels")}
    assert {job["Partition"] for job in asked.values()} == {"gpu"}
    assert {job["ExcNodeList"] for job in asked.values()} == {"mn3"}
    assert {job["CPUs/Task"] for job in asked.values()} == {"2"}
    limits = {name: job["TimeLimit"] for name, job in asked.items()}
    whole, half = "04:00:00", "1-12:00:00"
    assert limits == {"corpus": whole, "teacher": half, "soft-labels": whole}
    rooms = {name: job["MinMemoryNode"] for name, job in asked.items()}
    assert rooms == {"corpus": "800M", "teacher": "1G", "soft-labels": "800M"}
    gpus = {name: "gpu" in job.get("TresPerNode", "") for name, job in asked.items()}
    assert gpus == {"corpus": False, "teacher": True, "soft-labels": True}


def test_nodes_by_the_command_line_and_by_the_recipe(
    cluster: Cluster, recipe: Path, tmp_path: Path
) -> None:
    """The second command, with the section of a recipe that the page shows."""
    out, log = tmp_path / "jobs", tmp_path / "log.txt"
    (section,) = re.findall(r"```yaml\n(.*?)```", page(), flags=re.DOTALL)
    sizes = {"memory: 32G": "memory: 1500M", "gpus: 4": "gpus: 2", "{nodes: 8}": "{nodes: 3}"}
    whole = tmp_path / "asked.yaml"
    whole.write_text(recipe.read_text() + changed(section, sizes))
    words = command("run", {RECIPE: str(whole), OUT: str(out), "=8": "=3"}, number=1)
    words += [*PRECISION, *INTERFACE, "--time", "10", "--memory", "800M"]
    assert start(cluster, [*words, "--until", "sensitivity"], log).wait(560) == 0, log.read_text()
    nodes = {"corpus": 1, "teacher": 2, "soft-labels": 3, "student": 1, "sensitivity": 3}
    asked = {name: cluster.job(job_of(out, name)) for name in nodes}
    assert {name: int(job["NumNodes"]) for name, job in asked.items()} == nodes
    teacher = asked["teacher"]
    assert (teacher["TimeLimit"], teacher["Partition"]) == ("1-12:00:00", "gpu")
    assert teacher["TresPerNode"].endswith("gpu:2")
    assert asked["corpus"]["Partition"] == "main"
    submitted = json.loads((out / "jobs" / "submitted.json").read_text())
    assert submitted == {}  # no job is under way any more
