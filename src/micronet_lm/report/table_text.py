"""A reproduced table as text for a terminal, and as Markdown."""

from micronet_lm.report.quantities import shown
from micronet_lm.report.reproduction import Cell, Reproduction
from micronet_lm.report.tables import Column


def headings(reproduction: Reproduction) -> list[str]:
    """Return one heading per printed, computed and measured number."""
    found = [""]
    for column in reproduction.table.columns:
        found.append(f"{column.title}: paper")
        if column.computed:
            found.append("counted")
        if column.measured:
            found.append(f"ours ({reproduction.scale})")
    return found


def lines(reproduction: Reproduction, missing: str = "") -> list[list[str]]:
    """Return one line per row, in the order of the headings.

    `missing` stands for a number that is not measured yet.
    """
    found = []
    for row in reproduction.table.rows:
        cells = reproduction.cells(row)
        line = [row.label]
        for column in reproduction.table.columns:
            awaited = missing if reproduction.asks(row, column) else ""
            line += _texts(column, cells[column.key], awaited)
        found.append(line)
    return found


def markdown(reproduction: Reproduction) -> str:
    """Return the table as Markdown, with its source."""
    table = reproduction.table
    head = headings(reproduction)
    body_lines = lines(reproduction, "not trained yet")
    rows = [head, ["---", *["---:"] * (len(head) - 1)], *body_lines]
    body = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return (
        f"## {table.title}\n\n{body}\n\n"
        f"Paper: {table.source}. 'Counted' is computed from the paper's recipe without training, "
        "zeros as in the authors' configurations; ours is measured at scale "
        f"{reproduction.scale}, with mean ± standard deviation where there are several seeds.\n"
    )


def _texts(column: Column, cell: Cell, awaited: str) -> list[str]:
    texts = [cell.printed or ""]
    if column.computed:
        texts.append("" if cell.computed is None else shown(column.computed, cell.computed))
    if column.measured:
        key = column.measured.split(".")[-1]
        own = awaited if cell.measured is None else shown(key, cell.measured)
        if cell.spread is not None and key != "seconds":
            own += f" ± {shown(key, cell.spread)} ({len(cell.seeds)} seeds)"
        texts.append(own)
    return texts
