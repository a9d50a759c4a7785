"""YAML from outside: plain values within limits, or one sentence."""

import pickle
from pathlib import Path
from typing import Any

import pytest

from micronet_lm.config import load_recipe, split_overrides
from micronet_lm.config.strict_yaml import DEEPEST, LARGEST_TEXT, read_yaml
from micronet_lm.errors import ConfigError

BOMB = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 9)
)
"""380 bytes that describe 9 to the 9th values."""

REFUSED = {
    "aliases": (BOMB, "line 1 has the anchor or alias 'a0'"),
    "a key twice": ("model:\n  width: 1\n  width: 2\n", "line 3 has the key 'width' twice"),
    "a date": ("model: 2001-01-01\n", "line 1 has the date 2001-01-01"),
    "a tag": ("model: !!python/object:os.system 1\n", "line 1 has the tag or sign"),
    "a set": ("model: !!set {a}\n", "line 1 has the tag or sign 'set'"),
    "a merge": ("<<: {a: 1}\n", "line 1 has the tag or sign 'merge'"),
    "a list as key": ("? [1]\n: 2\n", "line 1 has a key that is a list"),
    "infinity": ("model: .inf\n", "which is not finite"),
    "too large": ("model: 1e999\n", "the number 1e999, which is not finite"),
    "a huge integer": ("model: " + "9" * 5000, "a number of 5,000 characters"),
    "too deep": ("a: " + "[" * (DEEPEST + 1), f"more than {DEEPEST} deep"),
    "too long": ("#" * (LARGEST_TEXT + 1), "1,048,577 characters"),
    "two documents": ("a: 1\n---\nb: 2\n", "not valid YAML"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_harm_is_refused_in_a_sentence(name: str) -> None:
    text, sentence = REFUSED[name]
    with pytest.raises(ConfigError) as caught:
        read_yaml(text)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_plain_values_are_read_as_people_write_them() -> None:
    text = "{a: 1e-3, b: -1E5, c: 1.5e+3, d: 010, e: 12, f: yes, g: '2001-01-01', h: ~, i: 1_000}"
    expected: dict[str, Any] = {"a": 1e-3, "b": -1e5, "c": 1500.0, "d": 8, "e": 12, "f": True}
    assert read_yaml(text) == {**expected, "g": "2001-01-01", "h": None, "i": 1000}
    assert isinstance(read_yaml("1e-3"), float)


def test_a_recipe_may_say_1e_3(tmp_path: Path) -> None:
    """YAML 1.1 reads it as text, which was refused as not a number."""
    file = tmp_path / "mine.yaml"
    file.write_text("base: demo\ntrain: {learning_rate: 1e-3}\n")
    assert load_recipe(str(file)).train.learning_rate == 0.001


def test_a_recipe_names_its_file_in_the_sentence(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(BOMB)
    with pytest.raises(ConfigError, match=r"mine\.yaml: line 1 has the anchor"):
        load_recipe(str(file))


def test_overrides_that_are_not_plain_yaml_are_text() -> None:
    """A pattern begins like an alias, a folder may be named like a date."""
    _, found = split_overrides(["--corpus.source", "*.txt", "--corpus.other=2001-01-01"])
    assert found == {"corpus.source": "*.txt", "corpus.other": "2001-01-01"}


def test_random_bytes_never_escape() -> None:
    noise = pickle.dumps([BOMB, REFUSED])
    for start in range(0, len(noise), 37):
        try:
            read_yaml(noise[start : start + 60].decode("latin-1"))
        except ConfigError as error:
            assert "\n" not in str(error)
