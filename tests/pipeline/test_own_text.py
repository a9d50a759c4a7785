"""The recipe for somebody's own text, from 2,000 tokens to 100 million, and the command with it."""

import json
from pathlib import Path

import pytest
from tests.support.corpora import write_lines

from micronet_lm.artifact import read_packed
from micronet_lm.cli import own_text as own_text_verb
from micronet_lm.cli.main import main
from micronet_lm.config import Recipe, load_recipe
from micronet_lm.errors import CorpusError
from micronet_lm.pipeline.own_text import (
    ENOUGH_STEPS,
    MEASURED_TOKENS,
    SHAPES,
    TABLE_TOKENS,
    TextFacts,
    choose,
    read_facts,
)
from micronet_lm.pipeline.speed import Speed

AMOUNTS = (2_000, 5_000, 30_000, 84_120, 300_000, 2_000_000, 10_000_000, 100_000_000)


def pace(recipe: Recipe, *, tokens_per_second: float = 2e6) -> Speed:
    """A machine whose steps take as long as the model has weights in its layers."""
    weights = 10 * recipe.model.layers * recipe.model.width**2 + 1000
    step = recipe.train.batch * recipe.train.window * weights / (50 * tokens_per_second * 1000)
    return Speed(
        step_seconds=step,
        read_seconds=step / recipe.train.batch / recipe.train.window / 3,
        label_seconds=1.0,
        read_memory=1,
        train_memory=1,
    )


