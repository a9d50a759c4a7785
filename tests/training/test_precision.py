"""The number format of products: measured in processes that may die, kept, agreed on."""

import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch
from tests.support.bfloat16 import skip_without_bfloat16
from tests.support.damage import SPOILED, spoil
from tests.support.illegal import execute_illegal_instruction, spoil_bfloat16
from tests.support.processes import TORCHRUN, train_command
from tests.support.recipes import tiny_recipe
from tests.support.runs import same_tensors
from tests.support.shapes import TWO_BINS

from micronet_lm.cli.main import main
from micronet_lm.corpus import Corpus
from micronet_lm.errors import ConfigError, RunError
from micronet_lm.machine import busyness
from micronet_lm.training import Run, train
from micronet_lm.training.metrics import read_metrics
from micronet_lm.training.precision import (
    FLOAT32,
    Products,
    autocast,
    choose_products,
    machine_verdict,
    probe,
    verdict,
    working_products,
)
from micronet_lm.training.precision.products import survives_products
from micronet_lm.training.precision.verdict import HELD_BACK, MARGIN, Trial, Verdict

CPU = torch.device("cpu")
SLOW = Trial(isa=None, float32=1.0, bfloat16=1.3, ended=None)
FAST = replace(SLOW, bfloat16=0.5)
DEAD = Trial(isa=None, float32=1.0, bfloat16=None, ended="SIGILL")
HELD_FAST = replace(FAST, isa=HELD_BACK)
HELD_SLOW = replace(SLOW, isa=HELD_BACK)


@pytest.fixture(autouse=True)
def _new_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that nothing is known of, and an environment that is given back."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(verdict, "_asked", {})
    for name in (verdict.ISA_VARIABLE, verdict.OURS):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("trials", "precision", "isa"),
    [
        ([FAST, HELD_FAST], "bfloat16", None),
        ([SLOW, HELD_SLOW], "float32", None),
        ([DEAD, HELD_FAST], "bfloat16", HELD_BACK),
        ([DEAD, HELD_SLOW], "float32", None),
        ([DEAD, replace(DEAD, isa=HELD_BACK)], "float32", None),
        ([SLOW, HELD_FAST], "bfloat16", HELD_BACK),
        # It must be faster by the margin, and so must another setting than torch's own.
        ([replace(SLOW, bfloat16=0.99 / MARGIN)], "bfloat16", None),
        ([replace(SLOW, bfloat16=1.01 / MARGIN)], "float32", None),
        ([FAST, replace(HELD_FAST, bfloat16=0.48)], "bfloat16", None),
        # A process that dies after it has answered has not answered.
        ([replace(FAST, ended="SIGSEGV")], "float32", None),
    ],
)
def test_what_works_and_is_fastest_is_taken(
    trials: list[Trial], precision: str, isa: str | None
) -> None:
    found = Verdict(trials=tuple(trials))
    assert (found.precision, found.isa) == (precision, isa)
    assert found.broken is None


def test_the_machine_is_asked_once_and_again_when_told(monkeypatch: pytest.MonkeyPatch) -> None:
    first = machine_verdict()
    assert [trial.isa for trial in first.trials] == [None, HELD_BACK]
    assert all(trial.float32 for trial in first.trials)  # whatever bfloat16 does, fp32 works
    file = verdict.verdict_file()
    kept = json.loads(file.read_text(encoding="utf-8"))
    assert (kept["precision"], kept["torch"]) == (first.precision, torch.__version__)

    def never() -> Verdict:
        raise AssertionError("it was measured already")

    monkeypatch.setattr(verdict, "_asked", {})  # as in the next process
    with monkeypatch.context() as context:
        context.setattr(verdict, "_measure", never)
        assert machine_verdict() == first
        assert machine_verdict() == first
    other = Verdict(trials=(DEAD,))
    monkeypatch.setattr(verdict, "_measure", lambda: other)
    assert machine_verdict(again=True) == other
    assert machine_verdict() == other
    zero = json.dumps({"trials": [asdict(replace(SLOW, bfloat16=0.0))]})
    text = json.dumps({"trials": [{**asdict(SLOW), "float32": "fast"}]})
    for damaged in ("garbage", "", "[]", "{}", '{"trials": []}', '{"trials": [1]}', zero, text):
        file.write_text(damaged, encoding="utf-8")
        monkeypatch.setattr(verdict, "_asked", {})
        assert machine_verdict() == other  # measured again


