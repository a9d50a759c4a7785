"""What jobs ask of a cluster: from the estimate with a margin, or as the command line says."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.recipes import write_recipes

from micronet_lm.cli.main import main
from micronet_lm.config import JobConfig
from micronet_lm.errors import ConfigError, UsageError
from micronet_lm.pipeline import Stage, in_order, stages_of, take_apart
from micronet_lm.pipeline.cluster_queue import JobState
from micronet_lm.pipeline.costs import Cost
from micronet_lm.pipeline.resources import Resources, read_memory, read_minutes


@pytest.mark.parametrize(
    ("text", "minutes"),
    [("90", 90), ("4:00:00", 240), ("30:30", 31), ("1-12", 2160), ("1-12:30:00", 2190)],
)
def test_times_are_read_as_sbatch_reads_them(text: str, minutes: int) -> None:
    assert read_minutes(text) == minutes


@pytest.mark.parametrize("text", ["", "0", "soon", "1:2:3:4", "-5", "1-"])
def test_other_times_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--time must be minutes or a time"):
        read_minutes(text)


@pytest.mark.parametrize(
    ("text", "size"), [("900", 900 << 20), ("16G", 16 << 30), ("1.5g", 3 << 29), ("2T", 2 << 40)]
)
def test_memory_is_read_as_sbatch_reads_it(text: str, size: int) -> None:
    assert read_memory(text) == size


@pytest.mark.parametrize("text", ["", "lots", "16GB", "-1G", "0", "nan"])
def test_other_amounts_of_memory_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--memory must be megabytes"):
        read_memory(text)


def stage(name: str, **said: Any) -> Stage:
    job = JobConfig(**said) if said else None
    return Stage(name=name, folder=name, settings={}, work=lambda here, inputs: {}, job=job)


def test_estimates_get_a_margin() -> None:
    asked = Resources().of(stage("teacher"), Cost(seconds=3600.0, memory=4 << 30))
    room = {"slurm_mem": f"{8 << 10}M", "cpus_per_task": 1}
    assert asked == {"timeout_min": 3 * 60 + 30, **room}
    assert Resources().of(stage("report"), Cost()) == {"timeout_min": 1440, **room}


def test_what_is_said_wins_for_one_stage_or_for_all() -> None:
    own = Resources(
        minutes={"": 60, "teacher": 600},
        memory={"teacher": 32 << 30},
        gpus={"teacher": 4},
        partition="gpu",
        account="a",
        qos="q",
        constraint="c",
        setup=("module load cuda",),
        more={"exclude": "node7"},
    )
    shared = {
        "slurm_partition": "gpu",
        "slurm_account": "a",
        "slurm_qos": "q",
        "slurm_constraint": "c",
        "slurm_setup": ["module load cuda"],
        "slurm_additional_parameters": {"exclude": "node7"},
    }
    cost = Cost(seconds=1.0, memory=4 << 30)
    assert own.of(stage("teacher"), cost, threads=2) == {
        "timeout_min": 600,
        "slurm_mem": "32768M",
        "gpus_per_node": 4,
        "cpus_per_task": 8,  # two threads for each GPU's process
        **shared,
    }
    rest = {"timeout_min": 60, "slurm_mem": "8192M", "cpus_per_task": 1}
    assert own.of(stage("student"), cost) == {**rest, **shared}


def test_the_recipe_wins_over_what_is_said_of_all_stages_but_not_over_one() -> None:
    said = stage("teacher", hours=1.5, memory="16G", gpus=2, nodes=3, partition="big")
    general = Resources(minutes={"": 60}, memory={"": 1 << 30}, nodes={"": 2}, partition="any")
    asked = general.of(said, Cost())
    assert asked == {
        "timeout_min": 90,
        "slurm_mem": "16384M",
        "cpus_per_task": 2,
        "gpus_per_node": 2,
        "nodes": 3,
        "slurm_partition": "big",
    }
    other = general.of(stage("student"), Cost())
    assert (other["timeout_min"], other["nodes"], other["slurm_partition"]) == (60, 2, "any")
    named = Resources(minutes={"teacher": 7}, nodes={"teacher": 1}).of(said, Cost())
    assert named["timeout_min"] == 7
    assert "nodes" not in named


def test_nodes_and_gpus_go_only_where_they_help() -> None:
    own = Resources(nodes={"": 4}, gpus={"": 8})
    counts = {
        name: (own.node_count(stage(name)), own.gpu_count(stage(name)), own.processes(stage(name)))
        for name in ("corpus", "teacher", "soft-labels", "search-cache", "report")
    }
    assert counts == {
        "corpus": (1, 0, 1),
        "teacher": (4, 8, 8),
        "soft-labels": (4, 8, 8),
        "search-cache": (1, 1, 1),
        "report": (1, 0, 1),
    }
    estimate = Cost(memory=4 << 30)
    assert own.of(stage("teacher"), estimate)["slurm_mem"] == f"{8 * (8 << 10)}M"


def test_nodes_for_the_work_of_one_process_and_unknown_stages_are_refused() -> None:
    stages = [stage("corpus"), stage("search-cache")]
    with pytest.raises(UsageError, match="search-cache is the work of one process"):
        Resources(nodes={"search-cache": 2}).check(stages)
    with pytest.raises(UsageError, match="search-cache is the work of one process"):
        Resources().check([stage("search-cache", nodes=2)])
    with pytest.raises(UsageError, match=r"--time techer=\.\.\.: there is no stage techer"):
        Resources(minutes={"techer": 5}).check(stages)
    Resources(nodes={"": 2}, minutes={"corpus": 5}).check(stages)


def test_a_section_cluster_reaches_the_stages_and_changes_no_result(tmp_path: Path) -> None:
    recipe = str(write_recipes(tmp_path))
    said = {"cluster.soft_labels.nodes": 3, "cluster.corpus.memory": "3G"}
    plain, asked = stages_of(take_apart(recipe)), stages_of(take_apart(recipe, said))
    assert {n: s.fingerprint for n, s in plain.items()} == {
        n: s.fingerprint for n, s in asked.items()
    }
    jobs = {s.name: s.job for s in in_order(asked.values()) if s.job}
    assert jobs == {"soft-labels": JobConfig(nodes=3), "corpus": JobConfig(memory="3G")}
    recipes = take_apart(recipe, said)
    assert recipes.student.cluster is None
    assert recipes.teacher is not None
    assert recipes.teacher.cluster is None
    with pytest.raises(ConfigError, match=r"cluster.prune.memory: must be megabytes"):
        take_apart(recipe, {"cluster.prune.memory": "lots"})


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--time", "60"], "--time is for a cluster: add --executor slurm"),
        (["--threads", "2"], "--threads is for a cluster, where stages are jobs"),
        (["--executor", "slurm", "--time", "x"], "--time must be minutes"),
        (["--executor", "slurm", "--gpus", "x"], "--gpus must be a whole number"),
        (["--executor", "slurm", "--nodes", "0"], "--nodes must be"),
        (["--executor", "slurm", "--slurm", "x"], "--slurm must be KEY=VALUE"),
    ],
)
def test_wrong_words_are_one_sentence(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "demo", *words]) == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert said.count("\n") == 1


def test_a_machine_without_slurm_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    words = ["--executor", "slurm", "--time", "5", "--memory", "1G", "--out", str(tmp_path / "out")]
    assert main(["run", "demo", *words]) == 2
    assert (
        "--executor slurm needs sbatch, srun, squeue, scancel of SLURM" in capsys.readouterr().err
    )


def test_states_are_told_in_a_few_words() -> None:
    assert str(JobState(name="PENDING", reason="Resources")) == "waits (Resources)"
    assert str(JobState(name="RUNNING", place="node7")) == "runs on node7"
    assert not JobState(name="NODE_FAIL").alive
