"""A reproduced table as text for a terminal, and as Markdown."""

from collections.abc import Iterator, Sequence

from micronet_lm.report.quantities import shown
from micronet_lm.report.reproduction import Cell, Reproduction
from micronet_lm.report.tables import Column

Grid = list[list[str]]
"""A row of headings, then one line per row of the table."""

WIDE = 12
"""Most columns of a grid; a wider table shows what is counted in a grid of its own."""

MISSING = "not trained yet"

EXPLANATION = (
    "'Counted' is computed from the paper's recipe without training, zeros as in the authors' "
    "configurations; 'ours' is measured at scale {scale}, with mean ± standard deviation where "
    "there are several seeds. – stands for what the paper does not print and what is another's "
    "model."
)


def grids(reproduction: Reproduction, missing: str = "") -> list[Grid]:
    """Return the table as one or two grids of texts.

    `missing` stands for a number that is not measured yet. Columns without any text are left out.
    """
    columns = reproduction.table.columns
    whole = _grid(reproduction, columns, missing)
    measured = [column for column in columns if not column.computed]
    counted = [column for column in columns if column.computed]
    if len(whole[0]) <= WIDE or not measured or not counted:
        return [whole]
    return [_grid(reproduction, own, missing) for own in (measured, counted)]


def markdown(reproduction: Reproduction) -> str:
    """Return the table as a page of Markdown, with its source."""
    table = reproduction.table
    parts = [f"## {table.title}", *markdown_parts(reproduction)]
    return "\n\n".join([*parts, EXPLANATION.format(scale=reproduction.scale)]) + "\n"


def markdown_parts(reproduction: Reproduction) -> Iterator[str]:
    """Yield the table's grids, its source and its notes as blocks of Markdown."""
    for head, *body in grids(reproduction, MISSING):
        filled = [[cell or "–" for cell in row] for row in body]
        rows = [head, ["---", *["---:"] * (len(head) - 1)], *filled]
        yield "\n".join(f"| {' | '.join(row)} |" for row in rows)
    table = reproduction.table
    yield f"Paper: {table.source}."
    if notes := table.notes_at(reproduction.scale):
        yield " ".join(notes)


def _grid(reproduction: Reproduction, columns: Sequence[Column], missing: str) -> Grid:
    rows = reproduction.table.rows
    cells = [reproduction.cells(row) for row in rows]
    found = [["", *(row.label for row in rows)]]  # by column
    for column in columns:
        awaited = [missing if reproduction.asks(row, column) else "" for row in rows]
        own = [cell[column.key] for cell in cells]
        texts = {
            "paper": [cell.printed or "" for cell in own],
            "counted": [_counted(column, cell) for cell in own],
            "ours": [_ours(column, *pair) for pair in zip(own, awaited, strict=True)],
        }
        kept = [(name, lines) for name, lines in texts.items() if any(lines)]
        for number, (name, lines) in enumerate(kept):
            found.append([name if number else f"{column.title}: {name}", *lines])
    return [list(line) for line in zip(*found, strict=True)]


def _counted(column: Column, cell: Cell) -> str:
    if column.computed is None or cell.computed is None:
        return ""
    return shown(column.computed, cell.computed)


def _ours(column: Column, cell: Cell, awaited: str) -> str:
    if column.measured is None:
        return ""
    if cell.measured is None:
        return awaited
    key = column.measured.split(".")[-1]
    text = shown(key, cell.measured)
    if cell.spread is not None and key != "seconds":
        text += f" ± {shown(key, cell.spread)} ({len(cell.seeds)} seeds)"
    return text
