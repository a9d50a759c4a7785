"""The text-level API, on every engine."""

import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.engines import CACHED, Opener
from tests.support.shapes import SMALL

import micronet_lm as mn
from micronet_lm.artifact import write_packed
from micronet_lm.artifact.random_model import random_model
from micronet_lm.corpus.tokenizers import TOKENIZERS
from micronet_lm.errors import ArtifactError, InferenceError
from micronet_lm.runtime import engines
from micronet_lm.runtime.model import LM
from micronet_lm.runtime.reference import NumpyEngine


@pytest.fixture
def lm(open_model: Opener) -> LM:
    return LM(open_model(random_model(SMALL, CACHED)))


def test_scores_and_perplexity_are_of_every_token_after_the_first(lm: LM) -> None:
    text = "the a1 , b2 unheard-of\nthe"
    scored = lm.score(text)
    assert [item.word for item in scored] == ["a1", ",", "b2", "<unk>", "<eos>", "the"]
    assert lm.perplexity(text) == pytest.approx(
        math.exp(-sum(item.log_probability for item in scored) / 6), rel=1e-6
    )
    state = lm.start()
    state.feed("the")
    for word, score in scored:
        assert state.logprob(word) == pytest.approx(score, abs=1e-4)
        state.feed_words([word])
    assert lm.score_batch([text, "the a1"], threads=2)[0] == scored


def test_the_next_words(lm: LM) -> None:
    best = lm.top_k("the a1 ,", k=4, special=True)
    state = lm.start()
    state.feed("the a1")
    state.feed(" ,")
    assert state.tokens == 3
    assert [item.word for item in state.top_k(4, special=True)] == [item.word for item in best]
    chances = state.distribution()
    assert chances.sum() == pytest.approx(1, abs=1e-5)
    for word, chance in best:
        number = list(lm.vocabulary).index(word)
        assert chance == pytest.approx(float(chances[number]), rel=1e-4)
        assert state.logprob(word) == pytest.approx(math.log(chance), abs=1e-4)
    assert all(word.startswith("a") for word, _ in lm.complete("the", "a", 3))
    assert lm.complete("the", "zzz") == []


def test_batches_of_questions(lm: LM) -> None:
    texts = ["the", "the a1 ,", "", "b2"]
    for special in (False, True):
        found = lm.top_k_batch(texts, 3, special, threads=2)
        assert found == [lm.top_k(text, 3, special) for text in texts]
    with pytest.raises(InferenceError, match="got one text"):
        lm.top_k_batch("the a1")


def test_an_empty_text_begins_after_a_lines_end(lm: LM) -> None:
    assert lm.top_k("", 5) == lm.top_k("\n", 5) == lm.top_k("  ", 5)


def test_writing_follows_the_seed(lm: LM) -> None:
    for special in (False, True):
        once = list(lm.generate("the a1", max_tokens=12, seed=3, special=special))
        assert once == list(lm.generate("the a1", max_tokens=12, seed=3, special=special))
        assert len(once) == 12
        assert once != list(lm.generate("the a1", max_tokens=12, seed=4, special=special))
    assert list(lm.generate("the", max_tokens=0)) == []


def test_a_temperature_of_0_takes_the_likeliest_word(lm: LM) -> None:
    words = list(lm.generate("the", max_tokens=5, temperature=0, seed=1, special=True))
    state = lm.start()
    state.feed("the")
    for word in words:
        assert state.top_k(1, special=True)[0].word == word
        state.feed_words([word])
    assert words == list(lm.generate("the", max_tokens=5, top_k=1, seed=7, special=True))


@pytest.mark.parametrize("temperature", [1e-3, 1e-300, 1e-309, 5e-324])
def test_a_temperature_near_0_takes_the_likeliest_word_too(lm: LM, temperature: float) -> None:
    best = [lm.top_k("the", 1, special=True)[0].word]
    for seed in range(3):
        for more in ({}, {"top_k": 3}, {"top_p": 0.9}):
            words = lm.generate("the", 1, temperature, seed=seed, special=True, **more)
            assert list(words) == best


def test_unk_is_written_only_where_it_may_be(lm: LM) -> None:
    """Up to the first one the same seed gives the same words, whether it may be written or not."""
    often = list(lm.generate("the <unk> <unk> <unk>", 300, seed=2, special=True))
    assert "<unk>" in often
    for more in ({}, {"temperature": 0}, {"top_k": 1}, {"top_p": 1e-6}):
        pieces = list(lm.generate("the <unk> <unk> <unk>", 300, seed=2, **more))
        assert len(pieces) == 300
        assert "<unk>" not in "".join(pieces)
    first = often.index("<unk>")
    text = "".join(lm.generate("the <unk> <unk> <unk>", first, seed=2))
    assert lm.encoder.tokens("x" + text) == ["x", *often[:first]]


