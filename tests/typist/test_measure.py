"""Keystroke savings against texts counted by hand."""

from collections.abc import Sequence

import pytest

from micronet_lm.errors import InferenceError
from micronet_lm.runtime.model import load
from micronet_lm.typist import ModelKeyboard, Strokes, measure


class Fixed:
    """Suggests words of a list that begin like the one that is typed, in the list's order."""

    def __init__(self, *words: str) -> None:
        self.words, self.text = words, ""

    def read(self, text: str) -> None:
        self.text += text

    def suggest(self, k: int) -> Sequence[str]:
        typed = self.text.replace("\n", " ").rpartition(" ")[2]
        return [word for word in self.words if word.startswith(typed)][:k]

    def knows(self, word: str) -> bool:
        return word in self.words


def test_a_pick_takes_one_keystroke_and_gives_the_space() -> None:
    # "the" is shown at once: 1. The space comes with it: 0. "tree": typed t, shown second: 2.
    found = measure(Fixed("the", "tree"), "the tree", slots=2)
    assert (found.characters, found.keystrokes) == (8, 2)
    # With one slot "tree" is shown after "tr": 3 keystrokes.
    found = measure(Fixed("the", "tree"), "the tree", slots=1)
    assert (found.characters, found.keystrokes) == (8, 1 + 3)
    assert found.savings == pytest.approx(50)


def test_what_is_not_suggested_is_typed() -> None:
    keyboard = Fixed("the", "tree")
    found = measure(keyboard, "oak, the\nTree", slots=3)
    assert keyboard.text == "oak, the\nTree"  # it has read everything once, in order
    # o, a, k, comma, space, one pick, the line's end, T, r, e, e.
    assert (found.characters, found.keystrokes) == (13, 3 + 1 + 1 + 1 + 1 + 4)
    assert found.words == 3
    assert found.unknown == pytest.approx(200 / 3)
    assert found.top_1 == pytest.approx(100 / 3)


def test_recall_looks_at_three_suggestions_however_many_slots() -> None:
    keyboard = Fixed("a", "b", "c", "d")
    found = measure(keyboard, "a b c d", slots=1)
    assert (found.top_1, found.top_3) == (25, 75)
    assert found.latency["p50"] <= found.latency["p95"] <= found.latency["p99"]


def test_a_word_shown_only_when_it_is_whole_saves_nothing() -> None:
    strokes = Strokes()
    strokes.word(3, None)
    strokes.space()
    strokes.word(3, 2)
    strokes.space()
    strokes.leave_out()
    strokes.space()
    assert (strokes.characters, strokes.keystrokes) == (9, 3 + 1 + 3 + 0 + 1)


def test_a_text_without_words_is_refused() -> None:
    with pytest.raises(InferenceError, match="no word"):
        measure(Fixed("a"), "... !\n")
    with pytest.raises(InferenceError, match="slots must be 1 or more, got 0"):
        measure(Fixed("a"), "a", slots=0)


def test_the_shipped_model_saves_keystrokes_and_forgets_lines_only_when_told() -> None:
    lm = load("demo")
    text = "Return True if the file exists.\nReturn the name of the frobnicator.\n"
    found = [measure(ModelKeyboard(lm, learning=choice), text) for choice in (False, True)]
    for one in found:
        assert one.characters == len(text)
        assert one.savings > 30
        assert one.unknown == pytest.approx(100 / 12)
    keyboards = [ModelKeyboard(lm, learning=choice) for choice in (False, True)]
    for keyboard in keyboards:
        keyboard.read("Return True if the file exists.\n")
    fresh = ModelKeyboard(lm)
    assert keyboards[0].suggest(5) == fresh.suggest(5)
    assert keyboards[1].suggest(5) != fresh.suggest(5)
