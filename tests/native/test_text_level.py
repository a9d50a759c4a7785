"""The tokenizers and the text-level API behind the C header, against Python's own."""

import importlib
import math
import sys
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.engines import CACHED
from tests.support.shapes import SMALL
from tests.support.texts import hostile

import micronet_lm as mn
from micronet_lm.artifact import write_packed
from micronet_lm.artifact.random_model import random_model
from micronet_lm.corpus.tokenizers import TOKENIZERS, tokenizer
from micronet_lm.errors import InferenceError
from micronet_lm.runtime.screen import Screen
from micronet_lm.runtime.suggestions import Suggester

ROOT = Path(__file__).parents[2]
TABLES = (ROOT / "native" / "src" / "unicode_tables.hpp").read_text(encoding="utf-8")
SAME_UNICODE = f'kVersion[] = "{unicodedata.unidata_version}"' in TABLES
of_this_unicode = pytest.mark.skipif(
    not SAME_UNICODE, reason="this Python knows another version of Unicode than the tables"
)
# Where Python's Unicode is newer, only texts of characters that both know are compared.
texts = st.one_of(hostile, st.text(max_size=60)) if SAME_UNICODE else hostile


@pytest.fixture(scope="module")
def native() -> Any:
    return importlib.import_module("micronet_lm.runtime._native")


@pytest.fixture(scope="module")
def lm() -> mn.LM:
    """The shipped model on the native engine, with words found by Python."""
    lm = mn.load(engine="native")
    lm.screen = Screen(lm.engine, lm.encoder.tokenizer)
    lm.suggester = Suggester(lm)
    return lm


@pytest.fixture(scope="module")
def own() -> mn.LM:
    """The same with words found by the engine, as users have it."""
    return mn.load(engine="native")


def encodable(text: str) -> str:
    return text.encode("utf-8", "ignore").decode()


@pytest.mark.parametrize("name", TOKENIZERS)
@settings(max_examples=400)
@given(text=texts, after=st.sampled_from("\nx(.。 ￭1'"))
def test_tokens_are_pythons(native: Any, name: str, text: str, after: str) -> None:
    text = encodable(text)
    expected = tokenizer(name).tokens(text, after)
    assert native.tokens(name, text, ord(after)) == expected


@pytest.mark.parametrize("name", TOKENIZERS)
@settings(max_examples=150)
@given(
    text=texts,
    others=st.lists(st.sampled_from(["￭", "￭￭", "￭￭￭", "￭x", "￭￭x", "<eos>", "(", ")", "中"])),
)
def test_joined_texts_are_pythons(native: Any, name: str, text: str, others: list[str]) -> None:
    tokens = [*tokenizer(name).tokens(encodable(text)), *others]
    assert native.join(name, tokens) == tokenizer(name).join(tokens)
    assert native.join(name, others[::-1] + tokens) == tokenizer(name).join(others[::-1] + tokens)


@pytest.mark.parametrize("name", TOKENIZERS)
@settings(max_examples=150)
@given(text=texts)
def test_what_is_settled_is_pythons(native: Any, name: str, text: str) -> None:
    text = encodable(text)
    settled = tokenizer(name).settled(text)
    assert native.settled(name, text) == len(text[:settled].encode())


@of_this_unicode
def test_every_character_is_split_as_in_python(native: Any) -> None:
    """In one text per class of neighbours, so that all of Unicode takes seconds.

    Planes 4 to 13 have no characters, 15 and 16 only private ones: their ends stand for them.
    """
    empty = (0x40000, 0xDFC00, 0xF0000, sys.maxunicode + 1 - 0x400)
    for begin in (*range(0, 0x40000, 0x400), *range(0xE0000, 0xE1000, 0x400), *empty):
        signs = "".join(map(chr, range(begin, min(begin + 0x400, sys.maxunicode + 1))))
        signs = encodable(signs)
        for text in (
            " ".join(signs),
            "a".join(signs),
            "".join(f"{sign}'b " for sign in signs),
            signs,
        ):
            for name in TOKENIZERS:
                assert native.tokens(name, text, 10) == tokenizer(name).tokens(text), hex(begin)


@settings(max_examples=60)
@given(pieces=st.lists(texts, max_size=4), k=st.integers(1, 6))
def test_suggestions_are_pythons(lm: mn.LM, pieces: list[str], k: int) -> None:
    state, text = lm.start(), lm.engine._engine.text()  # type: ignore[attr-defined]
    read = ""
    for piece in map(encodable, pieces):
        state.feed(piece)
        text.feed(piece)
        read += piece
        assert text.tokens == state.tokens
        same_suggestions(text, state, k)
    assert text.save() == state.save()


