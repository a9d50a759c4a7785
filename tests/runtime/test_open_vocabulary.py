"""Bits per byte: words by the model, unknown ones by their letters, with every engine."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.engines import CACHED, ENGINES, INTEGERS, Opener
from tests.support.pages import blocks
from tests.support.shapes import SMALL
from tests.support.texts import hostile

from micronet_lm.artifact import read_packed, write_packed
from micronet_lm.artifact.random_model import Choice, random_model
from micronet_lm.cli.main import main
from micronet_lm.corpus.vocabulary import UNK
from micronet_lm.errors import ArtifactError, InferenceError
from micronet_lm.runtime.engines import open_engine
from micronet_lm.runtime.model import LM, load
from micronet_lm.spelling import estimate


def spelling_model(choice: Choice, tokenizer: str = "word-2"):  # type: ignore[no-untyped-def]
    model = random_model(SMALL, replace(choice, tokenizer=tokenizer))
    known = [word for word in model.words if word != UNK]
    spelling = estimate(["frob", "frobnicate", "knob", "Ωmega"], known, order=4, budget=900)
    return replace(model, spelling=spelling)


@pytest.fixture(params=[CACHED, INTEGERS], ids=["floats", "integers"])
def lm(request: pytest.FixtureRequest, open_model: Opener) -> LM:
    return LM(open_model(spelling_model(request.param)))


TEXT = "the a1 frobber, (b2 Ωs!\n\nthe frobber"


def test_bits_per_byte_are_the_sum_of_their_parts(lm: LM) -> None:
    """Token by token in a session, by the definition, and whole: the same."""
    tokens = lm.encoder.tokens(TEXT)
    assert lm.join(tokens) == TEXT  # marks and line ends are all there
    for learn in (True, False):
        found = lm.open_score(TEXT, learn=learn)
        session = lm.engine.start()
        session.feed(lm.encoder.line_end)
        parts = []
        for token in tokens:
            number = session.find(token)
            chance = 0.0 if number is None else math.exp(session.log_probability(number))
            if lm.engine.find(token) is None:
                unknown = session.log_probability(lm.encoder.unknown)
                chance += math.exp(unknown + (lm.engine.spelling(token) or math.nan))
                number = session.add(token) if learn else lm.encoder.unknown
            parts.append(math.log(chance))
            assert number is not None
            session.feed(number)
        assert found.log_probability == pytest.approx(math.fsum(parts), abs=2e-3)
        assert found.bytes == len(TEXT.encode())
        assert found.characters == len(TEXT)
        bits = -found.log_probability / math.log(2)
        assert found.bits_per_byte == pytest.approx(bits / len(TEXT.encode()))
        assert found.spelled == sum(token not in lm.vocabulary for token in tokens) > 3
        assert found.new == found.spelled - 1  # one word comes twice
    assert lm.bits_per_byte(TEXT) == lm.open_score(TEXT).bits_per_byte


def test_a_text_costs_what_its_lines_cost_after_each_other(lm: LM) -> None:
    """The line end between them counts once; known words cost what the closed vocabulary says."""
    whole, first = lm.open_score("the a1\nb2"), lm.open_score("the a1\n")
    state = lm.start()
    state.feed("\nthe a1\n")
    assert whole.log_probability == pytest.approx(
        first.log_probability + state.logprob("b2"), abs=1e-4
    )
    assert (whole.tokens, first.tokens, whole.bytes, first.bytes) == (4, 3, 9, 7)
    ids = [lm.encoder.line_end, *lm.encoder.ids("the a1\nb2").tolist()]
    assert whole.log_probability == pytest.approx(float(lm.engine.score(ids).sum()), abs=1e-4)


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> list[LM]:
    path = tmp_path_factory.mktemp("engines") / "model.safetensors"
    write_packed(path, spelling_model(CACHED))
    return [LM(open_engine(path, name)) for name in ENGINES]


@settings(max_examples=60)
@given(text=st.one_of(hostile, st.text(st.characters(codec="utf-8"), max_size=40)))
def test_every_text_has_one_probability_in_all_engines(engines: list[LM], text: str) -> None:
    one = engines[0]
    tokens = one.encoder.tokens(text)
    shown = one.join(tokens)
    if not shown:
        with pytest.raises(InferenceError, match="without words"):
            one.bits_per_byte(text)
        return
    assert "".join(one.screen.pieces(tokens)) == shown  # spaces and line ends belong to tokens
    for learn in (True, False):
        found = [lm.open_score(text, learn=learn) for lm in engines]
        for other in found:
            assert (other.bytes, other.characters) == (len(shown.encode()), len(shown))
            assert 0 < other.bits < math.inf
            assert other.bits == pytest.approx(found[0].bits, abs=1e-3 * len(tokens))
            assert other.bits_per_byte == other.bits / len(shown.encode())


def test_the_engines_spell_alike(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    write_packed(path, spelling_model(CACHED))
    spellings = [open_engine(path, name) for name in ENGINES]
    for word in ("frobber", "x", "Ωs", "日木", "y" * 300, UNK, "￭frob", "\x00"):
        found = {round(engine.spelling(word) or 0, 9) for engine in spellings}
        assert len(found) == 1, word
        kept = read_packed(path).spelling
        assert kept is not None
        assert found.pop() == pytest.approx(kept.log_probability(word))


def test_words_that_are_not_spelled(lm: LM) -> None:
    with pytest.raises(InferenceError, match="has the word 'the'"):
        lm.engine.spelling("the")
    for nothing in ("", "a\nb"):
        with pytest.raises(InferenceError, match="must not be empty or contain a line feed"):
            lm.engine.spelling(nothing)
    with pytest.raises(InferenceError, match="without words"):
        lm.bits_per_byte("  ")
    with pytest.raises(InferenceError, match="half of a surrogate pair at character 4"):
        lm.bits_per_byte("the \ud800")


def test_a_model_without_spelling_says_what_to_do(open_model: Opener) -> None:
    lm = LM(open_model(random_model(SMALL, replace(CACHED, tokenizer="word-2"))))
    assert not lm.can_spell
    assert lm.bits_per_byte("the a1") > 0  # nothing has to be spelled
    with pytest.raises(InferenceError, match="'frobber' and has no spelling model"):
        lm.bits_per_byte("the frobber")


def test_a_literal_unk_is_spelled(lm: LM) -> None:
    found = lm.open_score(f"the {UNK}")
    ids = [lm.encoder.line_end, *lm.encoder.ids("the").tolist(), lm.encoder.unknown]
    spelled = lm.engine.spelling(UNK)
    assert spelled is not None
    wanted = float(lm.engine.score(ids).sum()) + spelled
    assert found.log_probability == pytest.approx(wanted, abs=1e-4)


def test_both_engines_refuse_a_damaged_spelling(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    model = spelling_model(CACHED)
    assert model.spelling is not None
    write_packed(path, model, with_checksum=False)  # which would notice first
    data, own = path.read_bytes(), model.spelling.data
    assert data.count(own) == 1
    for at, byte in ((0, 0), (0, 9), (8, 0xFF), (9, 0), (13, 0), (len(own) - 1, 0)):
        broken = own[:at] + bytes([byte]) + own[at + 1 :]
        path.write_bytes(data.replace(own, broken))
        for name in ENGINES:
            with pytest.raises(ArtifactError, match="spelling"):
                open_engine(path, name)


def test_the_verbs_report_both_and_never_mix_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, text = tmp_path / "model.safetensors", tmp_path / "text.txt"
    write_packed(path, spelling_model(CACHED))
    text.write_text(TEXT, encoding="utf-8")
    wanted = LM(open_engine(path)).open_score(TEXT)
    for verb in (
        ["score", str(text), "-m", str(path)],
        ["evaluate", str(path), "--text", str(text)],
    ):
        assert main([*verb, "--json"]) == 0
        report = json.loads(capsys.readouterr().out)
        assert report["open_vocabulary"]["bits_per_byte"] == pytest.approx(wanted.bits_per_byte)
        assert report["perplexity"] > 1
        assert main(verb) == 0
        said = capsys.readouterr().out.replace("\n", " ")
        assert f"{wanted.bits_per_byte:.4f} bits per byte" in said
        assert "not comparable with the perplexity per token" in said


def test_the_page_says_what_happens() -> None:
    page = (Path(__file__).parents[2] / "docs" / "open-vocabulary.md").read_text(encoding="utf-8")
    examples = blocks("python", page)
    assert len(examples) == 3
    names: dict[str, Any] = {"lm": load("demo"), "text": "Return the frobnicator.\n"}
    for example in examples:
        exec(compile(example, "open-vocabulary.md", "exec"), names)  # noqa: S102
    assert names["state"].complete("frob")[0].word == "frobnicator"
    assert (names["found"][0].word, names["found"].replaces) == ("dictionary", "dictoin")
