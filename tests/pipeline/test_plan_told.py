"""What a plan says below its table: how it was measured, and which stages want a cluster."""

from micronet_lm.cli.run_tables import plan_shown


def row(stage: str, seconds: float, *, runs: bool = True) -> dict[str, object]:
    empty: dict[str, object] = {
        "changes": [],
        "parameters": None,
        "tokens": None,
        "memory": None,
        "disk": None,
    }
    return {"stage": stage, "state": "to do", "runs": runs, "seconds": seconds, **empty}


def said(*rows: dict[str, object], threads: int = 2) -> list[str]:
    _, *lines = plan_shown("out", list(rows), threads)
    return [str(line) for line in lines]


def test_threads_are_named() -> None:
    (one,) = said(row("teacher", 60.0), threads=1)
    (two,) = said(row("teacher", 60.0), threads=2)
    assert "with 1 thread (OMP_NUM_THREADS)" in one
    assert "with 2 threads (OMP_NUM_THREADS)" in two


def test_long_stages_are_sent_to_a_cluster() -> None:
    rows = [row("teacher", 90_000.0), row("student", 60.0), row("prune", 90_000.0, runs=False)]
    _, line = said(*rows)
    assert line.startswith("More than 6 hours each: teacher. --executor slurm")
    assert "--take STAGE=RUN" in line
