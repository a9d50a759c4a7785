"""What becomes of jobs, by what the cluster says of them; the cluster is a stub without jobs."""

import json
import os
from pathlib import Path

import pytest
from tests.support.slurm_stub import StubCluster

from micronet_lm.errors import PipelineError
from micronet_lm.pipeline import Stage, Workspace, submission
from micronet_lm.pipeline.costs import Cost
from micronet_lm.pipeline.jobs import FULL, STOPPED
from micronet_lm.pipeline.resources import Resources
from micronet_lm.pipeline.submission import FRUITLESS, ClusterJobs, End, LocalJobs

TEACHER = Stage(
    name="teacher",
    folder="teacher",
    settings={"train": {"steps": 400}},
    work=lambda here, inputs: {},
)


@pytest.fixture(name="cluster")
def _cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StubCluster:
    """A stub of a cluster that is asked each time, and whose words count at once."""
    monkeypatch.setattr(submission, "ASK_SECONDS", 0.0)
    monkeypatch.setattr(submission, "SETTLE_SECONDS", 0.0)
    (tmp_path / "bin").mkdir()
    return StubCluster(tmp_path / "bin", monkeypatch)


class Pool:
    """The jobs of one stage, and what a person is told."""

    def __init__(self, root: Path, resources: Resources | None = None) -> None:
        root.mkdir(exist_ok=True)
        self.said: list[str] = []
        self.workspace = Workspace(root)
        self.folder = root / "teacher"
        costs = {TEACHER.fingerprint: Cost(seconds=7200.0, memory=4 << 30)}
        own = resources or Resources()
        self.jobs = ClusterJobs(self.workspace, 2, self.said.append, own, costs)

    def ended(self) -> list[End]:
        return list(self.jobs.ended())

    def progress(self, number: int) -> None:
        """Let the stage come further than the jobs before this one."""
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self.folder / "metrics.jsonl"
        file.write_text(json.dumps({"kind": "train", "step": 10 * number}) + "\n")
        os.utime(file, (number * 1000, number * 1000))


def test_a_job_asks_for_what_the_estimate_and_the_command_line_say(
    cluster: StubCluster, tmp_path: Path
) -> None:
    own = Resources(
        gpus={"teacher": 2},
        nodes={"teacher": 3},
        partition="big",
        account="lab",
        qos="high",
        constraint="fast",
        setup=("module load cuda",),
        python="apptainer exec image.sif python",
        more={"exclude": "node7"},
    )
    pool = Pool(tmp_path / "out", own)
    assert pool.jobs.submit(TEACHER)
    (script,) = cluster.scripts
    asked = {line.removeprefix("#SBATCH ") for line in script.splitlines() if "#SBATCH" in line}
    assert asked >= {
        f"--job-name=micronet-teacher-{TEACHER.fingerprint[:8]}",
        *("--time=390", f"--mem={2 * (8 << 10)}M", "--cpus-per-task=4", "--nodes=3"),
        *("--gpus-per-node=2", "--partition=big", "--account=lab", "--qos=high"),
        *("--constraint=fast", "--exclude=node7", "--signal=USR2@90"),
    }
    assert script.index("module load cuda") < script.index("srun")
    assert "apptainer exec image.sif python -u -m submitit.core._submit" in script
    assert "submitted as job 1, 3 nodes, up to 6.5 hours and 16384M of memory each" in pool.said[-1]
    assert json.loads((tmp_path / "out/jobs/submitted.json").read_text()) == {
        TEACHER.fingerprint: "1"
    }


