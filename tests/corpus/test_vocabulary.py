from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from micronet_lm.corpus import Vocabulary
from micronet_lm.errors import CorpusError, UsageError

COUNTS = Counter(
    {"the": 9, "cat": 4, "bat": 4, "sat": 3, "on": 2, "mat": 1, "<eos>": 4, "<unk>": 1}
)
words = st.text(min_size=1).filter(lambda word: "\n" not in word)


def test_words_come_by_decreasing_count_then_by_text() -> None:
    vocabulary = Vocabulary.from_counts(COUNTS)
    assert vocabulary.words == ("the", "<eos>", "bat", "cat", "sat", "on", "<unk>", "mat")
    assert vocabulary.counts == (9, 4, 4, 4, 3, 2, 1, 1)
    assert vocabulary.size == len(vocabulary) == 8


def test_rare_words_become_unknown_and_lift_its_rank() -> None:
    vocabulary = Vocabulary.from_counts(COUNTS, min_count=4)
    assert vocabulary.words == ("the", "<unk>", "<eos>", "bat", "cat")
    assert vocabulary.counts == (9, 1 + 3 + 2 + 1, 4, 4, 4)
    assert vocabulary.id("mat") == vocabulary.id("never seen") == vocabulary.id("<unk>") == 1


def test_max_vocabulary_counts_every_entry() -> None:
    vocabulary = Vocabulary.from_counts(COUNTS, max_vocabulary=4)
    assert vocabulary.words == ("<unk>", "the", "<eos>", "bat")
    assert sum(vocabulary.counts) == COUNTS.total()
    both = Vocabulary.from_counts(COUNTS, max_vocabulary=7, min_count=3)
    assert set(both.words) == {"the", "cat", "bat", "sat", "<unk>", "<eos>"}


@given(st.dictionaries(words, st.integers(1, 50)), st.integers(1, 5), st.integers(3, 20))
def test_nothing_gets_lost(counts: dict[str, int], min_count: int, most: int) -> None:
    vocabulary = Vocabulary.from_counts(counts, min_count=min_count, max_vocabulary=most)
    assert sum(vocabulary.counts) == sum(counts.values())
    assert vocabulary.size <= most
    assert {"<unk>", "<eos>"} <= set(vocabulary.words)
    ranked = [
        (-count, word) for word, count in zip(vocabulary.words, vocabulary.counts, strict=True)
    ]
    assert ranked == sorted(ranked)


def test_special_words_are_there_without_an_occurrence() -> None:
    assert Vocabulary.from_counts({"a": 2}).words == ("a", "<eos>", "<unk>")


def test_encode_and_decode() -> None:
    vocabulary = Vocabulary.from_counts(COUNTS)
    ids = vocabulary.encode(["the", "cat", "flew", "<eos>"])
    assert ids.tolist() == [0, 3, 6, 1]
    assert ids.dtype == np.uint8
    assert vocabulary.decode(ids) == ["the", "cat", "<unk>", "<eos>"]
    assert vocabulary.decode([]) == []
    assert vocabulary.encode([]).tolist() == []
    assert vocabulary.word(3) == "cat"


@pytest.mark.parametrize(("size", "dtype"), [(256, "uint8"), (257, "uint16"), (65537, "uint32")])
def test_ids_are_as_small_as_the_vocabulary_allows(size: int, dtype: str) -> None:
    vocabulary = Vocabulary.from_counts({f"w{n}": 1 for n in range(size - 2)})
    assert vocabulary.size == size
    assert vocabulary.encode([vocabulary.words[-1]]).tolist() == [size - 1]
    assert str(vocabulary.dtype) == dtype


@pytest.mark.parametrize("index", [-1, 8, 2**40])
def test_ids_out_of_range_are_refused(index: int) -> None:
    vocabulary = Vocabulary.from_counts(COUNTS)
    with pytest.raises(CorpusError, match=f"token id {index} .* 8 words: choose ids from 0 to 7"):
        vocabulary.decode([0, index, 1])
    with pytest.raises(CorpusError, match=f"token id {index}"):
        vocabulary.word(index)


def test_ids_are_whole_numbers() -> None:
    with pytest.raises(CorpusError, match="must be integers, got float64"):
        Vocabulary.from_counts(COUNTS).decode([0.5])


def test_limits_that_make_no_sense() -> None:
    with pytest.raises(UsageError, match=r"max_vocabulary must be at least 3 .* got 2"):
        Vocabulary.from_counts(COUNTS, max_vocabulary=2)
    with pytest.raises(UsageError, match="min_count must be at least 1, got 0"):
        Vocabulary.from_counts(COUNTS, min_count=0)


@given(st.dictionaries(words, st.integers(1, 9)))
def test_saved_and_loaded_is_the_same(
    tmp_path_factory: pytest.TempPathFactory, counts: dict[str, int]
) -> None:
    path = tmp_path_factory.getbasetemp() / "vocabulary.tsv"
    vocabulary = Vocabulary.from_counts(counts)
    vocabulary.save(path)
    assert Vocabulary.load(path) == vocabulary


def test_the_file_is_counts_and_words(tmp_path: Path) -> None:
    Vocabulary.from_counts({"é": 2, "\r\t": 1}).save(tmp_path / "v")
    assert (tmp_path / "v").read_bytes() == b"2\t\xc3\xa9\n1\t\r\t\n0\t<eos>\n0\t<unk>\n"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "cut off"),
        (b"2\ta\n0\t<eos>\n0\t<unk>", "cut off"),
        (b"2 a\n0\t<eos>\n0\t<unk>\n", "line 1 is not a count"),
        (b"2\ta\n-1\t<eos>\n0\t<unk>\n", "line 2 is not a count"),
        (b"1\t<eos>\n2\ta\n0\t<unk>\n", "do not decrease"),
        (b"2\ta\n2\ta\n0\t<eos>\n0\t<unk>\n", "'a' twice"),
        (b"2\ta\n0\t<eos>\n", "lacks '<unk>'"),
        (b"2\t\n0\t<eos>\n0\t<unk>\n", "not be empty"),
        (b"2\t\xff\n0\t<eos>\n0\t<unk>\n", "byte 2 is not UTF-8"),
    ],
)
def test_damaged_files_are_refused(tmp_path: Path, data: bytes, why: str) -> None:
    (tmp_path / "v").write_bytes(data)
    with pytest.raises(CorpusError, match=f"v is damaged .*{why}.*build the corpus again"):
        Vocabulary.load(tmp_path / "v")


@pytest.mark.parametrize("word", ["", "a\nb", "\ud800"])
def test_words_that_no_file_could_hold(word: str) -> None:
    with pytest.raises(CorpusError, match="cannot be"):
        Vocabulary((word, "<unk>", "<eos>"), (1, 0, 0))
