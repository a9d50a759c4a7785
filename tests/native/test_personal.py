"""A personal memory through the C API: the same file, byte for byte, as Python's."""

import json
import random
import stat
from pathlib import Path
from typing import Any

import pytest

import micronet_lm as mn
from micronet_lm.checksum import checksum
from micronet_lm.errors import ArtifactError, InferenceError, MicronetError

FIRST = (
    "Ask Zorblax about the frobnicator. Zorblax, x2 and the ﬁxed naïve straße.\nThe (wibble) end."
)
SECOND = "The frobnicator is Zorblax's; return a new list, and a WIBBLE.\n" * 3


@pytest.fixture(scope="module")
def lm() -> mn.LM:
    return mn.load(engine="native")


@pytest.fixture
def both(lm: mn.LM, tmp_path: Path) -> tuple[Any, Any, Path, Path]:
    """Two memories: Python's own, and one of the C API."""
    one, other = tmp_path / "python", tmp_path / "c"
    engine: Any = lm.engine
    return lm.personal(one), engine._engine.memory(str(other)), one, other


def test_files_are_the_same(both: tuple[Any, Any, Path, Path]) -> None:
    python, c, one, other = both
    for text in ("", FIRST, SECOND, "Return a new list.", "   \n"):
        assert c.learn(text) == python.learn(text)
        if one.exists():
            assert other.read_bytes() == one.read_bytes()
            assert stat.S_IMODE(other.stat().st_mode) == 0o600
    assert {word: int(count) for word, count in c.words()} == python.words()
    assert [word for word, _ in c.words()] == list(python.words())
    # New words, one that is not there, one of the vocabulary, capitals.
    for word in ("frobnicator", "nothing-like-it", "list", "WIBBLE", "STRASSE"):
        assert c.forget(word) == python.forget(word), word
        assert other.read_bytes() == one.read_bytes(), word
    assert b"frobnicator" not in other.read_bytes()
    assert {path.name for path in other.parent.iterdir()} == {"python", "c"}
    python.clear()
    c.clear()
    assert other.read_bytes() == one.read_bytes()


def test_long_texts_keep_the_newest_states_and_the_words_used_most(
    both: tuple[Any, Any, Path, Path],
) -> None:
    python, c, one, other = both
    for begin in (0, 3000):
        new = " ".join(f"word{n:05d}x" for n in range(begin, begin + 3000))
        text = f"{new} {new[: len(new) // 4]} "
        assert c.learn(text) == python.learn(text)
    assert other.read_bytes() == one.read_bytes()
    assert len(c.words()) == 4096


def test_words_are_carried_over(both: tuple[Any, Any, Path, Path]) -> None:
    python, c, one, other = both
    words = {"Zorblax": 3, "the": 5, "two words": 1, "￭x": 2, "frobnicator": 2**32 - 1, "Quux": 1}
    c.merge(list(words), list(words.values()))
    python.merge(json.dumps({"micronet_words": 1, "words": words}))
    assert other.read_bytes() == one.read_bytes()


def test_each_reads_what_the_other_wrote_and_texts_recall_it(
    lm: mn.LM, both: tuple[Any, Any, Path, Path]
) -> None:
    _, c, _, other = both
    engine: Any = lm.engine
    c.learn(FIRST)
    mine = lm.personal(other)
    assert "Zorblax" in mine.words()
    text = engine._engine.text()
    text.recall(str(other))
    text.feed("Ask Zor")
    found, replaces = text.suggest(3)
    expected = lm.suggest("Ask Zor", 3, mine)
    assert (list(map(tuple, found)), replaces) == (list(map(tuple, expected)), expected.replaces)
    assert found[0][0] == "Zorblax"
    c.forget("Zorblax")
    assert "Zorblax" not in mine.words()
    text.forget("zorblax")
    text.recall(str(other))
    assert "Zorblax" not in dict(text.suggest(9)[0])


def test_mutated_files_are_accepted_or_refused_by_both(lm: mn.LM, tmp_path: Path) -> None:
    """Their beginning and checksum are right: what is inside decides."""
    engine: Any = lm.engine
    path = tmp_path / "me"
    lm.personal(path).learn(FIRST)
    chance, body = random.Random(1), path.read_bytes()[:-8]  # noqa: S311
    begin, end = 24, body.index(b"Zorblax") + 40  # after this, almost any bytes are states
    agreed = {True: 0, False: 0}
    for _ in range(300):
        spoiled = bytearray(body)
        for place in chance.choices(range(begin, end), k=chance.randint(1, 3)):
            spoiled[place] = chance.choice(
                [0, 1, 10, 128, 255, spoiled[place] ^ 1, spoiled[place] + 1]
            )
        path.write_bytes(spoiled + int(checksum(bytes(spoiled)), 16).to_bytes(8, "little"))
        found = []
        for read in (lambda: lm.personal(path).words(), lambda: engine._engine.memory(str(path))):
            try:
                read()
                found.append(True)
            except MicronetError:
                found.append(False)
        assert found[0] == found[1], spoiled
        agreed[found[0]] += 1
    assert min(agreed.values()) > 0


def test_files_that_are_refused(lm: mn.LM, tmp_path: Path) -> None:
    engine: Any = lm.engine
    path = tmp_path / "me"
    lm.personal(path).learn(FIRST)
    good = path.read_bytes()
    for spoiled in (b"", good[:-1], good[:40], good[:30] + b"\xff" + good[31:], b"x" * len(good)):
        path.write_bytes(spoiled)
        with pytest.raises(MicronetError, match=r"^[^\n]+$") as refused:
            engine._engine.memory(str(path))
        assert str(path) in str(refused.value)
    path.write_bytes(good)
    path.chmod(0o644)
    with pytest.raises(MicronetError, match="can be read or changed by others"):
        engine._engine.memory(str(path))
    with pytest.raises(MicronetError, match="not a regular file"):
        engine._engine.memory(str(tmp_path))
    with pytest.raises((ArtifactError, InferenceError), match="folder that cannot be opened"):
        engine._engine.memory(str(tmp_path / "no" / "me")).learn("x")
