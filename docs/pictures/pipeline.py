"""Draw the picture of README from the table of `docs/results/wikitext-2-pipeline.md`.

Run `python docs/pictures/pipeline.py` after that table has changed; a test compares the two.
"""

from pathlib import Path
from typing import NamedTuple

DOCS = Path(__file__).parents[1]
PAGE = DOCS / "results" / "wikitext-2-pipeline.md"
PICTURE = Path(__file__).with_suffix(".svg")

WORDS = {
    "teacher": "a larger model learns from the text",
    "student": "a small one learns from text and teacher",
    "prune": "36 % of its weights become zero",
    "search-cache": "a cache of the last 3,000 words is tuned",
    "quantize": "weights and activations become 9-bit integers",
    "pack": "one file, with its 33,278 words",
}
"""What each stage does."""

WIDTH, TOP, ROW = 900, 78, 50
STORAGE, OPERATIONS, PERPLEXITY = 330, 560, 850
BAR = 150
"""Width of the longest bar."""
BLUE, ORANGE, INK, GREY = "#2b6cb0", "#c05621", "#1a202c", "#4a5568"


class Stage(NamedTuple):
    """One row of the table."""

    name: str
    test: str
    storage: int
    operations: int
    size: int


def stages(page: str) -> list[Stage]:
    """Read the first table of the page."""
    lines = page.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("| stage |"))
    keys = [cell.strip() for cell in lines[start].strip("|").split("|")]
    found = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        row = dict(zip(keys, [cell.strip() for cell in line.strip("|").split("|")], strict=True))
        numbers = [int(row[key].replace(",", "")) for key in ("storage", "operations", "bytes")]
        found.append(Stage(row["stage"], row["test"], *numbers))
    return found


def draw(rows: list[Stage]) -> str:
    """Return the picture as SVG."""
    height = TOP + ROW * len(rows) + 14
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}" role="img" '
        'font-family="DejaVu Sans, Verdana, sans-serif" font-size="13">',
        "<title>From text to one file: micronet run wikitext-2, stage by stage</title>",
        f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#ffffff"/>',
        _text(24, 32, "micronet run wikitext-2", size=16, bold=True),
        _text(24, 52, "stage by stage, on 2 cores", color=GREY, size=12),
        _text(STORAGE, 32, "storage", color=BLUE, bold=True),
        _text(STORAGE, 52, "million 32-bit parameters", color=GREY, size=12),
        _text(OPERATIONS, 32, "operations", color=ORANGE, bold=True),
        _text(OPERATIONS, 52, "millions per token", color=GREY, size=12),
        _text(PERPLEXITY, 32, "perplexity", bold=True, end=True),
        _text(PERPLEXITY, 52, "test, lower is better", color=GREY, size=12, end=True),
    ]
    most = max(row.storage for row in rows), max(row.operations for row in rows)
    for i, row in enumerate(rows):
        y = TOP + ROW * i
        if i:
            parts.append(_arrow(y))
        parts += [
            f'<rect x="14" y="{y}" width="{WIDTH - 28}" height="{ROW - 8}" rx="6" fill="#f1f4f8"/>',
            _text(24, y + 18, row.name, bold=True),
            _text(24, y + 34, WORDS[row.name], color=GREY, size=11),
            *_bar(STORAGE, y, row.storage, most[0], BLUE),
            *_bar(OPERATIONS, y, row.operations, most[1], ORANGE),
            _text(PERPLEXITY, y + 26, row.test, bold=True, size=15, end=True),
        ]
        if row is rows[-1]:
            size = f"a file of {row.size / 1e6:.2f} MB"
            parts.append(_text(STORAGE + 75, y + 26, size, color=BLUE, bold=True, size=12))
    return "\n".join([*parts, "</svg>", ""])


def _text(
    x: int,
    y: int,
    words: str,
    color: str = INK,
    size: int = 13,
    bold: bool = False,
    end: bool = False,
) -> str:
    more = (' font-weight="bold"' if bold else "") + (' text-anchor="end"' if end else "")
    return f'<text x="{x}" y="{y}" fill="{color}" font-size="{size}"{more}>{words}</text>'


def _bar(x: int, y: int, amount: int, most: int, color: str) -> list[str]:
    width = max(2, round(BAR * amount / most))
    return [
        f'<rect x="{x}" y="{y + 12}" width="{width}" height="18" rx="3" fill="{color}"/>',
        _text(x + width + 6, y + 26, f"{amount / 1e6:.2f}"),
    ]


def _arrow(y: int) -> str:
    return f'<path d="M 26 {y - 8} h 10 l -5 8 z" fill="{GREY}"/>'


if __name__ == "__main__":
    PICTURE.write_text(draw(stages(PAGE.read_text(encoding="utf-8"))), encoding="utf-8")
