"""What README says works: its commands and its Python are run, on smaller work."""

import re
import shlex
from pathlib import Path

import pytest
from tests.support.corpora import MISSING, wikitext_2_archive

from micronet_lm.cli.main import main
from micronet_lm.corpus import Corpus

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
# What a test cannot wait for is made smaller; the words of README stay in front.
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
"""How words begin that name WikiText-2, or a run that README trains on it."""


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def commands() -> list[list[str]]:
    lines = "".join(blocks("sh")).replace("\\\n", " ").splitlines()
    return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("micronet ")]


def test_the_first_commands_are_in_the_makefile() -> None:
    first = blocks("sh")[0].splitlines()
    assert [line.split("#")[0].strip() for line in first] == ["make demo", "make test"]
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), flags=re.MULTILINE)
    assert {"demo", "test"} <= set(targets)


@pytest.mark.needs_torch
def test_every_command_and_the_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    archive = wikitext_2_archive()
    (tmp_path / "README.md").write_text(README * 30, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    whole = Corpus.split
    monkeypatch.setattr(
        Corpus, "split", lambda self, name: whole(self, name)[: 40_000 if name == "train" else 3000]
    )
    monkeypatch.setattr(Corpus, "tokens", lambda self, name: len(self.split(name)))
    # Jobs of their own would not know that the text is cut: stages run one by one in this process.
    monkeypatch.setattr("micronet_lm.pipeline.pool._executor", lambda site, pool: None)
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
    (python,) = blocks("python")
    exec(compile(python, "README.md", "exec"), {})  # noqa: S102
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 6
    assert float(lines[0]) > 1
    if archive is None:
        pytest.skip(f"all but the commands on WikiText-2 ran: {MISSING}")
