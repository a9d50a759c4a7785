"""Load a checked `Recipe` from a preset's name or a YAML file, with overrides."""

import json
from collections.abc import Mapping
from copy import deepcopy
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from micronet_lm.config.compression import TrainChanges
from micronet_lm.config.sections import Recipe, section_type
from micronet_lm.config.strict_yaml import LARGEST_TEXT, read_yaml
from micronet_lm.errors import ConfigError, nearest
from micronet_lm.files import read_small

VARIANTS = "variants"
"""Key under which a file lists the differences between the recipes of a family."""

_PRESETS = resources.files("micronet_lm") / "presets"


@cache
def preset_names() -> list[str]:
    """Return the names of the recipes that ship with the package, such as `paper/student`.

    A file with `variants` contains a family of recipes: `paper/context` has `paper/context-129`.
    """
    names = []
    with resources.as_file(_PRESETS) as folder:
        for file in sorted(folder.rglob("*.yaml")):
            name = file.relative_to(folder).with_suffix("").as_posix()
            variants = read_yaml(file.read_text(encoding="utf-8")).get(VARIANTS)
            names += [name] if variants is None else [f"{name}-{variant}" for variant in variants]
    return names


def preset_summary(name: str) -> str:
    """Return the comment at the top of a preset's file."""
    family, _ = preset_family(name)
    comment = []
    for line in _read_text(family).splitlines():
        if not line.startswith("#"):
            break
        comment.append(line.lstrip("# ").rstrip())
    return " ".join(comment)


def load_recipe(name: str, overrides: Mapping[str, Any] | None = None) -> Recipe:
    """Load a preset by its name or a recipe by its path; `overrides` maps dotted keys to values."""
    tree = _read_tree(name)
    for key, value in (overrides or {}).items():
        _put(tree, key, value)
    return parse_recipe(tree, origin=name)


def merge_recipe(recipe: Recipe, overrides: Mapping[str, Any]) -> Recipe:
    """Return the recipe with some dotted keys changed."""
    tree = recipe.model_dump(mode="json")
    for key, value in overrides.items():
        _put(tree, key, value)
    return parse_recipe(tree, origin="recipe")


def with_train_changes(recipe: Recipe, changes: TrainChanges | None) -> Recipe:
    """Return the recipe with the changes to `train` of a later stage."""
    own = {} if changes is None else changes.model_dump(exclude_none=True)
    return merge_recipe(recipe, {f"train.{key}": value for key, value in own.items()})


def parse_recipe(tree: Mapping[str, Any], *, origin: str) -> Recipe:
    """Return the recipe of a tree of plain values; errors are one sentence that names `origin`."""
    try:
        # Through JSON, lists are accepted for tuples but nothing else is converted silently.
        return Recipe.model_validate_json(json.dumps(tree, default=str), strict=True)
    except ValidationError as error:
        raise ConfigError(f"{origin}: {_sentence(error)}") from None


def changed_keys(old: Recipe, new: Recipe) -> list[str]:
    """Return the dotted keys in which two recipes differ."""
    before, after = flat_keys(old.model_dump()), flat_keys(new.model_dump())
    return [key for key in {**before, **after} if before.get(key) != after.get(key)]


def dump_recipe(recipe: Recipe) -> str:
    """Return a recipe as YAML that loads to an equal recipe."""
    return yaml.safe_dump(recipe.model_dump(mode="json"), sort_keys=False)


def _read_tree(name: str, above: tuple[str, ...] = ()) -> dict[str, Any]:
    """Read a recipe's own tree over that of the recipe it names as its `base`."""
    family, variant = preset_family(name)
    text = _read_text(family)
    try:
        tree = deepcopy(_parsed(text))  # callers change it
    except ConfigError as error:
        raise ConfigError(f"{name}: {error}") from None
    if not isinstance(tree, dict):
        raise ConfigError(f"{name}: a recipe must map sections, got {type(tree).__name__}")
    variants = tree.pop(VARIANTS, None)
    if variant is not None:
        tree = _merge(tree, {str(key): own for key, own in variants.items()}[variant])
    elif variants is not None:
        raise ConfigError(f"{name} is a family of recipes: choose {_listed(name, variants)}")
    base = tree.pop("base", None)
    if base is None:
        own: dict[str, Any] = tree
        return own
    above = (*above, name)
    if base in above:
        raise ConfigError(f"{name}: a recipe cannot be its own base ({' > '.join(above)})")
    return _merge(_read_tree(str(base), above), tree)