@settings(max_examples=60)
@given(pieces=st.lists(texts, max_size=4), k=st.integers(1, 6))
def test_words_of_sessions_are_pythons(lm: mn.LM, own: mn.LM, pieces: list[str], k: int) -> None:
    python, native = lm.start(), own.start()
    for piece in map(encodable, pieces):
        python.feed(piece)
        native.feed(piece)
        found, expected = native.suggest(k), python.suggest(k)
        same_words(found, expected)
        assert (found.replaces, found.tokens) == (expected.replaces, python.tokens)
        if python.tokens:
            same_words(native.top_k(k), python.top_k(k))
            same_words(native.complete("Fr", k), python.complete("Fr", k))
    whole = "".join(map(encodable, pieces))
    same_words(own.suggest(whole, k), lm.suggest(whole, k))
    assert own.suggest(whole, k).tokens == lm.suggest(whole, k).tokens


def test_recalled_and_forgotten_words_are_pythons(lm: mn.LM, own: mn.LM, tmp_path: Path) -> None:
    text = "Ask Zorblax about the frobnicator and its frobnicators.\n" * 3
    for each in (lm, own):
        each.personal(tmp_path / f"{id(each)}").learn(text)
    mine = {each: each.personal(tmp_path / f"{id(each)}") for each in (lm, own)}
    states = {each: each.start(mine[each]) for each in (lm, own)}
    for typed in ("Ask Zo", "rbl", "ax about the frobm", "icator. Call Quuxly. quu", "zly frobz"):
        for each, state in states.items():
            state.feed(typed)
            if typed == "zly frobz":
                mine[each].forget("frobnicator")
        same_words(states[own].suggest(4), states[lm].suggest(4))
        same_words(states[own].fork().suggest(4), states[lm].suggest(4))
        same_words(own.suggest(typed, 4, mine[own]), lm.suggest(typed, 4, mine[lm]))
    assert "frobnicator" not in dict(states[own].suggest(9))


WORDS = [
    "return",
    "dictionary",
    "None",
    "frobnicator",
    "Frobnicator",
    "don't",
    "ΑΣ",
    "straße",
    "x2",
]


@st.composite
def mistyped(draw: st.DrawFn) -> str:
    """Draw a part of a word with up to two errors, in some case."""
    word = draw(st.sampled_from(WORDS))
    cases: list[Callable[[str], str]] = [str, str.lower, str.upper, str.capitalize]
    word = draw(st.sampled_from(cases))(word)
    letters = list(word[: draw(st.integers(1, len(word)))])
    for _ in range(draw(st.integers(0, 2))):
        place = draw(st.integers(0, len(letters)))
        how = draw(st.sampled_from(["swap", "insert", "replace", "drop"]))
        if how == "insert":
            letters.insert(place, draw(st.sampled_from("aeiouslqß")))
        elif place < len(letters) and how == "replace":
            letters[place] = draw(st.sampled_from("asdfghjklé"))
        elif place < len(letters) and how == "drop":
            del letters[place]
        elif place + 1 < len(letters):
            letters[place : place + 2] = letters[place + 1], letters[place]
    return "".join(letters)


@settings(max_examples=150)
@given(
    before=st.lists(st.sampled_from([*WORDS, ".", "!", "\n", "the", "。"]), max_size=6),
    space=st.sampled_from([" ", "", "\t", "\n"]),
    typed=mistyped(),
    k=st.integers(1, 5),
)
def test_errors_and_learned_words_and_capitals_are_pythons(
    lm: mn.LM, before: list[str], space: str, typed: str, k: int
) -> None:
    state, text = lm.start(), lm.engine._engine.text()  # type: ignore[attr-defined]
    for piece in (" ".join(before), space, typed):
        state.feed(piece)
        text.feed(piece)
        same_suggestions(text, state, k)
        if state.tokens:
            same_words(text.top_k(k), state.top_k(k))
            same_words(text.complete("fr", k), state.complete("fr", k))
    assert text.save() == state.save()
    twin = lm.engine._engine.restore_text(text.save())  # type: ignore[attr-defined]
    same_suggestions(twin, state, k)


def test_learned_words_are_written_as_in_python(tmp_path: Path) -> None:
    path, start = tmp_path / "model.safetensors", "the frobnicator " * 6
    choice = replace(CACHED, tokenizer="word-2", lam=0.9, theta=0.001)
    write_packed(path, random_model(SMALL, choice))
    lm = mn.load(path, engine="native")
    expected = list(lm.generate(start, 60, 0.8, seed=4))
    assert "frobnicator" in "".join(expected)
    text = lm.engine._engine.text()  # type: ignore[attr-defined]
    text.feed(start)
    text.seed(4)
    assert [text.write(0.8, 0, 1.0) for _ in range(60)] == expected


