"""What a text teaches a personal memory, and how memories change: pure functions."""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from micronet_lm.runtime.personal_file import MOST_TIMES, MOST_WORDS, Frame, Memories


@dataclass(frozen=True, kw_only=True, eq=False)
class Lesson:
    """The new words of a text, and its last states."""

    counts: dict[str, int]
    """Words outside the vocabulary; the one that was read last is last."""
    following: list[int | str]
    """The word after each state: an id of the vocabulary, or a new word."""
    states: NDArray[np.float16]


def learned(memories: Memories, lesson: Lesson, frame: Frame) -> Memories:
    """Return memories after a lesson: the newest states, the words that are used most."""
    counts = dict(zip(memories.words, memories.counts, strict=True))
    for word, times in lesson.counts.items():
        counts[word] = min(MOST_TIMES, counts.pop(word, 0) + times)
    labels = [*_labels(memories, frame), *lesson.following][-frame.states :]
    states = np.concatenate([memories.states, lesson.states])[-frame.states :]
    return _kept(counts, labels, states, frame)


def without(
    memories: Memories, words: Collection[str], ids: Collection[int], reach: int, frame: Frame
) -> Memories:
    """Return memories without these new words, and without these words of the vocabulary.

    The network reads every new word as `<unk>`, so no state depends on which one it was: only the
    states before it go. A word of the vocabulary is in the `reach` states after it, too.
    """
    counts = dict(zip(memories.words, memories.counts, strict=True))
    gone = set(words)
    labels = _labels(memories, frame)
    stays = np.ones(len(labels), bool)
    for place, label in enumerate(labels):
        if label in gone:
            stays[place] = False
        elif label in ids:
            stays[place : place + 1 + reach] = False
    return _kept(
        {word: times for word, times in counts.items() if word not in gone},
        [label for label, stay in zip(labels, stays.tolist(), strict=True) if stay],
        memories.states[stays],
        frame,
    )


def _labels(memories: Memories, frame: Frame) -> list[int | str]:
    known = frame.vocabulary
    return [n if n < known else memories.words[n - known] for n in memories.following.tolist()]


def _kept(
    counts: dict[str, int], labels: list[int | str], states: NDArray[np.float16], frame: Frame
) -> Memories:
    """Put memories together; of too many words the rarest go, of these the oldest."""
    if len(counts) > MOST_WORDS:
        oldest = {word: place for place, word in enumerate(counts)}
        rarest = sorted(counts, key=lambda word: (counts[word], oldest[word]))
        for word in rarest[: len(counts) - MOST_WORDS]:
            del counts[word]
    numbers = {word: frame.vocabulary + n for n, word in enumerate(counts)}
    following = [n if isinstance(n, int) else numbers.get(n, -1) for n in labels]
    stays = np.array([number >= 0 for number in following], bool)
    return Memories(
        words=tuple(counts),
        counts=tuple(counts.values()),
        following=np.array(following, np.int32)[stays],
        states=np.ascontiguousarray(states[stays]),
    )


def counted(words: list[str]) -> dict[str, int]:
    """Count words; the one that was read last is last."""
    times = Counter(words)
    return {word: times[word] for word in reversed(list(dict.fromkeys(reversed(words))))}
