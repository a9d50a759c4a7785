"""How `micronet account` shows a count to people."""

from collections.abc import Iterator, Mapping
from fractions import Fraction

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from micronet_lm.accounting import Account, differences
from micronet_lm.accounting.formulas import FORMULAS
from micronet_lm.accounting.memory import state, transient
from micronet_lm.accounting.summary import Group, as_group, factors, grouped, summed
from micronet_lm.accounting.target import Target
from micronet_lm.cli.output import make_table
from micronet_lm.config import FULL

_COLUMNS = ("storage", "multiplies", "adds", "other", "bits", "density")


def account_shown(account: Account, *, details: bool = False) -> Iterator[RenderableType]:
    """Yield the table by layer, the shares, the totals and the named differences."""
    yield _by_part(account, details=details)
    yield ""
    yield _by_component(account)
    yield ""
    yield from map(Text.from_markup, _facts(account))
    if account.rules.departures:
        yield ""
        yield _differences(account)


def stages_shown(name: str, stages: Mapping[str, Account]) -> Iterator[RenderableType]:
    """Yield a line for a recipe's model after each stage."""
    columns = ("parameters", "storage", "operations", "score")
    table = make_table("stage", *columns, title=f"{name}, stage by stage")
    for stage, own in stages.items():
        amounts = (own.storage, own.operations)
        table.add_row(
            stage,
            f"{own.target.parameters:,}",
            *(f"{float(amount):,.0f}" for amount in amounts),
            f"{float(own.score):.7f}",
        )
    yield table


def formulas_shown() -> Iterator[RenderableType]:
    """Yield every formula, with where it comes from."""
    table = Table(box=None, header_style="bold", title="Formulas", title_justify="left")
    for column in ("what", "formula", "rules", "source"):
        table.add_column(column, overflow="fold")
    for formula in FORMULAS:
        table.add_row(formula.title, formula.text, formula.rules, formula.source)
    yield table


def _by_part(account: Account, *, details: bool) -> Table:
    title = f"{account.target.name}, rules '{account.rules.name}'"
    table = Table(box=None, header_style="bold", title=title, title_justify="left", pad_edge=False)
    table.add_column("part", no_wrap=True)
    for column in _COLUMNS:
        table.add_column(column, justify="right", no_wrap=True)
    for part in grouped(account.rows, "part"):
        table.add_row(*_cells(part.name, part), style="bold" if details else "")
        if details:
            for row in account.rows:
                if row.label.part == part.name:
                    table.add_row(*_cells(f"  {row.label.name}", as_group(row)))
    table.add_section()
    table.add_row(*_cells("all", summed("all", account.rows)), style="bold")
    return table


def _cells(name: str, group: Group) -> list[str]:
    amounts = (group.storage, group.multiplies, group.adds, group.other)
    bits = "–".join(str(b) for b in sorted({*group.bits[:1], *group.bits[-1:]}))
    density = "" if group.density is None else f"{group.density:.3f}"
    return [name, *(f"{float(amount):,.0f}" for amount in amounts), bits, density]


def _by_component(account: Account) -> Table:
    table = Table(box=None, header_style="bold")
    table.add_column("share of", no_wrap=True)
    groups = grouped(account.rows, "component")
    for group in groups:
        table.add_column(group.name, justify="right")
    for what, total in (("storage", account.storage), ("operations", account.operations)):
        shares = [float(getattr(group, what) / total) if total else 0 for group in groups]
        table.add_row(what, *(f"{share:.1%}" for share in shares))
    return table


def _facts(account: Account) -> list[str]:
    target = account.target
    storage, operations = factors(account)
    held, stream = transient(target), state(target)
    lines = [
        f"parameters  [bold]{target.parameters:,}[/bold] without θ and λ; {_model(target)}",
        f"storage     [bold]{_number(account.storage)}[/bold] 32-bit parameters"
        + (f", 1/{storage:,.1f} of the baseline's 159 M" if storage else ""),
        f"operations  [bold]{_number(account.operations)}[/bold] per token"
        + (f", 1/{operations:,.1f} of the baseline's 318 M" if operations else ""),
        f"score       [bold]{float(account.score):.7f}[/bold] (valid if the test perplexity on "
        "WikiText-103 is at most 35)",
    ]
    lines += [f"convention  [bold]{option}[/bold]" for option in account.rules.options]
    shares = ", ".join(f"{tokens / sum(target.shares):.2%}" for tokens in target.shares)
    return [
        *lines,
        f"bins        {shares} of the tokens ({target.shares_from})",
        f"activations {held.size:,} numbers at most at a time ({held.name})",
        f"state       {stream.size:,} numbers, {float(stream.bytes):,.0f} bytes (keys "
        f"{stream.keys:,}, values {stream.values:,}, cache {stream.cache:,})",
    ]


def _differences(account: Account) -> Table:
    title = "What these rules count differently from rules 'paper'"
    table = Table(box=None, header_style="bold", title=title, title_justify="left")
    table.add_column("difference")
    table.add_column("storage", justify="right", no_wrap=True)
    table.add_column("operations", justify="right", no_wrap=True)
    for item in differences(account.target, account.rules):
        if item.storage or item.operations:
            table.add_row(item.departure.value, _signed(item.storage), _signed(item.operations))
    return table


def _model(target: Target) -> str:
    quantizers = sum(target.quantizers(place) for place in target.places)
    if target.bits == FULL:
        return "not quantized"
    return f"{target.bits} bits, {quantizers} activation quantizers"


def _signed(amount: Fraction) -> str:
    return f"{'+' if amount > 0 else ''}{_number(amount)}" if amount else ""


def _number(amount: Fraction) -> str:
    text = f"{float(amount):,.3f}"
    return text.rstrip("0").rstrip(".")
