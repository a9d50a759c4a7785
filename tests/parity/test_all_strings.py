"""The probabilities of all strings sum to 1: words, spelled strings and the cache, in every engine.

Strings of two letters are enumerated up to a length. What the spelling model gives to all others,
longer ones and those with other bytes, is computed from its bytes alone.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.support.engines import CACHED, ENGINES, INTEGERS
from tests.support.shapes import LEAST_NATIVE
from tests.support.torch_models import torch_model

from micronet_lm.artifact import PackedModel, write_packed
from micronet_lm.artifact.random_model import Choice, random_model
from micronet_lm.corpus.vocabulary import EOS, UNK
from micronet_lm.runtime.engine import Engine, Session
from micronet_lm.runtime.engines import Name, open_engine
from micronet_lm.runtime.model import LM
from micronet_lm.spelling import Spelling, estimate
from micronet_lm.spelling.trie import END
from micronet_lm.training.open_evaluation import open_log_probabilities

LETTERS, LONGEST = "ab", 6
WORDS = (UNK, EOS, "a", "b", "ab", "ba", "bab", "aaaaaaaaa")
"""The vocabulary; its last word is longer than what is enumerated."""
READ = "a bb ab <unk> bb b aab ba bb a"
NEW = ("bb", "aab")
"""The words of `READ` that the vocabulary lacks."""

KINDS = {
    "floats": CACHED,
    "integers": INTEGERS,
    "n-grams": replace(CACHED, ngrams=2),
    "ramp": replace(CACHED, ramp=8),
    "fade": replace(CACHED, fade=5),
    "no-cache": Choice(seed=3),
}


def tiny(kind: str) -> PackedModel:
    """A model of eight words that spells in two letters."""
    model = random_model(LEAST_NATIVE, replace(KINDS[kind], lam=0.4, tokenizer="word-2"))
    known = [word for word in WORDS if word != UNK]
    spelling = estimate(["aa", "abb", "bba", "abab"], known, order=3, budget=60)
    return replace(model, words=WORDS, spelling=spelling)


def enumerated() -> Iterator[str]:
    """Give every string of the letters that is not in the vocabulary."""
    for length in range(1, LONGEST + 1):
        yield from (s for s in map("".join, product(LETTERS, repeat=length)) if s not in WORDS)


def mass_of_others(spelling: Spelling) -> float:
    """Return P_spelling of all strings outside the vocabulary that are not enumerated."""
    total = 0.0
    for length in range(LONGEST + 1):
        for letters in product(LETTERS.encode(), repeat=length):
            text, reached = bytes([END, *letters]), 1.0
            for at in range(1, len(text)):
                reached *= spelling.chance(text[max(0, at - 2) : at], text[at])
            last = text[-2:]
            goes_on = set(range(256)) - {END}
            if length < LONGEST:
                goes_on -= set(LETTERS.encode())
            total += reached * sum(spelling.chance(last, symbol) for symbol in goes_on)
    known = sum(math.exp(spelling.log_string(word)) for word in WORDS[1:] if len(word) > LONGEST)
    # Of the words of the vocabulary, <eos> has other letters and is not enumerated, either.
    known += math.exp(spelling.log_string(EOS))
    return (total - known) / spelling.outside


def chances(session: Session, engine: Engine, others: float) -> float:
    """Return the sum over the vocabulary, the enumerated strings and, spelled, all others."""
    unknown = engine.find(UNK)
    assert unknown is not None
    logs = session.log_distribution().astype(np.float64)
    of_unknown = float(np.exp(logs[unknown]))
    total = float(np.exp(logs).sum()) - of_unknown
    for word in enumerated():
        spelled = engine.spelling(word)
        assert spelled is not None
        total += of_unknown * math.exp(spelled)
        if (number := session.find(word)) is not None:
            total += math.exp(session.log_probability(number))
    return total + of_unknown * others


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("kind", KINDS)
def test_after_every_token_of_a_text(kind: str, name: Name, tmp_path: Path) -> None:
    model = tiny(kind)
    assert model.spelling is not None
    path = tmp_path / "model.safetensors"
    write_packed(path, model)
    engine, others = open_engine(path, name), mass_of_others(model.spelling)
    session = engine.start()
    for token in (EOS, *READ.split()):
        number = engine.find(token)
        session.feed(session.add(token) if number is None else number)
        assert chances(session, engine, others) == pytest.approx(1, abs=2e-5)
    if KINDS[kind].cache:  # the words that were read have votes of their own
        assert all(session.log_probability(session.add(word)) > -8 for word in NEW)


@pytest.mark.parametrize("name", ENGINES)
def test_the_api_and_a_personal_memory(name: Name, tmp_path: Path) -> None:
    """`State.logprob` of each string is what is summed; a memory knows one more word."""
    model = tiny("floats")
    assert model.spelling is not None
    path = tmp_path / "model.safetensors"
    write_packed(path, model)
    lm = LM(open_engine(path, name))
    personal = lm.personal(tmp_path / "me.personal")
    personal.learn("a abab b abab\n" * 40)
    for memory in (None, personal):
        state = lm.start(memory)
        state.feed(READ + "\n")
        total = math.fsum(math.exp(state.logprob(word)) for word in (*WORDS[1:], *enumerated()))
        total += math.exp(state.logprob(UNK)) * mass_of_others(model.spelling)
        assert total == pytest.approx(1, abs=2e-5)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "n-grams"])
def test_scored_as_whole_texts_by_torch_too(kind: str, tmp_path: Path) -> None:
    """Every string is put after the same text; torch evaluates no tables of n-grams."""
    model = tiny(kind)
    assert model.spelling is not None
    path = tmp_path / "model.safetensors"
    write_packed(path, model)
    new = [*NEW, *(word for word in enumerated() if word not in NEW)]
    spelled = [model.spelling.log_probability(word) for word in new]
    numbers = {word: place for place, word in enumerate((*WORDS, *new))}
    before = [numbers[token] for token in (EOS, *READ.split())]
    built, unknown = torch_model(model), WORDS.index(UNK)

    def of(engine: Engine | None, last: int) -> float:
        ids = np.array([*before, last])
        scores: NDArray[np.floating]
        if engine is None:
            scores = open_log_probabilities(built, ids, spelled, unknown)
        else:
            scores = engine.score_open(ids, spelled)
        return float(scores[-1])

    others = mass_of_others(model.spelling)
    for engine in (None, *(open_engine(path, name) for name in ENGINES)):
        every = {word: math.exp(of(engine, number)) for word, number in numbers.items()}
        total = math.fsum(every.values()) - every[UNK]
        total += every[UNK] * others
        assert total == pytest.approx(1, abs=5e-5), engine.name if engine else "torch"
