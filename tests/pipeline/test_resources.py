"""What jobs ask of a cluster: from the estimate with a margin, or as the command line says."""

import pytest

from micronet_lm.cli.main import main
from micronet_lm.errors import UsageError
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


def test_estimates_get_a_margin() -> None:
    asked = Resources().of("teacher", Cost(seconds=3600.0, memory=4 << 30))
    assert asked == {"timeout_min": 3 * 60 + 30, "slurm_mem": f"{8 << 10}M"}
    assert Resources().of("report", Cost()) == {"timeout_min": 1440, "slurm_mem": f"{8 << 10}M"}


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
    assert own.of("teacher", cost) == {
        "timeout_min": 600, "slurm_mem": "32768M", "gpus_per_node": 4, **shared
    }  # fmt: skip
    assert own.of("student", cost) == {"timeout_min": 60, "slurm_mem": "8192M", **shared}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--time", "60"], "--time is for a cluster: add --executor slurm"),
        (["--threads", "2"], "--threads is for a cluster, where stages are jobs"),
        (["--executor", "slurm", "--time", "x"], "--time must be minutes"),
        (["--executor", "slurm", "--gpus", "x"], "--gpus must be a whole number"),
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


def test_states_are_told_in_a_few_words() -> None:
    assert str(JobState(name="PENDING", reason="Resources")) == "waits (Resources)"
    assert str(JobState(name="RUNNING", place="node7")) == "runs on node7"
    assert not JobState(name="NODE_FAIL").alive
