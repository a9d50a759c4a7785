"""The paper's figure 'pipeline': one row per technique, with what the technique changed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from micronet_lm.report.palette import BETTER, BLUE, GRAY, INK, PAPER, VERMILION, WORSE
from micronet_lm.report.quantities import shown

COLOURS = {"core": VERMILION, "compression": BLUE, "search": GRAY}
"""As in the paper: red for the language model, blue for compression, gray for the search."""

PLAIN = INK
"""Numbers that nothing is compared with, and changes that may be noise."""

SMALL = 0.01
"""A relative change of perplexity up to this may be noise, if the noise was not measured."""

KEYS = ("storage", "operations", "validation_perplexity", "seconds")
"""Numbers of a row; less is better, except for the time, which is not compared."""

_TITLES = ("parameters", "operations", "validation", "time")
_LABEL, _CELL, _ROW = 250, 132, 44


@dataclass(frozen=True, kw_only=True)
class Layer:
    """One row of a stack."""

    label: str
    kind: str
    """A key of `COLOURS`."""
    values: Mapping[str, float | None]
    """Values by the names of `KEYS`."""
    leads: bool = True
    """Whether the next row is compared with it; false for a teacher."""
    clear: bool | None = None
    """Whether the change of perplexity is more than noise, if that was measured."""


def stack_svg(stacks: Sequence[tuple[str, Sequence[Layer]]]) -> str:
    """Draw stacks one below the other; numbers are shown where they changed, as in the paper.

    An arrow and a colour say which way; a change of perplexity that may be noise has neither.
    """
    width = _LABEL + len(KEYS) * _CELL + 28
    parts: list[str] = [
        f'<rect width="{width}" height="100%" fill="{PAPER}"/>'  # beside Markdown on a dark page
    ]
    top = 8
    for title, layers in stacks:
        parts.append(_text(10, top + 16, title, weight="700"))
        for number, name in enumerate(_TITLES):
            parts.append(_text(_right(number), top + 16, name, anchor="end", size=12))
        top += 26
        before: dict[str, float] = {}
        for layer in layers:
            parts += _layer(layer, top, width, before)
            known = {key: value for key, value in layer.values.items() if value is not None}
            before |= known if layer.leads else {}
            top += _ROW + 6
        top += 14
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {top}" width="{width}" '
        f'height="{top}" font-family="system-ui, sans-serif">{"".join(parts)}</svg>'
    )


def _layer(layer: Layer, top: int, width: int, before: Mapping[str, float]) -> list[str]:
    colour = COLOURS.get(layer.kind, PLAIN)
    parts = [
        f'<rect x="4" y="{top}" width="{width - 8}" height="{_ROW}" rx="8" fill="{PAPER}" '
        f'stroke="{colour}" stroke-width="1.6"/>',
        f'<rect x="4" y="{top}" width="8" height="{_ROW}" rx="4" fill="{colour}"/>',
        _text(24, top + 27, layer.label, fill=colour, weight="600", size=15),
    ]
    for number, key in enumerate(KEYS):
        value = layer.values.get(key)
        if value is None:
            continue
        text, fill, way = shown(key, value), PLAIN, ""
        old = before.get(key)
        if key != "seconds" and old is not None:
            if shown(key, old) == text:
                continue  # only what has changed is said
            if _counts(layer, key, value, old):
                fill, way = (BETTER, "▼") if value < old else (WORSE, "▲")
            else:
                way = "≈"
        parts.append(_text(_right(number), top + 27, text, anchor="end", fill=fill, weight="600"))
        if way:
            parts.append(_text(_right(number) + 4, top + 27, way, fill=fill, size=12))
    return parts


def _counts(layer: Layer, key: str, value: float, old: float) -> bool:
    """Return whether a change is more than noise; counted numbers have no noise."""
    if "perplexity" not in key:
        return True
    return abs(value / old - 1) > SMALL if layer.clear is None else layer.clear


def _right(number: int) -> int:
    return _LABEL + (number + 1) * _CELL


def _text(
    x: int,
    y: int,
    text: str,
    *,
    anchor: str = "start",
    fill: str = PLAIN,
    weight: str = "400",
    size: int = 14,
) -> str:
    return (
        f'<text x="{x}" y="{y}" text-anchor="{anchor}" fill="{fill}" font-size="{size}" '
        f'font-weight="{weight}">{escape(text)}</text>'
    )
