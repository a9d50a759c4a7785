"""Axes with round ticks, and curves that can be told apart even where they coincide."""

import re
from typing import Any

import numpy as np
import pytest

from micronet_lm.accounting.figure import tick_label
from micronet_lm.report.axes import curve_style, round_ticks
from micronet_lm.report.drawings import curves, svg_of, trade


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (11, 900, [20, 50, 100, 200, 500]),
        (0.3, 6, [0.5, 1, 2, 5]),
        (69, 138, [80, 100, 120]),
        (38.1, 41.2, [39, 40, 41]),
        (1, 250_000, [1, 10, 100, 1000, 10_000, 100_000]),
    ],
)
def test_ticks_are_round(low: float, high: float, ticks: list[float]) -> None:
    assert round_ticks(low, high) == pytest.approx(ticks)


def test_there_are_never_many_nor_none() -> None:
    for low in (0.013, 0.7, 1.0, 9.3, 62.0, 4_321.0):
        for factor in (1.02, 1.3, 2, 7, 80, 1e4, 1e9):
            ticks = round_ticks(low, low * factor)
            assert 1 < len(ticks) <= 6
            assert all(low <= tick <= low * factor for tick in ticks)


@pytest.mark.parametrize(
    ("value", "label"),
    [(0, "0"), (0.5, "0.5"), (80, "80"), (1500, "1,500"), (2e5, "200,000"), (1.5e6, "1.5 M")],
)
def test_labels_are_as_people_write_them(value: float, label: str) -> None:
    assert tick_label(value) == label


def metrics(steps: int, first: float) -> list[dict[str, Any]]:
    """Training and validation on one curve."""
    return [
        {"kind": kind, "step": step, "perplexity": first * (1 + steps / step)}
        for step in range(steps // 10, steps + 1, steps // 10)
        for kind in ("train", "valid")
    ]


def test_two_curves_on_each_other_stay_two() -> None:
    figure = curves({"student": metrics(2_000_000, 40)})
    training, validation = figure.axes[0].get_lines()
    assert np.array_equal(training.get_ydata(), validation.get_ydata())
    assert training.get_color() != validation.get_color()
    assert training.get_linestyle() != validation.get_linestyle()
    assert training.get_linewidth() < validation.get_linewidth()
    assert training.get_marker() != validation.get_marker()
    styles = [curve_style(number) for number in range(14)]
    assert len({(s["color"], s["linestyle"], s["marker"]) for s in styles}) == 14


def test_no_label_is_a_power_or_turned() -> None:
    figures = [
        curves({"student": metrics(2_000_000, 40), "prune": metrics(100, 3_000_000)}),
        trade([row("teacher", 6.1, 70), row("student", 1.9, 69), row("prune", 1.3, 72)]),
    ]
    for figure in figures:
        svg = svg_of(figure)
        labels = [text.get_text() for axes in figure.axes for text in axes.get_xticklabels()]
        assert not any(re.search(r"e[+\d]|\^", label) for label in labels)
        assert "1e6" not in svg
        assert all(t.get_rotation() == 0 for axes in figure.axes for t in axes.get_xticklabels())


def row(stage: str, millions: float, perplexity: float) -> dict[str, Any]:
    return {"stage": stage, "storage": millions * 1e6, "validation_perplexity": perplexity}


def test_names_of_close_points_do_not_cover_each_other() -> None:
    stages = ("student", "prune", "search-cache", "quantize")
    figure = trade([row(stage, 1.3, 70 + 0.01 * n) for n, stage in enumerate(stages)])
    figure.canvas.draw()
    axes = figure.axes[0]
    boxes = [text.get_window_extent() for text in axes.texts]
    assert len(boxes) == 4
    for number, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[number + 1 :])


def test_one_point_has_axes_too() -> None:
    svg = svg_of(trade([row("student", 1.9, 69.0)]))
    assert "student" in svg
