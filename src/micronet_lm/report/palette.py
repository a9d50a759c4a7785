"""The colours of reports: each with its counterpart on a dark page.

Curves and bars take the colours of Okabe and Ito, which readers with any kind of colour vision can
tell apart; none of them is the only sign of anything: dashes, markers, arrows and words say it too,
so that a print without colours loses nothing.
"""

import re

PAPER, INK, SOFT, LINE = "#ffffff", "#1c2430", "#5b6675", "#d5dbe3"
BLUE, VERMILION, GREEN, ORANGE = "#0072b2", "#d55e00", "#009e73", "#e69f00"
SKY, PURPLE, GRAY = "#56b4e9", "#cc79a7", "#6b7280"
BETTER, WORSE = "#00705a", "#b04300"

SERIES = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, GRAY)
"""Colours of curves, in the order in which they are taken."""

COLOURS = {
    "paper": (PAPER, "#12171d"),
    "ink": (INK, "#e6eaf0"),
    "soft": (SOFT, "#a6b0bd"),
    "line": (LINE, "#3a4450"),
    "panel": ("#f6f8fa", "#1b222b"),
    "strong": ("#eaf3fa", "#1d2f40"),
    "accent": ("#2f6690", "#7db8e8"),
    "better": (BETTER, "#45d3a8"),
    "worse": (WORSE, "#ff9d66"),
    "blue": (BLUE, "#4a9fdc"),
    "vermilion": (VERMILION, "#ff8040"),
    "green": (GREEN, "#2fc79b"),
    "orange": (ORANGE, "#f0b429"),
    "sky": (SKY, "#a9dcf8"),
    "purple": (PURPLE, "#e39cc3"),
    "gray": (GRAY, "#98a2b0"),
}
"""Names of colours, and their values on a light and on a dark page."""

_NAMES = {light: name for name, (light, _) in COLOURS.items()}


def variables() -> str:
    """Return the colours as style sheet variables: light, and dark if the reader prefers it."""
    light, dark = (
        " ".join(f"--{name}: {pair[which]};" for name, pair in COLOURS.items()) for which in (0, 1)
    )
    return (
        f":root {{ color-scheme: light dark; {light} }}\n"
        f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n"
    )


def themed(svg: str) -> str:
    """Let a drawing inside a page take the page's colours."""
    return re.sub(
        r"#[0-9a-f]{6}\b",
        lambda found: f"var(--{_NAMES[found[0]]})" if found[0] in _NAMES else found[0],
        svg,
    )
