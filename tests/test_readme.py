"""What README and the tutorial say works: their commands and their Python are run.

The tutorial's commands run on smaller work. Those of README run as they are, in a shell, and print
what README shows: the same words, and numbers where it has numbers.
"""

import os
import re
import shlex
import subprocess
import sysconfig
import tomllib
from pathlib import Path

import pytest
from tests.support.corpora import MISSING, wikitext_2_archive
from tests.support.pages import assert_prints, blocks, console

from micronet_lm.cli.main import main
from micronet_lm.corpus import Corpus

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
TUTORIAL = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
# What a test cannot wait for is made smaller; the words of the page stay in front.
SHORT = ["--train.steps", "2", "--train.warmup", "1", "--train.evaluate_every", "2"]
SMALLER = {
    "run": [
        *(
            *SHORT,
            "--train.batch",
            "2",
            "--teacher.train.steps",
            "2",
            "--teacher.train.warmup",
            "1",
        ),
        *("--teacher.train.batch", "2", "--prune.train.steps", "2", "--prune.train.warmup", "1"),
        *("--prune.steps", "1", "--prune.analysed_tokens", "100"),
    ],
    "reproduce": [*SHORT, "--train.batch", "2"],
    "sensitivity": ["--tokens", "500", "--grid", "0.3,0.9"],
    "train": ["--train.steps", "2", "--train.warmup", "1", "--train.batch", "2"],
    "prune": ["--train.steps", "2", "--train.warmup", "1"],
    "distill": ["--train.steps", "2", "--train.warmup", "1", "--train.batch", "2"],
}


OF_WIKITEXT_2 = ("wikitext-2", "data/wikitext-2", "runs/small", "runs/cache")
"""How words begin that name WikiText-2, or a run that the tutorial trains on it."""


def commands() -> list[list[str]]:
    """The commands of both pages that show no output; README's other ones have their own test."""
    lines = "".join(blocks("sh", README + TUTORIAL)).replace("\\\n", " ").splitlines()
    return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("micronet ")]


def test_readme_is_a_front_door() -> None:
    assert len(README.splitlines()) <= 120
    assert [command.split("micronet ")[1].split()[0] for command, _ in console(README)] == [
        "predict",
        "generate",
        "score",
        "inspect",
        "account",
    ]


@pytest.mark.parametrize(("command", "page"), console(README))
def test_readme_shows_what_is_printed(command: str, page: list[str], tmp_path: Path) -> None:
    (tmp_path / "src").symlink_to(ROOT / "src")
    scripts = sysconfig.get_path("scripts")
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=tmp_path,
        env=os.environ | {"PATH": f"{scripts}:{os.environ['PATH']}", "COLUMNS": "80"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert_prints(done.stdout.rstrip("\n").splitlines(), page)


def test_readme_shows_what_its_python_prints(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    (python,) = blocks("python", README)
    (text,) = blocks("text", README)
    exec(compile(python, "README.md", "exec"), {})  # noqa: S102
    assert_prints(capsys.readouterr().out.splitlines(), text.splitlines())


@pytest.mark.parametrize("page", [["0 dogs"], ["1 cat", "2 dogs", "3"], ["...", "a bird", "..."]])
def test_other_output_than_the_one_shown_is_found(page: list[str]) -> None:
    with pytest.raises((AssertionError, IndexError, ValueError)):
        assert_prints(["1 cat", "2 dogs"], page)
    assert_prints(["1 cat", "2 dogs"], ["...", "7 dogs"])


def test_the_first_commands_are_in_the_makefile() -> None:
    first = blocks("sh", README)[0].splitlines()
    assert [line.split("#")[0].strip() for line in first] == ["make demo", "make test"]
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), flags=re.MULTILINE)
    assert {"demo", "test", "docs"} <= set(targets)


def test_what_is_to_be_installed_is_enough() -> None:
    known = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    told = re.findall(r'install -c constraints.txt "\.\[([a-z,]+)\]"', README)
    assert [set(extras.split(",")) for extras in told] == [{"train", "report", "serve"}]
    assert set(told[0].split(",")) <= set(known["optional-dependencies"])
    hour = (ROOT / "docs" / "first-hour.md").read_text("utf-8")
    assert '".[train,report]"' in hour  # without matplotlib a run of your own text has no report


def test_every_verb_is_in_the_tutorial(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    verbs = set(re.findall(r"^    ([a-z][a-z-]+)(?: |$)", capsys.readouterr().out, re.MULTILINE))
    assert len(verbs) > 15
    used = {words[0] for words in commands()}
    # What doctor prints is a machine's, and a server does not end: they have pages of their own.
    assert verbs - used == {"doctor", "serve"}
    assert "micronet serve" in TUTORIAL


@pytest.mark.needs_torch
def test_every_command_and_the_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    archive = wikitext_2_archive()
    (tmp_path / "README.md").write_text(README * 40, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    whole = Corpus.split
    monkeypatch.setattr(
        Corpus, "split", lambda self, name: whole(self, name)[: 40_000 if name == "train" else 3000]
    )
    monkeypatch.setattr(Corpus, "tokens", lambda self, name: len(self.split(name)))
    # Jobs of their own would not know that the text is cut: stages run one by one in this process.
    monkeypatch.setattr("micronet_lm.pipeline.pool.has_submitit", lambda: False)
    ran = []
    for words in commands():
        if archive is None and any(w.startswith(OF_WIKITEXT_2) for w in words):
            continue
        more = list(SMALLER.get(words[0], []))
        if "--dry-run" in words:
            more = ["--until", "corpus"]
        if words[0] == "reproduce" and "--scale" not in words:
            more = []  # a figure of runs that are there
        if "wikitext-2" in words and "build" in words:
            more += ["--from", str(archive)]
        assert main([*words, *more]) == 0, (words, capsys.readouterr().err)
        ran.append(words[0])
    assert {"corpus", "presets", "train", "soft-labels", "distill"} <= set(ran)
    capsys.readouterr()
    (python,) = blocks("python", TUTORIAL)
    exec(compile(python, "tutorial.md", "exec"), {})  # noqa: S102
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 6
    assert float(lines[0]) > 1
    if archive is None:
        pytest.skip(f"all but the commands on WikiText-2 ran: {MISSING}")
