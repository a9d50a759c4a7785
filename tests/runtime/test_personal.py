"""A personal memory: what it learns and forgets, to the byte, and who may read it."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.support.engines import CACHED, INTEGERS, Opener
from tests.support.shapes import SMALL

from micronet_lm.artifact.random_model import random_model
from micronet_lm.errors import PersonalError
from micronet_lm.runtime.model import LM
from micronet_lm.runtime.personal import Personal
from micronet_lm.runtime.personal_file import LONGEST_WORD, MOST_WORDS

TEXT = "the frobnicator a1 the b1 Frobnicator c1 d1 zorblax, the zorblax\n"


@pytest.fixture(params=[CACHED, INTEGERS], ids=["floats", "integers"])
def lm(request: pytest.FixtureRequest, open_model: Opener) -> LM:
    choice = replace(request.param, tokenizer="word-2", lam=0.3, theta=0.03125, cache=40)
    return LM(open_model(random_model(SMALL, choice)))


@pytest.fixture
def personal(lm: LM, tmp_path: Path) -> Personal:
    return lm.personal(tmp_path / "me.personal")


def offered(lm: LM, personal: Personal, prefix: str) -> list[str]:
    return [word for word, _ in lm.suggest(f"the {prefix}", 5, personal=personal)]


def test_it_learns_words_and_suggests_them_in_new_texts(lm: LM, personal: Personal) -> None:
    assert not personal.path.exists()
    assert offered(lm, personal, "frob") == []
    assert personal.learn(TEXT) == len(lm.encoder.tokens(TEXT))
    assert personal.words() == {"zorblax": 2, "Frobnicator": 1, "frobnicator": 1}
    assert offered(lm, personal, "zorb") == ["zorblax"]
    assert "frobnicator" in offered(lm, personal, "frob")
    assert "zorblax" in [word for word, _ in lm.suggest("the zorbalx", 3, personal=personal)]
    assert offered(lm, lm.personal(personal.path), "zorb") == ["zorblax"]  # read from the file
    assert lm.suggest("the zorb", 5) == []
    state = lm.start(personal)
    state.feed("the ")
    chance = state.logprob("zorblax")
    personal.learn("the zorblax\n" * 3)
    assert state.logprob("zorblax") > chance  # an open text sees what was learned since


def test_the_file_is_private_bounded_and_appears_by_rename(lm: LM, personal: Personal) -> None:
    personal.learn(TEXT)
    assert personal.path.stat().st_mode & 0o777 == 0o600
    first = personal.path.stat().st_ino
    words = " ".join(f"qux{number}" for number in range(MOST_WORDS + 50))
    personal.learn(f"{words} zorblax {'x' * (LONGEST_WORD + 1)}\n")
    assert personal.path.stat().st_ino != first
    assert len(personal.words()) == MOST_WORDS
    assert personal.words()["zorblax"] == 3  # the rarest and oldest go first
    assert "qux0" not in personal.words()
    assert personal.states <= 40
    assert b"x" * LONGEST_WORD not in personal.path.read_bytes()
    assert personal.path.stat().st_size <= personal._frame.most_bytes
    assert not [*personal.path.parent.glob("*.tmp"), *personal.path.parent.glob(".*.tmp")]
    personal.path.chmod(0o640)
    with pytest.raises(PersonalError, match="can be read or changed by others"):
        lm.personal(personal.path)


def test_after_forgetting_no_byte_depends_on_the_word(lm: LM, tmp_path: Path) -> None:
    left = []
    for word in ("frobnicator", "quibblesnark"):
        personal = lm.personal(tmp_path / f"{word}.personal")
        text = TEXT.replace("frobnicator", word).replace("Frobnicator", word.capitalize())
        personal.learn(text)
        assert word.encode() in personal.path.read_bytes()
        assert personal.forget(word)
        assert not personal.forget(word)
        data = personal.path.read_bytes()
        assert word.encode() not in data.lower()
        assert word.capitalize() not in personal.words()
        assert offered(lm, personal, word[:4]) == []
        assert offered(lm, lm.personal(personal.path), word[:4]) == []
        left.append(data)
    # Counts, states, ids and their order: nothing tells which word it was.
    assert left[0] == left[1]
    personal.learn("the quibblesnark\n")
    assert "quibblesnark" in offered(lm, personal, "quib")  # typed again


def test_what_a_killed_process_left_is_removed(
    lm: LM, personal: Personal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(self: Path, target: Path) -> None:
        self.with_suffix(".kept").write_bytes(self.read_bytes())
        raise KeyboardInterrupt

    personal.learn("the a1\n")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            personal.learn(TEXT)
    (kept,) = tmp_path.glob("*.kept")  # as it would be if nobody could have removed it
    left = kept.rename(kept.with_suffix(".tmp"))
    assert b"frobnicator" in left.read_bytes()
    others = [tmp_path / name for name in (".me.personal.tmp", ".me.personal.mine.tmp", "me.tmp")]
    for other in others:
        other.write_bytes(b"mine")
    personal.forget("frobnicator")
    assert not any(b"frob" in path.read_bytes().lower() for path in tmp_path.iterdir())
    assert not left.exists()
    assert all(other.exists() for other in others)


def test_a_word_of_the_vocabulary_is_forgotten_with_what_read_it(lm: LM, tmp_path: Path) -> None:
    personal = lm.personal(tmp_path / "me.personal")
    word = "é"
    number = lm.engine.find(word)
    personal.learn(f"a1 zorblax {word} zorblax b1 the\n")
    assert number in personal._memories.following
    assert personal.forget(word)
    assert number not in personal._memories.following
    # The states after it have read it: only those before it remain.
    assert personal.states <= 2


def test_an_open_text_forgets_at_once(lm: LM, personal: Personal) -> None:
    state = lm.start(personal)
    state.feed("the frobnicator a1 the frobnicator a1 the frob")
    assert [word for word, _ in state.suggest(3)] == ["frobnicator"]
    personal.learn("the frobnicator\n")
    personal.forget("frobnicator")
    assert state.suggest(3) == []
    assert b"frobnicator" not in state.save()
    state.feed("nicator a1 frobnicator a1 the frob")  # typed again
    assert [word for word, _ in state.suggest(3)] == ["frobnicator"]


def test_incognito_reads_without_learning(lm: LM, personal: Personal) -> None:
    personal.learn(TEXT)
    data = personal.path.read_bytes()
    quiet = lm.personal(personal.path, incognito=True)
    assert quiet.learn("the quibblesnark\n") == 0
    assert offered(lm, quiet, "zorb") == ["zorblax"]
    assert offered(lm, quiet, "quib") == []
    assert personal.path.read_bytes() == data


def test_clear_export_and_merge(lm: LM, personal: Personal, tmp_path: Path) -> None:
    personal.learn(TEXT)
    told = personal.export()
    other = lm.personal(tmp_path / "other.personal")
    other.learn("a1 zorblax b1 a1 gizmotron\n")
    assert other.merge(told) == 3
    assert other.words() == {"zorblax": 3, "Frobnicator": 1, "frobnicator": 1, "gizmotron": 1}
    states = other.states
    assert other.merge(personal) == 3
    assert other.words()["zorblax"] == 5
    assert other.states == min(40, states + personal.states)
    personal.clear()
    assert personal.words() == {}
    assert personal.states == 0
    assert b"zorblax" not in personal.path.read_bytes()
    assert offered(lm, personal, "zorb") == []
    for wrong in ("", "[]", '{"micronet_words": 2, "words": {}}', '{"words": {"a": 1}}'):
        with pytest.raises(PersonalError, match="not exported words"):
            personal.merge(wrong)
    with pytest.raises(PersonalError, match="not exported words"):  # the second count was taken
        personal.merge('{"micronet_words": 1, "words": {"a": 1, "a": 2}}')


def test_another_model_is_refused_and_words_are_carried_over(
    lm: LM, personal: Personal, open_model: Opener, tmp_path: Path
) -> None:
    personal.learn(TEXT)
    told = personal.export()
    folder = tmp_path / "second"
    folder.mkdir()
    second = LM(open_model(random_model(SMALL, replace(CACHED, seed=9, tokenizer="word-2"))))
    with pytest.raises(PersonalError, match=r"belongs to another model: .*'export' and 'merge'"):
        second.personal(personal.path)
    new = second.personal(folder / "me.personal")
    assert new.merge(told) == 3
    assert offered(second, new, "zorb") == ["zorblax"]
    without = LM(open_model(random_model(SMALL, replace(CACHED, cache=0, tokenizer="word-2"))))
    with pytest.raises(PersonalError, match="has no cache"):
        without.personal(tmp_path / "none.personal")


def test_changes_by_another_process_are_seen_and_not_undone(lm: LM, personal: Personal) -> None:
    personal.learn(TEXT)
    other = lm.personal(personal.path)
    state = lm.start(personal)
    state.feed("the zorb")
    assert [word for word, _ in state.suggest(3)] == ["zorblax"]
    personal.learn("the quibblesnark\n", save=False)
    other.forget("zorblax")  # as another process would
    assert state.suggest(3) == []
    assert "zorblax" not in personal.words()
    personal.save()
    assert b"zorblax" not in personal.path.read_bytes()
    assert set(other.words()) == {"Frobnicator", "frobnicator", "quibblesnark"}


def test_a_memory_that_another_process_holds(
    lm: LM, personal: Personal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("micronet_lm.runtime.personal.PATIENCE", 0.05)
    code = (
        "import fcntl, os, sys; handle = os.open(sys.argv[1], os.O_RDONLY); "
        "fcntl.flock(handle, fcntl.LOCK_EX); print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(personal.path.parent)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(PersonalError, match="being changed by another process"):
            personal.learn(TEXT)
        holder.communicate(timeout=30)
    assert personal.learn(TEXT)


def test_probabilities_with_a_memory_sum_to_one(lm: LM, personal: Personal) -> None:
    personal.learn(TEXT * 30)
    state = lm.start(personal)
    state.feed("the a1 b1 quibblesnark c1 the ")
    words = ["quibblesnark", *personal.words()]
    new = sum(np.exp(state.logprob(word)) for word in words)
    assert new > 0.05
    assert state.distribution().sum() + new == pytest.approx(1, abs=1e-4)


def test_a_device_is_refused_without_advice_to_change_it(lm: LM) -> None:
    with pytest.raises(PersonalError, match="/dev/full is not a regular file"):
        lm.personal("/dev/full").learn("the cat")
