"""The reference of all recipe keys, from the docstring of each field."""

from typing import Any

from micronet_lm.config.section import Section
from micronet_lm.config.sections import Recipe, section_type


def describe_keys() -> str:
    """Return all keys with their defaults and meanings, by section."""
    lines = []
    for section, field in Recipe.model_fields.items():
        kind = section_type(field.annotation)
        assert kind is not None  # noqa: S101
        if field.default is None:
            lines.append(f"  {section}: {kind.__doc__} Naming a key switches it on.")
        lines += _lines(section, kind)
    return "\n".join(lines)


def _lines(lead: str, kind: type[Section]) -> list[str]:
    lines = []
    for key, leaf in kind.model_fields.items():
        inner = section_type(leaf.annotation)
        if inner is not None:
            keys = ", ".join(inner.model_fields)
            lines.append(f"  --{lead}.{key}.KEY\n      {leaf.description} KEY is {keys}.")
            continue
        default = leaf.default
        shown = "" if default is None else f" (default {_plain(default)})"
        lines.append(f"  --{lead}.{key}{shown}\n      {leaf.description}")
    return lines


def _plain(value: Any) -> str:
    return ",".join(map(str, value)) or "none" if isinstance(value, tuple) else str(value)
