"""The spelling model of a packed file: which words it learns from, and how large it may be."""

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import ValidationError
from tests.support.corpora import write_lines

from micronet_lm.artifact.spelled import left_out, spelling_of
from micronet_lm.config import SpellingConfig
from micronet_lm.corpus import Corpus, build_corpus
from micronet_lm.corpus.manifest import DROPPED
from micronet_lm.corpus.vocabulary import EOS, UNK
from micronet_lm.errors import CorpusError
from micronet_lm.spelling import estimate

KEPT = 3
"""Words that occur less often in the training split are left out of the vocabulary."""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Corpus, Counter[str]]:
    """Build a corpus of common, rare and left out words; count those of the training split."""
    chance = random.Random(1)  # noqa: S311 - no secret
    words = [*["walk", "talk", "tree", "stone"] * 300]
    words += [f"{one}{two}ling" for one in "bcdfg" for two in "aeiou"] * 4
    words += [f"{one}{two}ness" for one in "bcdfg" for two in "aeiou"]
    chance.shuffle(words)
    lines = [" ".join(words[at : at + 7]) for at in range(0, len(words), 7)]
    folder = tmp_path_factory.mktemp("corpus")
    text = write_lines(folder / "text.txt", lines)
    corpus = build_corpus(
        str(text), folder / "built", tokenizer="wikitext", min_count=KEPT, split=(0.8, 0.1, 0.1)
    )
    # What the vocabulary counts and what was left out is the whole split.
    counts = Counter(dict(zip(corpus.vocabulary.words, corpus.vocabulary.counts, strict=True)))
    for line in (corpus.path / DROPPED).read_text(encoding="utf-8").splitlines():
        count, word = line.split("\t")
        counts[word] = int(count)
    assert sum(counts.values()) - counts[UNK] == corpus.tokens("train")
    return corpus, counts


@pytest.mark.parametrize("most", [2, 3, 4])
def test_it_learns_from_rare_words_and_those_left_out(
    built: tuple[Corpus, Counter[str]], most: int
) -> None:
    corpus, counts = built
    rare = {word for word, n in counts.items() if n <= most} - {UNK, EOS}
    assert {word for word in rare if counts[word] < KEPT} == set(left_out(corpus)) != set()
    assert any(word.endswith("ling") for word in rare)
    assert not {"walk", "talk", "tree", "stone"} & rare
    known = [word for word in corpus.vocabulary.words if word != UNK]
    found = spelling_of(corpus, SpellingConfig(order=4, max_count=most), 20_000)
    assert found.data == estimate(rare, known, order=4, budget=1000).data


def test_it_has_a_share_of_the_file_at_most(built: tuple[Corpus, Counter[str]]) -> None:
    corpus, _ = built
    for budget in (0.01, 0.03, 0.05):
        size = len(spelling_of(corpus, SpellingConfig(budget=budget), 9_000).data)
        assert 0.8 * budget * 9_000 < size <= budget * 9_000
    with pytest.raises(ValidationError, match=r"less than or equal to 0\.05"):
        SpellingConfig(budget=0.051)


def test_a_corpus_without_rare_words_gives_those_that_it_has(tmp_path: Path) -> None:
    text = write_lines(tmp_path / "text.txt", ["walk talk tree stone"] * 60)
    corpus = build_corpus(
        str(text), tmp_path / "built", tokenizer="wikitext", split=(0.8, 0.1, 0.1)
    )
    assert left_out(corpus) == []
    found = spelling_of(corpus, SpellingConfig(), 20_000)
    assert found.log_probability("walks") > found.log_probability("skwla")
    (corpus.path / DROPPED).write_bytes(b"1\t\xff\n")
    with pytest.raises(CorpusError, match="does not match its manifest"):
        left_out(corpus)
    older = replace(corpus, manifest=replace(corpus.manifest, dropped=None))  # without its hash
    with pytest.raises(CorpusError, match="is not UTF-8: build the corpus again"):
        left_out(older)