def test_why_a_job_waits_and_how_far_it_is_are_told(
    cluster: StubCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = Pool(tmp_path / "out")
    pool.jobs.submit(TEACHER)
    cluster.set(1, "PENDING", "Resources")
    assert pool.ended() == pool.ended() == []
    assert pool.said[1:] == [pool.said[1]]  # once
    assert pool.said[1].endswith("job 1 waits (Resources)")
    cluster.set(1, "RUNNING", place="node7")
    pool.ended()
    assert pool.said[-1].endswith("job 1 runs on node7")
    monkeypatch.setattr(submission, "TELL_SECONDS", -1.0)
    pool.progress(3)
    pool.ended()
    assert pool.said[-1].endswith("job 1 runs on node7, step 30 of 400")


@pytest.mark.parametrize("state", ["TIMEOUT", "PREEMPTED", "NODE_FAIL", None])
def test_a_job_that_is_not_to_blame_goes_on_in_a_new_one(
    cluster: StubCluster, tmp_path: Path, state: str | None
) -> None:
    """As long as there is progress; None is a job that the cluster does not know any more."""
    pool = Pool(tmp_path / "out")
    pool.jobs.submit(TEACHER)
    cluster.set(1, "RUNNING", place="node7")
    for number in range(1, FRUITLESS + 2):
        pool.ended()
        pool.progress(number)
        if state is None:
            cluster.forget(number)
        else:
            cluster.set(number, state)
        cluster.set(number + 1, "RUNNING", place="node7")
        assert pool.ended() == []
        assert f"job {number} ended with {state or 'GONE'}, so it resumes" in pool.said[-2]
        assert len(cluster.scripts) == number + 1
    kept = json.loads((tmp_path / "out/jobs/submitted.json").read_text())
    assert list(kept.values()) == [str(FRUITLESS + 2)]


def test_jobs_without_progress_are_not_submitted_for_ever(
    cluster: StubCluster, tmp_path: Path
) -> None:
    pool = Pool(tmp_path / "out")
    pool.jobs.submit(TEACHER)
    for number in range(1, FRUITLESS):
        cluster.set(number, "TIMEOUT")
        assert pool.ended() == []
    cluster.set(FRUITLESS, "TIMEOUT")
    (end,) = pool.ended()
    assert end.error is not None
    assert f"{FRUITLESS} jobs one after the other made no progress" in end.error
    assert len(cluster.scripts) == FRUITLESS


@pytest.mark.parametrize(
    ("state", "code", "why"),
    [
        ("CANCELLED", 0, "it was cancelled"),
        ("OUT_OF_MEMORY", 0, "ask for it with --memory"),
        ("FAILED", 1, "it ended without a result"),
        ("FAILED", FULL, "free disk space"),
    ],
)
def test_other_ends_are_one_sentence(
    cluster: StubCluster, tmp_path: Path, state: str, code: int, why: str
) -> None:
    pool = Pool(tmp_path / "out")
    pool.jobs.submit(TEACHER)
    cluster.set(1, state)
    cluster.exits_with(code)
    (end,) = pool.ended()
    assert end.error is not None
    assert "job 1 has no result, because " in end.error
    assert why in end.error
    assert len(cluster.scripts) == 1


def test_a_job_that_was_asked_to_stop_resumes(cluster: StubCluster, tmp_path: Path) -> None:
    pool = Pool(tmp_path / "out")
    pool.jobs.submit(TEACHER)
    cluster.set(1, "FAILED")
    cluster.exits_with(STOPPED)
    assert pool.ended() == []
    assert "ended with a request to stop, so it resumes" in pool.said[-2]
    assert len(cluster.scripts) == 2


def test_a_cluster_that_does_not_answer_ends_nothing(cluster: StubCluster, tmp_path: Path) -> None:
    pool = Pool(tmp_path / "out")
    pool.jobs.submit(TEACHER)
    cluster.silence()
    for _ in range(3):
        assert pool.ended() == []
    assert pool.said[1:] == ["The cluster does not answer; waiting for it."]
    assert not pool.jobs.submit(TEACHER)
    cluster.silence(False)
    cluster.set(1, "RUNNING", place="node7")
    assert pool.ended() == []
    assert pool.said[-1].endswith("job 1 runs on node7")
    assert len(cluster.scripts) == 1


def test_another_parent_finds_the_jobs_that_live(cluster: StubCluster, tmp_path: Path) -> None:
    Pool(tmp_path / "out").jobs.submit(TEACHER)
    cluster.set(1, "RUNNING", place="node7")
    second = Pool(tmp_path / "out")
    assert second.jobs.reattach([TEACHER]) == [TEACHER]
    assert second.said[-1].endswith("job 1 was submitted before, and is kept")
    cluster.set(1, "CANCELLED")
    assert Pool(tmp_path / "out").jobs.reattach([TEACHER]) == []
    assert len(cluster.scripts) == 1


def test_a_damaged_list_of_jobs_submits_nothing(cluster: StubCluster, tmp_path: Path) -> None:
    Pool(tmp_path / "out").jobs.submit(TEACHER)
    (tmp_path / "out/jobs/submitted.json").write_text("{")
    with pytest.raises(PipelineError, match=r"submitted\.json .*see with squeue which jobs run"):
        Pool(tmp_path / "out").jobs.reattach([TEACHER])


def test_jobs_on_this_machine_see_its_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """submitit hides GPUs that were not asked for."""
    asked: dict[str, object] = {}

    class Executor:
        def __init__(self, **_: object) -> None:
            """Take anything."""

        def update_parameters(self, **more: object) -> None:
            asked.update(more)

        def submit(self, _: object) -> object:
            return type("Job", (), {"job_id": "1"})()

    monkeypatch.setattr("torch.cuda.device_count", lambda: 4)
    monkeypatch.setattr("submitit.AutoExecutor", Executor)
    LocalJobs(Workspace(tmp_path), 1, lambda _: None).submit(TEACHER)
    assert asked["gpus_per_node"] == 4