def facts_of(tokens: int) -> TextFacts:
    """As Heaps' law has it: the vocabulary grows as the root of the text."""
    distinct = int(20 * tokens**0.5)
    return TextFacts(
        source="mine.txt", tokens=tokens, words={n: distinct // n for n in (1, 2, 3, 5)}
    )


@pytest.mark.parametrize("minutes", [1, 3, 10, 600])
@pytest.mark.parametrize("tokens", AMOUNTS)
def test_every_amount_has_a_recipe(tokens: int, minutes: float) -> None:
    choice = choose(facts_of(tokens), minutes, pace)
    recipe, share = choice.recipe, choice.recipe.corpus.split
    assert share is not None
    assert sum(share) == pytest.approx(1)
    training = tokens * share[0]
    assert tokens * share[1] <= max(MEASURED_TOKENS * 1.01, 0.05 * 2000)
    assert recipe.train.window * recipe.train.batch <= training
    words = recipe.corpus.max_vocabulary
    assert words is not None
    assert 3 <= words <= 60_000
    assert all(cutoff < words for cutoff in recipe.model.cutoffs)
    assert recipe.search is not None
    assert recipe.search.ramp is not None
    assert recipe.search.ramp <= recipe.search.cache_size <= max(50, tokens * share[1])
    assert recipe.search.confirm
    assert recipe.search.temperature
    assert (recipe.ngrams is None) == (int(tokens * share[0]) > TABLE_TOKENS)
    if recipe.ngrams:
        assert recipe.ngrams.budget == min(250_000, max(20_000, int(tokens * share[0])))
    assert recipe.quantize is not None
    assert recipe.train.evaluate_every <= recipe.train.steps
    epochs = recipe.train.steps * recipe.train.batch * recipe.train.window / training
    assert epochs <= 60
    if recipe.prune:
        assert recipe.prune.train is not None
        assert recipe.prune.train.steps is not None
        assert recipe.prune.train.steps < recipe.train.steps
    # The same facts give the same recipe, and the reasons name the numbers that it has.
    assert choose(facts_of(tokens), minutes, pace) == choice
    assert f"{recipe.model.width}" in choice.reasons[0]
    assert f"{recipe.train.steps:,} steps" in choice.reasons[-1]


def test_more_text_and_more_time_make_larger_models() -> None:
    widths = [choose(facts_of(n), 600, pace).recipe.model.width for n in AMOUNTS]
    assert widths == sorted(widths)
    assert len(set(widths)) == len(SHAPES)
    times = [choose(facts_of(100_000_000), t, pace).recipe.model.width for t in (1, 3, 10, 100)]
    assert times == sorted(times)
    assert times[0] < times[-1]


def test_the_time_is_kept() -> None:
    """What the chosen steps take by the measured pace is no more than there is."""
    for tokens in AMOUNTS[3:]:
        for minutes in (3, 10, 60):
            recipe = choose(facts_of(tokens), minutes, pace).recipe
            pruning = recipe.prune.train.steps if recipe.prune and recipe.prune.train else 0
            steps = recipe.train.steps + (pruning or 0)
            if recipe.train.steps > 20:  # the fewest that are worth a training
                assert steps * pace(recipe).step_seconds <= 60 * minutes


def test_a_slow_machine_gets_a_smaller_model() -> None:
    quick = choose(facts_of(5_000_000), 10, pace)
    slow = choose(facts_of(5_000_000), 10, lambda r: pace(r, tokens_per_second=2e4))
    assert slow.recipe.model.width < quick.recipe.model.width
    assert f"fewer than {ENOUGH_STEPS} steps" in slow.reasons[0]
    slowest = choose(facts_of(5_000_000), 1, lambda r: pace(r, tokens_per_second=1e3))
    assert slowest.reasons[-1].endswith("more --minutes make a better model")


def test_too_little_text_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(CorpusError, match=r"^mine.txt has 1,999 tokens, .* at least 2,000"):
        choose(facts_of(1_999), 10, pace)
    text = write_lines(tmp_path / "short.txt", ["a few words"] * 40)
    assert main(["run", str(text), "--out", str(tmp_path / "mine")]) == 1
    progress, said = capsys.readouterr().err.split("\n", 1)
    assert progress == f"Reading {text}."
    assert said == f"micronet: {text} has 160 tokens, and a model needs at least 2,000: " + (
        "give more text\n"
    )
    assert not (tmp_path / "mine").exists()


def test_a_text_of_one_line_is_refused_before_anything_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = write_lines(tmp_path / "long.txt", ["a few words " * 1_000])
    assert main(["run", str(text), "--out", str(tmp_path / "mine")]) == 1
    said = capsys.readouterr().err.splitlines()
    assert said[0] == f"Reading {text}."
    assert "since a text is divided only where lines end" in said[1]


def test_facts_are_counted(tmp_path: Path) -> None:
    text = write_lines(tmp_path / "t.txt", ["one two two three"] * 50 + ["once", "four four"])
    facts = read_facts(str(text))
    assert facts.tokens == 50 * 5 + 2 + 3
    assert facts.words[1] >= facts.words[2] >= 3


@pytest.fixture
def text(tmp_path: Path) -> Path:
    folder = tmp_path / "mytext"
    folder.mkdir()
    lines = [" ".join(f"w{(n * k * k) % 97}" for k in range(1, 9)) for n in range(300)]
    write_lines(folder / "one.txt", lines)
    write_lines(folder / "two.md", lines[::2])
    return folder


@pytest.mark.needs_torch
def test_text_becomes_a_model_in_one_command(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[Recipe] = []

    def measured(recipe: Recipe) -> Speed:
        asked.append(recipe)
        return pace(recipe, tokens_per_second=1e9)

    monkeypatch.setattr("micronet_lm.pipeline.speed.speed_of", measured)
    monkeypatch.setattr("micronet_lm.pipeline.own_text.SHAPES", SHAPES[:1])
    out = tmp_path / "mine"
    words = ["run", str(text), "--out", str(out), "--train.steps", "20"]
    assert main([*words, "--dry-run", "--until", "corpus"]) == 0
    assert not out.exists()
    capsys.readouterr()
    assert main(words) == 0
    said = capsys.readouterr()
    assert said.err.startswith("Reading ")
    assert "tokens of training text: 1 layer of width 32, because" in said.err
    assert f'micronet predict "..." -m {out}' in said.out.replace("\n", "")
    assert (out / "packed" / "model.safetensors").is_file()
    kept = load_recipe(str(out / "own-text.yaml"))
    assert kept.corpus.source == str(text)
    questions = len(asked)
    # The same command asks nothing and finds everything complete.
    assert main([*words, "--minutes", "3"]) == 0
    said = capsys.readouterr()
    assert len(asked) == questions
    assert "as it was chosen before; remove it to choose again" in said.err
    assert "Reading" not in said.err
    assert "begins" not in said.err
    assert main(["predict", "w1 w4", "-m", str(out), "--json"]) == 0
    json.loads(capsys.readouterr().out)
    # The table of n-grams is in the file, or it was tried and did not pay.
    record = json.loads((out / "stages" / "packed.json").read_text())
    assert "table of n-grams" in record["result"]["ngrams"]
    card = read_packed(out / "packed" / "model.safetensors").card
    assert card["made_by"] == f"micronet run {text} --out mine"  # and not "micronet run mine"
    other = write_lines(tmp_path / "other.txt", ["x"])
    for more, why in (
        (["run", str(other), "--out", str(out)], f"holds a model of {text}, not of {other}"),
        (["run", str(out)], "is a run, a pipeline or a corpus, not text"),
        (["run", str(text), "--out", str(text / "mine")], "is inside the text"),
        (["run", str(text / "*.txt")], "--out mine"),
        (["run", str(text), "--corpus", str(text)], "--corpus is for recipes"),
        (["train", "demo", "--out", str(out)], "holds a pipeline of micronet run"),
        (["pack", str(out), "-o", "m"], f"is packed already: its file is {out}/packed/model"),
        (["run", "demo", "--out", str(out)], f"holds a model of {text}, not of the recipe demo"),
    ):
        assert main(more) in (1, 2), more
        assert why in capsys.readouterr().err, more


@pytest.mark.needs_torch
def test_wrong_guesses_name_the_command(
    text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = f"to train on your own text: micronet run {text} --out mine"
    other = "to train on your own text: micronet run mytext --out mine"
    for words, said in (
        (["run", "demo", "--corpus", str(text), "--out", str(tmp_path / "o")], mine),
        (["train", "demo", "--corpus", str(text), "--out", str(tmp_path / "o")], mine),
        (["train", str(text)], mine),
        (["run", "no-such-preset"], other),
        (["run", "mytxt", "--minutes", "3"], "no preset 'mytxt' and no file or folder of that"),
        (["run", f"{text}/one.txt", f"{text}/two.md"], "or a pattern such as '*.txt', into quotes"),
    ):
        capsys.readouterr()
        assert main(words) in (1, 2), words
        assert said in capsys.readouterr().err, words


def test_presets_are_not_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("demo", "mine.yaml", "letters"):
        Path(name).mkdir()
    assert [own_text_verb.is_text(n) for n in ("demo", "mine.yaml", "letters", "*.txt", "no")] == [
        *(False, False, True),
        *(True, False),
    ]