@cache
def _parsed(text: str) -> Any:
    """Parse YAML; sweeps load the same few files hundreds of times."""
    return read_yaml(text) or {}


def preset_family(name: str) -> tuple[str, str | None]:
    """Split a recipe's name into that of its family and that of its variant, if any."""
    if (_PRESETS / f"{name}.yaml").is_file() or name not in preset_names():
        return name, None
    family = max(
        (
            name[:place]
            for place in range(len(name))
            if (_PRESETS / f"{name[:place]}.yaml").is_file()
        ),
        key=len,
    )
    return family, name[len(family) + 1 :]


def _listed(family: str, variants: Mapping[str, Any]) -> str:
    return ", ".join(f"{family}-{variant}" for variant in variants)


def _read_text(name: str) -> str:
    preset = _PRESETS / f"{name}.yaml"
    if preset.is_file():
        return preset.read_text(encoding="utf-8")
    path = Path(name)
    if path.suffix in {".yaml", ".yml"}:
        try:
            return read_small(path, 4 * LARGEST_TEXT).decode("utf-8")
        except OSError as error:
            raise ConfigError(f"{name} cannot be read: {error.strerror}") from None
        except UnicodeDecodeError as error:
            raise ConfigError(f"{name} cannot be read: byte {error.start} is not UTF-8") from None
    nothing = "" if path.exists() else " and no file or folder of that name"
    raise ConfigError(
        f"there is no preset '{name}'{nearest(name, preset_names())}{nothing}: "
        "'micronet presets' lists all; a recipe file's name must end in .yaml; "
        f"{own_text_command(name if path.exists() else 'mytext')}"
    )


def own_text_command(text: str) -> str:
    """Return a hint on how to train on a text that is neither a recipe nor a corpus."""
    return f"to train on your own text: micronet run {text} --out mine"


def _merge(base: dict[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        both = isinstance(old, dict) and isinstance(value, dict)
        merged[key] = _merge(old, value) if both else value  # type: ignore[arg-type]
    return merged


def flat_keys(tree: Mapping[str, Any], lead: str = "") -> dict[str, Any]:
    """Return nested sections as dotted keys."""
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        flat |= (
            flat_keys(value, f"{lead}{key}.") if isinstance(value, dict) else {lead + key: value}
        )
    return flat


def _put(tree: dict[str, Any], key: str, value: Any) -> None:
    *sections, leaf = key.split(".")
    for section in sections:
        if tree.get(section) is None:  # absent or switched off
            tree[section] = {}
        tree = tree[section]
        if not isinstance(tree, dict):
            raise ConfigError(f"--{key}: '{section}' is a value, not a section")
    tree[leaf] = value


_PLAINER = {
    "input should be": "must be",
    "greater than or equal to": "at least",
    "less than or equal to": "at most",
    "greater than": "above",
    "less than": "below",
    "a valid integer": "a whole number",
    "a valid number": "a number",
    "a valid string": "text",
    "a valid boolean": "true or false",
}
"""Words of pydantic's messages, and those of all other messages here."""


def _sentence(error: ValidationError) -> str:
    """Return the first of pydantic's findings as one sentence."""
    finding = error.errors()[0]
    path = [str(part) for part in finding["loc"]]
    key = ".".join(path)
    if finding["type"] == "extra_forbidden":
        known = _known_keys(path[:-1])
        return (
            f"unknown key '{key}'{nearest(path[-1], known)}; "
            f"the keys here are {', '.join(known) or 'none'}"
        )
    message = finding["msg"].removeprefix("Value error, ")
    if not key or finding["type"] == "value_error":
        return f"{key + ': ' if key else ''}{message}"
    text = message[0].lower() + message[1:]
    for word, plainer in _PLAINER.items():
        text = text.replace(word, plainer)
    more = len(error.errors()) - 1
    return f"{key} {text}, got {finding['input']!r}" + (f" (and {more} more)" if more else "")


def _known_keys(path: list[str]) -> list[str]:
    section: Any = Recipe
    for part in path:
        field = section.model_fields.get(part)
        if field is None:
            return []
        section = section_type(field.annotation)
        if section is None:
            return []
    return list(section.model_fields)