def test_where_unk_is_the_likeliest_the_second_is_written(lm: LM) -> None:
    state = lm.start()
    state.feed("the <unk> <unk> <unk>")
    for _ in range(500):
        if state.top_k(1, special=True)[0].word == "<unk>":
            break
        state.feed(" <unk>")
    assert state.top_k(1, special=True)[0].word == "<unk>"
    second = next(word for word, _ in state.top_k(2) if word != "<eos>")
    assert second == state.top_k(1)[0].word
    raw = state.top_k(2, special=True)[1].word
    for temperature, top_k in ((0.0, 0), (1.0, 1)):
        writing = state.fork()
        assert next(writing.write(1, temperature, top_k)).strip(" ") in {raw, "\n"}
        assert writing.tokens == state.tokens + 1  # what was written was read


def test_unknown_words_are_known(lm: LM) -> None:
    assert lm.encoder.unknown_words("the bird <unk> a1 bird\nfly") == ["bird", "bird", "fly"]
    assert lm.encoder.unknown_words("the a1\n") == []
    assert lm.encoder.unknown_words("") == []


def test_states_are_forked_saved_and_restored(lm: LM) -> None:
    state = lm.start()
    state.feed("the a1")
    saved, twin = state.save(), state.fork()
    state.feed(" b2")
    assert twin.tokens == 2
    assert lm.restore(saved).top_k(3) == twin.top_k(3)
    state.restore(saved)
    assert state.tokens == 2
    assert state.top_k(3) == twin.top_k(3)


def test_the_vocabulary_is_a_sequence(lm: LM) -> None:
    words = lm.vocabulary
    assert len(words) == 90
    assert (words[0], words[1], words[-1]) == ("<unk>", "<eos>", words[89])
    assert "the" in words
    assert "unheard-of" not in words
    assert list(words)[:6] == words[:6] == ["<unk>", "<eos>", "the", ",", "é", "日本"]
    with pytest.raises(IndexError):
        words[90]
    assert lm.card["name"] == "random"
    assert repr(lm) == "LM('random', 90 words)"


def test_what_cannot_be_answered_is_refused(lm: LM) -> None:
    for question in (
        lambda: lm.perplexity(""),
        lambda: lm.perplexity("the"),
        lambda: lm.score("the"),
        lambda: lm.top_k("the", 0),
        lambda: lm.generate("the", max_tokens=-1),
        lambda: lm.generate("the", temperature=-1),
        lambda: lm.generate("the", top_p=0),
        lambda: lm.start().top_k(3),
        lambda: lm.start().logprob("unheard-of"),
        lambda: lm.restore(b""),
        lambda: lm.restore("text"),  # type: ignore[arg-type]
    ):
        with pytest.raises(InferenceError):
            question()
    with pytest.raises(InferenceError, match="'unheard-of' is not in the vocabulary"):
        lm.start().logprob("unheard-of")


@pytest.mark.parametrize("name", ["word", "word-2"])
def test_text_of_the_tokenizer_word_comes_back(open_model: Opener, name: str) -> None:
    lm = LM(open_model(random_model(SMALL, replace(CACHED, tokenizer=name))))
    words = list(lm.generate("the a1, the", max_tokens=8, special=True))
    assert lm.join(["the", "a1", ",", "the"]) == "the a1, the"
    assert len(lm.join(words)) > 8
    assert lm.score("the a1, the")[1].word == ","


def test_a_vocabulary_without_unk_reads_no_text(open_model: Opener) -> None:
    model = random_model(SMALL)
    with pytest.raises(ArtifactError, match="<unk>"):
        LM(open_model(replace(model, words=["x", *model.words[1:]])))


def test_unknown_engines_and_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InferenceError, match="'gpu'"):
        mn.load("demo", engine="gpu")  # type: ignore[arg-type]
    for engine in ("auto", "numpy"):
        with pytest.raises(ArtifactError, match="there is no file"):
            mn.load(tmp_path / "m", engine=engine)


def test_an_engine_that_is_not_built_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_packed(tmp_path / "m", random_model(SMALL))
    monkeypatch.setattr(engines, "has_native", lambda: False)
    with pytest.raises(InferenceError, match="the native engine is not built"):
        mn.load(tmp_path / "m", engine="native")
    assert isinstance(mn.load(tmp_path / "m").engine, NumpyEngine)


def test_running_a_model_needs_no_torch(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    write_packed(path, random_model(SMALL, CACHED))
    script = (
        "import sys; sys.modules['torch'] = None\n"
        "import micronet_lm as mn\n"
        "assert 'numpy' not in sys.modules\n"  # the package itself costs nothing
        "lm = mn.load(sys.argv[1]); print(len(lm.top_k('the', 3)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "3\n"), done.stderr


@pytest.mark.parametrize("name", TOKENIZERS)
def test_both_engines_open_files_of_every_tokenizer(open_model: Opener, name: str) -> None:
    lm = LM(open_model(random_model(SMALL, replace(CACHED, tokenizer=name))))
    assert lm.encoder.tokenizer.name == name


def test_public_names() -> None:
    assert set(mn.__all__) == {"LM", "State", "UnknownWordsWarning", "__version__", "load"}
    assert all(getattr(mn, name) for name in mn.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = mn.nothing  # type: ignore[attr-defined]  # the checker sees it too
