"""`micronet run` as a user meets it: skipped, killed, resumed, changed, refused."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from micronet_lm.artifact import read_packed
from micronet_lm.cli.main import main
from micronet_lm.files import locked

pytestmark = pytest.mark.needs_torch  # every test runs the verb `run`

STAGES = ["corpus", "teacher", "soft-labels", "student", "sensitivity", "prune", "search-cache"]
STAGES += ["quantize", "pack", "account", "report"]
KILLING = Path(__file__).parents[1] / "support" / "killing.py"
Run = Callable[..., tuple[int, dict[str, Any], list[str]]]


@pytest.fixture
def run(recipe_file: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the recipe in a folder; give the exit code, the JSON and the stages that really ran."""

    def call(out: Path, *words: str) -> tuple[int, dict[str, Any], list[str]]:
        capsys.readouterr()
        code = main(["run", str(recipe_file), "--out", str(out), "--json", *words])
        said = capsys.readouterr()
        lines = [line for line in said.err.splitlines() if line.startswith("[")]
        ran = [line.split("] ")[1].split(":")[0] for line in lines if "complete" not in line]
        return code, json.loads(said.out) if said.out else {"err": said.err}, ran

    return call


def same(one: Path, other: Path) -> None:
    """Compare what the pipelines made, down to the bits of every weight and the account."""
    for folder in ("teacher", "student", "pruned", "searched", "quantized"):
        left, right = (load_file(root / folder / "best.safetensors") for root in (one, other))
        assert left.keys() == right.keys()
        assert all((left[name] == right[name]).all() for name in left), folder
    for file in sorted((one / "labels").glob("*.npy")):
        assert file.read_bytes() == (other / "labels" / file.name).read_bytes()
    accounts = [
        json.loads((root / "account" / "account.json").read_text()) for root in (one, other)
    ]
    for account in accounts:
        for row in account["stages"]:
            row.pop("bytes")  # the header of a checkpoint tells the seconds
    assert accounts[0] == accounts[1]


def test_a_finished_pipeline_has_all_stages(finished: Path, run: Run) -> None:
    code, report, ran = run(finished)
    assert (code, ran) == (0, [])
    assert list(report["stages"]) == STAGES
    stages = report["stages"]
    for name in ("teacher", "student", "prune", "search-cache"):
        assert 1 < stages[name]["validation_perplexity"] < 200
        assert 1 < stages[name]["test_perplexity"] < 200
    account = json.loads((finished / "account" / "account.json").read_text())
    rows = {row["stage"]: row for row in account["stages"]}
    assert rows["prune"]["nonzeros"] < 0.75 * rows["student"]["nonzeros"]
    assert rows["search-cache"]["cache"] == 60
    assert rows["student"]["cache"] == 40
    assert rows["quantize"]["bits"] == 6
    assert rows["pack"]["challenge"] == rows["quantize"]["challenge"]
    assert rows["pack"]["bytes"] == (finished / "packed" / "model.safetensors").stat().st_size
    assert rows["quantize"]["storage"] < 0.4 * rows["student"]["storage"]
    assert rows["student"]["test_perplexity"] == stages["student"]["test_perplexity"]


