"""Read YAML strictly: plain values only, within limits of size and depth.

YAML can do more than a recipe needs, and some of it does harm: with aliases, 400 bytes describe
gigabytes; a key that stands twice silently loses a value; `2001-01-01` becomes a date. All of that
is refused in a sentence. Numbers may be written as people write them: `1e-3` is one.
"""

import math
import re
from typing import Any

import yaml

from micronet_lm.errors import ConfigError
from micronet_lm.strict_json import LONGEST_NUMBER

LARGEST_TEXT = 1 << 20
"""Most characters of a recipe."""
DEEPEST = 32
"""Most values within values."""

_NUMBER = re.compile(
    r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)?$"
    r"|[-+]?[0-9][0-9_]*[eE][-+]?[0-9]+$"
    r"|[-+]?\.(?:inf|Inf|INF)$|\.(?:nan|NaN|NAN)$"
)
_TAG = "tag:yaml.org,2002:"
_PLAIN = {_TAG + kind for kind in ("null", "bool", "int", "float", "str", "seq", "map")}


def read_yaml(text: str) -> Any:
    """Return the plain values of a YAML text; anything else is a `ConfigError` in one sentence."""
    if len(text) > LARGEST_TEXT:
        raise ConfigError(
            f"it has {len(text):,} characters, but a recipe has at most {LARGEST_TEXT:,}"
        )
    try:
        return _load(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"not valid YAML: {' '.join(str(error).split())}") from None


def _load(text: str) -> Any:
    loader = _Loader(text)
    try:
        return loader.get_single_data()
    finally:
        loader.dispose()


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader without what a recipe does not need."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {  # noqa: RUF012
        first: [(tag, pattern) for tag, pattern in found if tag != _TAG + "float"]
        for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Refuse aliases, anchors, foreign tags and values within values beyond the limit."""
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            raise _refused(event, f"the anchor or alias '{event.anchor}': write the value out")
        self._depth += 1
        if self._depth > DEEPEST:
            raise _refused(event, f"values more than {DEEPEST} deep within each other")
        node = super().compose_node(parent, index)
        self._depth -= 1
        if node is not None and node.tag == _TAG + "timestamp":
            raise _refused(event, f"the date {node.value}: put text into quotes")
        if node is not None and node.tag not in _PLAIN:
            raise _refused(event, f"the tag or sign '{node.tag.removeprefix(_TAG)}': remove it")
        return node

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        """Refuse keys that occur twice and keys that are not plain values."""
        found: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise _refused(key_node, "a key that is a list or a mapping: write a name")
            key = self.construct_object(key_node)
            if key in found:
                raise _refused(key_node, f"the key '{key_node.value}' twice: keep one")
            found[key] = self.construct_object(value_node, deep=True)
        return found

    def number(self, node: Any) -> int | float:
        """Return a finite number."""
        if len(node.value) > LONGEST_NUMBER:
            raise _refused(node, f"a number of {len(node.value):,} characters")
        try:
            if node.tag == _TAG + "int":
                whole: int = self.construct_yaml_int(node)
                return whole
            number = float(self.construct_yaml_float(node))
        except ValueError:
            raise _refused(node, f"the number {node.value}, which is not one") from None
        if not math.isfinite(number):
            raise _refused(node, f"the number {node.value}, which is not finite")
        return number


def _refused(at: Any, what: str) -> ConfigError:
    line = at.start_mark.line + 1
    return ConfigError(f"line {line} has {what if len(what) <= 200 else what[:197] + '...'}")


_Loader.add_implicit_resolver(_TAG + "float", _NUMBER, list("-+0123456789."))
for _kind in ("int", "float"):
    _Loader.add_constructor(_TAG + _kind, _Loader.number)