def test_a_hang_is_remembered_for_a_day(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine may have been busy; a death by a signal is remembered for good."""
    hung = replace(DEAD, ended=f"{verdict.HUNG} 8 s")
    file = verdict.verdict_file()
    for trial, forgotten in ((hung, True), (DEAD, False)):
        monkeypatch.setattr(verdict, "_measure", lambda trial=trial: Verdict(trials=(trial,)))
        assert machine_verdict(again=True).trials == (trial,)
        old = file.stat().st_mtime - verdict.DAY - 1
        os.utime(file, (old, old))
        monkeypatch.setattr(verdict, "_asked", {})
        monkeypatch.setattr(verdict, "_measure", lambda: Verdict(trials=(SLOW,)))
        assert machine_verdict().trials == ((SLOW,) if forgotten else (trial,))


def test_the_verdict_belongs_to_threads_and_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {verdict.verdict_file()}
    monkeypatch.setenv(verdict.ISA_VARIABLE, "AVX2")
    files.add(verdict.verdict_file())
    monkeypatch.setattr(torch, "get_num_threads", lambda: 77)
    files.add(verdict.verdict_file())
    assert len(files) == 3
    monkeypatch.setenv(verdict.OURS, "1")  # our own setting does not make it another machine
    monkeypatch.setattr(verdict, "processor_identity", lambda: "another")
    files.add(verdict.verdict_file())
    monkeypatch.delenv(verdict.ISA_VARIABLE)
    assert verdict.verdict_file() in files
    assert len(files) == 4


def keep_busyness(monkeypatch: pytest.MonkeyPatch) -> float:
    """Let limits of time be longer by as much as the machine is busy now; return the factor."""
    wait = round(busyness() + 0.05, 1)
    monkeypatch.setattr(verdict, "busyness", lambda: wait)
    return wait


def test_a_busy_machine_has_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fp32 alone takes longer than a trial's seconds there, and that is no hang."""
    asked: list[tuple[list[str], float]] = []

    def end(words: list[str], *, timeout: float, **_: object) -> None:
        asked.append((words, timeout))
        raise subprocess.TimeoutExpired(words, timeout)

    monkeypatch.setattr("subprocess.run", end)
    for wait in (1.0, 6.0):
        monkeypatch.setattr(verdict, "busyness", lambda wait=wait: wait)
        problem = f"the probe gave no answer within {30 * wait:.0f} s"
        assert machine_verdict(again=True).problem == problem
        words, timeout = asked[-1]
        assert (words[4], timeout) == (str(8 * wait), 30 * wait)


def test_what_other_programs_take_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def while_others_have_the_core() -> Iterator[None]:
        time.sleep(1)
        yield

    monkeypatch.setattr(probe, "SHAPE", TWO_BINS)
    monkeypatch.setattr(probe, "WINDOW", 8)
    step = probe._training_step()
    step(False)
    monkeypatch.setattr(probe, "nullcontext", while_others_have_the_core)
    assert 0 < step(False) < 1


@pytest.mark.parametrize("how", ["dies", "hangs"])
def test_a_child_that_dies_or_hangs_means_fp32(
    tmp_path: Path,
    corpus: Corpus,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    how: str,
) -> None:
    monkeypatch.setenv("PYTHONPATH", spoil_bfloat16(tmp_path / "site", how))
    monkeypatch.setattr(verdict, "TRIAL_SECONDS", 60.0 if how == "dies" else 3.0)
    wait = keep_busyness(monkeypatch)
    recipe = tiny_recipe(corpus, train__precision="auto")
    outcome = train(Run(tmp_path / "run"), recipe, corpus)
    assert outcome.finished
    ended = "SIGILL" if how == "dies" else f"no answer within {3 * wait:g} s"
    said = capsys.readouterr().err
    assert f"products in float32 (auto: bfloat16: {ended}; " in said
    line = read_metrics(tmp_path / "run" / "metrics.jsonl")[0]
    assert (line["kind"], line["precision"], line["step"]) == ("machine", "float32", 0)
    assert ended in line["why"]
    assert [trial.ended for trial in machine_verdict().trials] == [ended, ended]
    # The same bits as in fp32 by the recipe's own word.
    plain = tiny_recipe(corpus, train__precision="float32")
    train(Run(tmp_path / "plain"), plain, corpus, quiet=True)
    assert same_tensors(tmp_path / "run" / "last.safetensors", tmp_path / "plain/last.safetensors")
    # Where it is asked for, it is refused in a sentence.
    low = tiny_recipe(corpus, train__precision="bfloat16")
    with pytest.raises(ConfigError, match=f"does not work on this machine .*{ended}.*choose auto"):
        train(Run(tmp_path / "low"), low, corpus, quiet=True)
    assert not (tmp_path / "low" / "recipe.yaml").exists()


def test_what_is_only_slow_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Emulated on a busy machine, a step takes longer than the trial: auto leaves it alone."""
    monkeypatch.setenv("PYTHONPATH", spoil_bfloat16(tmp_path / "site", "crawls"))
    monkeypatch.setattr(verdict, "TRIAL_SECONDS", 4.0)
    limit = 4 * keep_busyness(monkeypatch)
    found = machine_verdict()
    assert [(trial.ended, trial.bfloat16) for trial in found.trials] == [(None, limit)] * 2
    assert found.precision == "float32"
    assert choose_products("bfloat16", CPU).precision == "bfloat16"  # who asks for it gets it


def test_kernels_that_die_are_held_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on the processor whose AMX kernels end in SIGILL."""
    monkeypatch.setenv("PYTHONPATH", spoil_bfloat16(tmp_path / "site", "dies as AMX does"))
    monkeypatch.setattr(verdict, "TRIAL_SECONDS", 60.0)
    plain, held = machine_verdict().trials
    assert (plain.ended, plain.works) == ("SIGILL", False)
    assert plain.float32 is not None
    assert held.isa == HELD_BACK
    assert held.ended is None
    assert choose_products("bfloat16", CPU).isa == HELD_BACK


def test_a_process_that_cannot_do_it_any_more_takes_fp32(
    tmp_path: Path, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """torch reads its setting once: a fork of this very process tries before training does."""
    monkeypatch.setattr(verdict, "_measure", lambda: Verdict(trials=(FAST,)))
    monkeypatch.setattr(torch, "ones", execute_illegal_instruction)
    assert not survives_products(Products(precision="bfloat16"))
    train(Run(tmp_path), tiny_recipe(corpus, train__precision="auto"), corpus, quiet=True)
    products = Run(tmp_path).products()
    assert products is not None
    assert products.precision == "float32"
    assert "do not work on this machine" in products.why


def test_what_auto_chose_is_kept_on_resume(
    tmp_path: Path, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = tiny_recipe(corpus, train__precision="auto", train__steps=6)
    monkeypatch.setattr(verdict, "_measure", lambda: Verdict(trials=(SLOW,)))
    whole = Run(tmp_path / "whole")
    asked = tiny_recipe(corpus, train__precision="float32", train__steps=6)
    train(whole, asked, corpus, quiet=True)
    train(whole, tiny_recipe(corpus, train__precision="float32"), corpus, amend=True, quiet=True)
    run = Run(tmp_path / "run")
    train(run, recipe, corpus, quiet=True)
    # Now bfloat16 would pay; the run stays what it is.
    monkeypatch.setattr(verdict, "_measure", lambda: Verdict(trials=(FAST,)))
    assert machine_verdict(again=True).precision == "bfloat16"
    train(run, tiny_recipe(corpus, train__precision="auto"), corpus, amend=True, quiet=True)
    assert same_tensors(run.last, whole.last)
    kept = run.products()
    assert kept is not None
    assert kept.precision == "float32"
    machine = [x for x in read_metrics(run.path / "metrics.jsonl") if x["kind"] == "machine"]
    assert [line["step"] for line in machine] == [0]  # nothing has changed


def test_a_run_in_bfloat16_is_refused_where_it_does_not_work(
    tmp_path: Path, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(tmp_path / "run")
    recipe = tiny_recipe(corpus, train__precision="auto")
    train(run, recipe, corpus, quiet=True)
    record = json.dumps({"precision": "bfloat16", "onednn_max_cpu_isa": None, "why": "auto"})
    run.precision_file.write_text(record, encoding="utf-8")
    with monkeypatch.context() as context:
        context.setattr(verdict, "_measure", lambda: Verdict(trials=(DEAD,)))
        context.setattr(torch, "ones", execute_illegal_instruction)
        machine_verdict(again=True)
        longer = tiny_recipe(corpus, train__precision="auto", train__steps=14)
        with pytest.raises(
            RunError, match=r"resume in fp32.*--resume .* --train.precision float32"
        ):
            train(run, longer, corpus, amend=True, quiet=True)
        words = ["train", "--resume", str(run.path), "--corpus", str(corpus.path)]
        words += ["--train.steps", "14", "--train.precision", "float32"]
        assert main(words) == 0
    kept = run.products()
    assert kept is not None
    assert kept.precision == "float32"
    machine = [x for x in read_metrics(run.path / "metrics.jsonl") if x["kind"] == "machine"]
    assert [line["step"] for line in machine] == [0, 12]
    # The pipeline's recipe still says auto, which is whatever the run has.
    train(run, tiny_recipe(corpus, train__precision="auto", train__steps=14), corpus, quiet=True)


@pytest.mark.parametrize("text", ["garbage", "[]", '{"precision": "int8"}'])
def test_a_damaged_record_is_one_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / "precision.json").write_text(text, encoding="utf-8")
    with pytest.raises(RunError, match=r"precision\.json is damaged .*remove it"):
        Run(tmp_path).products()


@pytest.mark.usefixtures("alarm")
@pytest.mark.parametrize("how", SPOILED)
def test_a_spoiled_record_is_one_sentence(tmp_path: Path, how: str) -> None:
    spoil(tmp_path / "precision.json", how)
    with pytest.raises(RunError, match=r"precision\.json is damaged .*remove it") as caught:
        Run(tmp_path).products()
    assert SPOILED[how] in str(caught.value)


@pytest.mark.usefixtures("alarm")
def test_a_pipe_in_place_of_the_verdict_is_measured_past(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every training waited for it, for ever."""
    file, other = verdict.verdict_file(), Verdict(trials=(DEAD,))
    monkeypatch.setattr(verdict, "_measure", lambda: other)
    monkeypatch.setattr(verdict, "_asked", {})
    file.parent.mkdir(parents=True, exist_ok=True)
    spoil(file, "a pipe")
    try:
        assert machine_verdict() == other
    finally:
        file.unlink()


def test_products_are_computed_in_what_was_chosen() -> None:
    skip_without_bfloat16()
    for products in (FLOAT32, Products(precision="bfloat16")):
        with autocast(products, CPU):
            product = torch.ones(2, 2) @ torch.ones(2, 2)
        assert product.dtype == getattr(torch, products.precision)


def test_working_products_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdict, "_measure", lambda: Verdict(trials=(SLOW,)))
    monkeypatch.setattr(torch, "ones", execute_illegal_instruction)
    assert working_products() == [FLOAT32]


FOLLOWING = """
import os, sys
from micronet_lm.cli.main import main
from micronet_lm.training.precision import verdict
from micronet_lm.training.precision.verdict import Trial, Verdict

def measure():
    print("measured by rank", os.environ["RANK"], flush=True)
    return Verdict(trials=(Trial(isa=None, float32=1.0, bfloat16=0.5, ended=None),))

verdict._measure = measure
sys.exit(main(sys.argv[1:]))
"""


def test_all_processes_follow_the_first(tmp_path: Path, corpus: Corpus) -> None:
    """Only the first measures; the others take what it found."""
    skip_without_bfloat16()
    program = tmp_path / "following.py"
    program.write_text(FOLLOWING, encoding="utf-8")
    start = [*TORCHRUN, str(program)]
    words = [*train_command(tmp_path / "run", corpus, program=start), "--train.precision", "auto"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(words, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("measured by rank") == done.stdout.count("measured by rank 0") == 1
    kept = Run(tmp_path / "run").products()
    assert kept is not None
    assert kept.precision == "bfloat16"
