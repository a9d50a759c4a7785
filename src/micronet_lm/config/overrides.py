"""Dotted overrides on the command line: `--model.context 129` or `--model.context=129`."""

from collections.abc import Sequence
from typing import Any

from micronet_lm.config.strict_yaml import read_yaml
from micronet_lm.errors import ConfigError


def split_overrides(words: Sequence[str]) -> tuple[list[str], dict[str, Any]]:
    """Return a command line's other words, and its overrides as keys with values.

    A value is read as YAML: `3500,25000` and `[3500, 25000]` are lists, `1e-3` is a number, `none`
    and `null` are None.
    """
    others: list[str] = []
    overrides: dict[str, Any] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        key, equals, text = word.removeprefix("--").partition("=")
        if not word.startswith("--") or "." not in key:
            others.append(word)
            continue
        if not equals:
            if not rest:
                raise ConfigError(f"--{key} needs a value")
            text = rest.pop(0)
        overrides[key] = _value(text)
    return others, overrides


def _value(text: str) -> Any:
    if text.lower() == "none":
        return None
    if "," in text and not text.startswith("["):
        text = f"[{text}]"
    try:
        return read_yaml(text)
    except ConfigError:  # a pattern such as `*.txt`, a folder with the name of a date
        return text
