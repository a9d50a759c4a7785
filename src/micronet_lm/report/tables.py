"""The paper's tables: their printed numbers, and the recipes of our own."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Literal

from micronet_lm.errors import ConfigError, UsageError

SCALES = ("paper", "wikitext-2", "demo")
"""Scales in the order in which the data file lists recipes."""

CACHE_FIGURES: dict[str, Literal["tokens", "gaps"]] = {
    "cache-tokens": "tokens",
    "cache-gaps": "gaps",
}
"""The figures of section 5.2, and what they sort tokens by."""


@dataclass(frozen=True, kw_only=True)
class Column:
    """One quantity of a table."""

    key: str
    title: str
    computed: str | None = None
    """Quantity counted from the paper's recipe, without training."""
    measured: str | None = None
    """Key of our own number: `stage.key`, or `key` of the row's stage."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One model of a table."""

    label: str
    printed: Mapping[str, str]
    """The paper's text, by column."""
    recipes: Mapping[str, Mapping[str, str]]
    """Preset by column and scale; a missing column has none."""
    stage: str | None = None
    """The row's stage, if the recipe has several."""
    kind: str = ""
    """Colour of the pipeline figure."""
    stack: str | None = None
    """Title of the stack of the pipeline figure that begins with this row."""
    seeds: int = 1
    """Number of seeds that it is measured with at scale wikitext-2."""
    compared: bool = False
    """Whether the cache figures compare this row's model."""

    def recipe(self, column: Column, scale: str) -> str | None:
        """Return the preset of a cell's number."""
        return self.recipes.get(column.key, {}).get(scale)


@dataclass(frozen=True, kw_only=True)
class Table:
    """One table of the paper."""

    name: str
    title: str
    source: str
    """Its place in the paper."""
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    note: str = ""
    """What a reader of the paper's numbers must know."""
    note_at: Mapping[str, str]
    """What a reader of our own must know, by scale."""

    def notes_at(self, scale: str) -> list[str]:
        """Return the notes that belong beside the table at a scale."""
        return [note for note in (self.note, self.note_at.get(scale, "")) if note]


@cache
def table_names() -> tuple[str, ...]:
    """Return the names of all tables, and of the figure with numbers; quick, for `--help`."""
    return tuple(re.findall(r"^([\w-]+):$", _text(), flags=re.MULTILINE))


def load_table(name: str) -> Table:
    """Return a table by its name."""
    if name not in table_names():
        raise UsageError(f"there is no table '{name}': choose one of {', '.join(table_names())}")
    tree = _data()[name]
    columns = tuple(Column(**entry) for entry in tree["columns"])
    return Table(
        name=name,
        title=tree["title"],
        source=tree["source"],
        columns=columns,
        rows=tuple(_row(entry, columns) for entry in tree["rows"]),
        note=tree.get("note", ""),
        note_at=tree.get("note_at", {}),
    )


_ROW_KEYS = frozenset(
    {"label", "printed", "recipes", "stage", "kind", "stack", "seeds", "compared"}
)


def _row(entry: Mapping[str, Any], columns: tuple[Column, ...]) -> Row:
    unknown = entry.keys() - _ROW_KEYS - {column.key for column in columns}
    if unknown:
        raise ConfigError(
            f"paper.yaml: row {entry.get('label')!r} has the unknown key {min(unknown)!r}: choose "
            f"from {', '.join(sorted(_ROW_KEYS))} and the columns"
        )
    recipes = {}
    for column in columns:
        names = entry.get(column.key, entry.get("recipes"))
        if names and (column.computed or column.measured):
            recipes[column.key] = dict(zip(SCALES, names, strict=True))
    return Row(
        label=entry["label"],
        printed={key: str(text) for key, text in entry["printed"].items()},
        recipes=recipes,
        stage=entry.get("stage"),
        kind=entry.get("kind", ""),
        stack=entry.get("stack"),
        seeds=entry.get("seeds", 1),
        compared=entry.get("compared", False),
    )


@cache
def _data() -> dict[str, Any]:
    import yaml

    tree: dict[str, Any] = yaml.safe_load(_text())
    return tree


def _text() -> str:
    file = resources.files("micronet_lm") / "report" / "paper.yaml"
    return file.read_text(encoding="utf-8")