@settings(max_examples=60)
@given(
    start=st.sampled_from(["Return a new", "the ", "", "Raise", "f(", "a\n"]),
    prefix=st.one_of(
        st.sampled_from(["R", "re", "RE", "Re", "ß", "ΑΣ", "İ", "￭", "'", "", "(", "ǆ"]), texts
    ),
    k=st.integers(1, 9),
)
def test_completions_are_pythons(lm: mn.LM, start: str, prefix: str, k: int) -> None:
    prefix = encodable(prefix)
    state, text = lm.after(start), lm.engine._engine.text()  # type: ignore[attr-defined]
    text.feed(start)
    text.settle()
    if not text.tokens:
        text.feed("\n")
    same_words(text.complete(prefix, k), state.complete(prefix, k))
    same_words(text.top_k(k), state.top_k(k))


def test_the_mark_completes_no_other_word(lm: mn.LM) -> None:
    state, text = lm.after("f("), lm.engine._engine.text()  # type: ignore[attr-defined]
    text.feed("f(")
    text.settle()
    for found in (state.complete("￭", 2), text.complete("￭", 2)):
        assert all(word.startswith("￭") for word, _ in found)


@pytest.mark.parametrize("temperature", [0, 0.5, 1.0])
@pytest.mark.parametrize("seed", [0, 1, 12345, 2**40 + 7, 2**63 + 1])
def test_the_same_seed_writes_the_same_words(lm: mn.LM, seed: int, temperature: float) -> None:
    pieces = lm.generate("Return a new ", 40, temperature, top_k=50, top_p=0.95, seed=seed)
    text = lm.engine._engine.text()  # type: ignore[attr-defined]
    text.feed("Return a new ")
    text.seed(seed)
    expected = list(pieces)
    assert [text.write(temperature, 50, 0.95) for _ in range(40)] == expected


@settings(max_examples=60)
@given(text=texts)
@pytest.mark.filterwarnings("ignore::micronet_lm.UnknownWordsWarning")
def test_scores_are_pythons(lm: mn.LM, text: str) -> None:
    text = encodable(text)
    scored = lm.engine._engine.score_text(text)  # type: ignore[attr-defined]
    words = lm.encoder.tokens(text)
    assert len(scored) == len(words)
    if len(words) < 2:
        return
    expected = lm.score(text)
    assert math.isnan(scored[0][2])
    assert [(word, score) for word, _, score in scored[1:]] == list(map(tuple, expected))
    assert "".join(piece for _, piece, _ in scored) == lm.join(words)


def test_a_saved_text_goes_both_ways(lm: mn.LM) -> None:
    text, state = lm.engine._engine.text(), lm.start()  # type: ignore[attr-defined]
    for one in (text, state):
        one.feed('Return "é\U0001f600\\')
    saved = state.save()
    assert text.save() == saved
    assert lm.engine._engine.restore_text(saved).save() == saved  # type: ignore[attr-defined]
    assert lm.restore(text.save()).save() == saved
    old = b"micronet state 1\n" + saved[len(b"micronet state 2\n") + 8 :]
    assert lm.engine._engine.restore_text(old).save() == saved  # type: ignore[attr-defined]
    for spoiled in (
        b"",
        saved[:-1],
        saved[:20],
        saved.replace(b"begins", b"begun?"),
        saved[:17] + b"\xff" * 12,
        old[:17] + b"\xff" * 4,
        *(saved[:at] + bytes([saved[at] ^ 4]) + saved[at + 1 :] for at in range(200)),
    ):
        with pytest.raises(InferenceError, match=r"^[^\n]+$"):
            lm.engine._engine.restore_text(spoiled)  # type: ignore[attr-defined]


def test_errors_are_sentences(native: Any) -> None:
    with pytest.raises(InferenceError, match="there is no tokenizer 'none'; choose"):
        native.tokens("none", "a", 10)


@of_this_unicode
def test_the_tables_are_not_stale() -> None:
    """What native/tools/unicode_tables.py writes is what is there."""
    import runpy

    made = runpy.run_path(str(ROOT / "native" / "tools" / "unicode_tables.py"))
    assert made["source"]() == TABLES, "run python native/tools/unicode_tables.py"


def same_suggestions(text: Any, state: mn.State, k: int) -> None:
    found, replaces = text.suggest(k)
    expected = state.suggest(k)
    same_words(found, expected)
    assert replaces == expected.replaces


def same_words(found: Sequence[tuple[str, float]], expected: Any) -> None:
    assert [word for word, _ in found] == [word for word, _ in expected]
    np.testing.assert_allclose([p for _, p in found], [p for _, p in expected], rtol=1e-12)