def test_the_stages_are_what_the_verbs_make(
    finished: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every stage's folder is one that the other verbs take."""
    capsys.readouterr()
    assert main(["evaluate", str(finished / "searched"), "--split", "test", "--json"]) == 0
    test = json.loads(capsys.readouterr().out)["perplexity"]
    record = json.loads((finished / "stages" / "searched.json").read_text())
    assert record["result"]["test_perplexity"] == pytest.approx(test, rel=1e-9)
    packed = str(finished / "packed" / "model.safetensors")
    words = ["evaluate", packed, "--corpus", str(finished / "corpus"), "--split", "test", "--json"]
    assert main(words) == 0  # with the engine that needs no torch
    measured = json.loads(capsys.readouterr().out)["perplexity"]
    record = json.loads((finished / "stages" / "quantized.json").read_text())
    assert measured == pytest.approx(record["result"]["test_perplexity"], rel=1e-4)
    assert main(["predict", "w1 w4", "-m", packed, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["words"]) == 5
    assert main(["account", str(finished / "pruned"), "--json"]) == 0
    storage = json.loads(capsys.readouterr().out)["storage"]
    account = json.loads((finished / "account" / "account.json").read_text())
    assert storage == next(r["storage"] for r in account["stages"] if r["stage"] == "prune")


@pytest.mark.parametrize(
    ("stage", "number"),
    [
        ("corpus", 2),
        ("teacher", 6),
        ("soft-labels", 2),
        ("student", 1),
        ("student", 9),
        ("sensitivity", 2),
        ("prune", 8),
        ("search-cache", 3),
        ("quantize", 5),
        ("pack", 1),
        ("account", 1),
        ("report", 4),
    ],
)
def test_killed_in_any_stage_it_goes_on_to_the_same_bits(
    stage: str, number: int, recipe_file: Path, finished: Path, tmp_path: Path, run: Run
) -> None:
    out = tmp_path / "killed"
    words = [sys.executable, str(KILLING), stage, str(number), "run", str(recipe_file)]
    done = subprocess.run([*words, "--out", str(out)], capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    states = {
        f.stem: json.loads(f.read_text())["complete"] for f in (out / "stages").glob("*.json")
    }
    assert list(states.values()).count(False) == 1
    code, _, ran = run(out)
    assert (code, ran) == (0, STAGES[STAGES.index(stage) :])
    same(finished, out)


def copy(finished: Path, out: Path) -> Path:
    return shutil.copytree(finished, out)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--search.cache_size", "50"), STAGES[6:]),
        (("--quantize.bits", "5"), STAGES[7:]),
        (("--prune.sparsity", "0.3"), STAGES[5:]),
        (("--prune.analysed_tokens", "200"), STAGES[4:]),
        (("--distill.weight_max", "0.4"), STAGES[3:]),
        (("--train.seed", "1"), STAGES[3:]),
        (("--distill.top_k", "5"), STAGES[2:]),
        (("--teacher.train.seed", "1"), STAGES[1:]),
        (("--corpus.max_vocabulary", "150"), STAGES),
    ],
)
def test_a_changed_key_reruns_exactly_what_depends_on_it(
    words: tuple[str, ...], expected: list[str], finished: Path, tmp_path: Path, run: Run
) -> None:
    out = copy(finished, tmp_path / "changed")
    code, report, ran = run(out, *words)
    assert (code, ran) == (0, expected), report
    # What was replaced is moved aside, and only that.
    folders = {
        json.loads((out / "stages" / f"{f.name.split('.')[0]}.json").read_text())["stage"]
        for f in out.glob("*.old-*")
    }
    assert folders == set(expected)
    assert run(out, *words)[2] == []


def test_changed_text_is_noticed(recipe_file: Path, tmp_path: Path, run: Run) -> None:
    text = tmp_path / "text.txt"
    original = (recipe_file.parent / "text.txt").read_text()
    text.write_text(original)
    words = ("--corpus.source", str(text), "--until", "corpus")
    assert run(tmp_path / "out", *words)[2] == ["corpus"]
    assert run(tmp_path / "out", *words)[2] == []
    text.write_text(original.replace("w1 ", "other "))
    assert run(tmp_path / "out", *words)[2] == ["corpus"]


def test_sections_that_are_absent_take_no_part(recipe_file: Path, tmp_path: Path, run: Run) -> None:
    teacher = recipe_file.with_name("teacher.yaml")
    out = tmp_path / "short"
    assert main(["run", str(teacher), "--out", str(out), "--train.steps", "4", "--json"]) == 0
    expected = {"corpus", "student", "packed", "account", "report"}
    assert {f.stem for f in (out / "stages").glob("*.json")} == expected


def test_a_table_of_ngrams_changes_the_packed_file_alone(
    finished: Path, tmp_path: Path, run: Run
) -> None:
    out = copy(finished, tmp_path / "ngrams")
    before = read_packed(out / "packed" / "model.safetensors")
    code, _, ran = run(out, "--ngrams.order", "3", "--ngrams.tokens", "10")
    assert (code, ran) == (0, ["pack", "account", "report"])
    model = read_packed(out / "packed" / "model.safetensors")
    told = json.loads((out / "stages" / "packed.json").read_text())["result"]
    assert (model.ngrams is not None) == (told["share"] > 0)
    assert "n-grams" in told["ngrams"]
    assert told["test_perplexity"] == model.card["perplexity"]["test"]
    np.testing.assert_array_equal(
        model.tensors["embedding.tables.0"].values, before.tensors["embedding.tables.0"].values
    )
    assert run(out)[2] == ["pack", "account", "report"]  # without the section as it was before
    assert read_packed(out / "packed" / "model.safetensors").ngrams is None


def test_what_is_gone_is_made_again_only_when_needed(
    finished: Path, tmp_path: Path, run: Run
) -> None:
    out = copy(finished, tmp_path / "gone")
    shutil.rmtree(out / "labels")
    assert run(out)[2] == ["soft-labels"]  # it was asked for
    shutil.rmtree(out / "labels")
    code, _, ran = run(out, "--until", "prune")
    assert (code, ran) == (0, ["soft-labels"])


def test_a_corpus_and_a_run_from_elsewhere(
    finished: Path, recipe_file: Path, tmp_path: Path, run: Run
) -> None:
    out = tmp_path / "taken"
    given = ("--corpus", str(finished / "corpus"), "--take", f"teacher={finished / 'teacher'}")
    code, _, ran = run(out, *given, "--until", "student")
    assert (code, ran) == (0, STAGES[:4])
    left, right = (load_file(root / "student" / "best.safetensors") for root in (out, finished))
    assert all((left[name] == right[name]).all() for name in left)
    assert (out / "corpus").is_symlink()
    assert run(out, "--until", "student")[2] == []  # the corpus that was given is remembered
    # A run with another recipe is refused.
    other = ("--corpus", str(finished / "corpus"), "--take", f"teacher={finished / 'student'}")
    code, said, _ = run(tmp_path / "other", *other)
    assert code == 1
    assert "holds a run with another" in said["err"]


def test_only_one_pipeline_in_a_folder(finished: Path, tmp_path: Path, run: Run) -> None:
    out = copy(finished, tmp_path / "busy")
    with locked(out):
        code, said, _ = run(out)
    assert code == 1
    assert "another pipeline runs in" in said["err"]
    assert run(out)[0] == 0


def test_a_foreign_folder_is_not_touched(tmp_path: Path, run: Run) -> None:
    (tmp_path / "out" / "corpus").mkdir(parents=True)
    (tmp_path / "out" / "corpus" / "mine.txt").write_text("mine")
    code, said, _ = run(tmp_path / "out")
    assert code == 1
    assert "exists and is not a stage of this pipeline" in said["err"]
    assert (tmp_path / "out" / "corpus" / "mine.txt").read_text() == "mine"


def test_a_full_disk_ends_in_a_sentence_and_can_be_resumed(
    recipe_file: Path, finished: Path, tmp_path: Path, run: Run
) -> None:
    """Past the limit of a file's size the system refuses to write, as a full disk does."""
    out = tmp_path / "full"
    limited = (
        "import resource, signal, sys\n"
        "from micronet_lm.cli.main import main\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))\n"
        "sys.exit(main(sys.argv[2:]))\n"
    )
    # Enough for the corpus; then for the teacher's weights, but not with the optimizer's; then
    # not for the labels.
    for limit in ("3000", "12000", "60000", "120000"):
        words = [sys.executable, "-c", limited, limit, "run", str(recipe_file), "--out", str(out)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            break
        last = done.stderr.splitlines()[-1]
        assert done.returncode == 1, done.stderr
        assert last.startswith("micronet: "), done.stderr
        assert "Traceback" not in done.stderr
        assert "free disk space" in last, last
    assert run(out)[0] == 0
    same(finished, out)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become nobody")
def test_a_read_only_folder_as_nobody(recipe_file: Path, tmp_path: Path) -> None:
    if not all(folder.stat().st_mode & 0o001 for folder in Path(__file__).parents):
        pytest.skip("the checkout lies where nobody may not read it")
    script = (
        "import os, sys, micronet_lm.report.written  # before the files cannot be read\n"
        "from micronet_lm.cli.main import main\n"
        "os.setegid(65534); os.seteuid(65534)\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    check_read_only(recipe_file, tmp_path, script)


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes wherever it likes")
def test_a_read_only_folder(recipe_file: Path, tmp_path: Path) -> None:
    check_read_only(
        recipe_file, tmp_path, "import sys; from micronet_lm.cli.main import main; sys.exit(main())"
    )


def check_read_only(recipe_file: Path, tmp_path: Path, script: str) -> None:
    for folder in (tmp_path, *tmp_path.parents[:3], *recipe_file.parents[:3]):
        folder.chmod(0o755)
    out = tmp_path / "out"
    assert main(["run", str(recipe_file), "--out", str(out), "--until", "teacher", "--json"]) == 0
    out.chmod(0o555)
    (out / "stages").chmod(0o555)
    (out / ".lock").chmod(0o444)
    words = [sys.executable, "-c", script, "run", str(recipe_file), "--out", str(out)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    assert "cannot be written (Permission denied): make" in done.stderr
    out.chmod(0o755)
    (out / "stages").chmod(0o755)
    (out / ".lock").chmod(0o644)
    assert main(["run", str(recipe_file), "--out", str(out), "--until", "student", "--json"]) == 0


def test_mistakes_are_one_sentence(
    recipe_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "never")
    whole, teacher = str(recipe_file), str(recipe_file.with_name("teacher.yaml"))
    for words, code, sentence in (
        (("run",), 2, "required: RECIPE"),
        (("run", "dmo", "--out", out), 2, "did you mean 'demo'?"),
        (("run", whole, "--out", out, "--until", "end"), 2, "--until must be one of corpus, "),
        (("run", whole, "--out", out, "--take", "teacher"), 2, "must be STAGE=RUN"),
        (("run", whole, "--out", out, "--take", "corpus=x"), 2, "no such stage trains here"),
        (("run", teacher, "--out", out, "--teacher.train.steps", "3"), 2, "has no teacher"),
        (
            ("run", whole, "--out", out, "--distill.teacher", "none"),
            2,
            "has a section distill but no teacher",
        ),
        (("run", whole, "--out", out, "--distill.teacher", whole), 2, "a teacher is only trained"),
        (
            ("run", whole, "--out", out, "--prune.train.steps", "4", "--prune.steps", "9"),
            2,
            "prune.steps must not exceed 4 prune.tr",
        ),
        (("run", whole, "--out", out, "--corpus.source", "gone.txt"), 1, "no file or folder gone"),
        (("run", whole, "--out", out, "--corpus", "gone"), 1, "gone"),
    ):
        assert main(words) == code, words
        said = capsys.readouterr()
        assert sentence in said.err, said.err
        assert said.err.count("\n") == 1, said.err
    assert not Path(out).exists()
