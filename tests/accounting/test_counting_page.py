"""Every number that `docs/counting.md` prints is what the code counts."""

import re
import shlex
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from micronet_lm.accounting import (
    PAPER,
    Account,
    Target,
    challenge,
    count,
    describe,
    differences,
    stage_targets,
)
from micronet_lm.accounting.formulas import FORMULAS, score
from micronet_lm.accounting.memory import moments, state, transient
from micronet_lm.accounting.rules import REASONS
from micronet_lm.cli.main import main
from micronet_lm.config import load_recipe

PAGE = (Path(__file__).parents[2] / "docs" / "counting.md").read_text(encoding="utf-8")

PUBLISHED = ("6,301,457.19", "1,772,284.84", "6,189,183.40", "845,247", "8,806,715.24")
"""Totals of the authors' best model, which has densities of its own; see `test_paper`."""


def student(context: int = 97, cache: int = 0) -> Target:
    keys = {"model.context": context, "cache.size": cache}
    return describe(load_recipe("paper/student", keys), "paper/student")


DENSE = student(cache=2000)
SMALL = stage_targets(load_recipe("paper/micronet"), "paper/micronet")["quantize"]


def shown(amount: Fraction | int) -> str:
    text = f"{float(amount):,.3f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def signed(amount: Fraction) -> str:
    return ("+" if amount > 0 else "−") + shown(abs(amount)) if amount else ""


def table_lines() -> Iterator[str]:
    """The paper's table: contexts, caches, and the other two models."""
    for context in (65, 97, 129, 257, 513, 1025):
        target = student(context)
        operations = float(count(target).operations)
        yield f"| C = {context} | {target.parameters:,} | {operations:,.2f} |"
    for cache in (1000, 2000):
        target = student(cache=cache)
        operations = float(count(target).operations)
        yield f"| C = 97, cache {cache} | {target.parameters:,} | {operations:,.2f} |"
    for preset in ("teacher", "full-embedding"):
        target = describe(load_recipe(f"paper/{preset}"), preset)
        operations = float(count(target).operations)
        yield f"| `paper/{preset}` | {target.parameters:,} | {operations:,.2f} |"


def piece_lines() -> Iterator[str]:
    """One layer, one bin and the cache of the dense student, by both rules."""

    def rows(account: Account) -> dict[tuple[str, str, str], tuple[str, str, str]]:
        return {
            (row.label.part, row.label.component, row.label.name): (
                shown(row.multiplies),
                shown(row.adds),
                shown(row.other),
            )
            for row in account.rows
        }

    paper, challenged = rows(count(DENSE, PAPER)), rows(count(DENSE, challenge()))
    for part, component, name in challenged:
        if part in {"input", "layer 1", "cache"} or part.startswith("bin"):
            key = (part, component, name)
            cells = [*paper.get(key, ("", "", "")), *challenged[key]]
            if not any(cell not in {"", "0"} for cell in cells):
                continue
            where = f"{part}, {component}" if part == "layer 1" else part
            same = cells[:3] == cells[3:]
            right = "| | |" if same else f"{' | '.join(_blank(cells[3:]))} |"
            yield f"| {where}: {name} | {' | '.join(_blank(cells[:3]))} | {right}"


def _blank(cells: list[str]) -> list[str]:
    return ["" if cell == "0" else cell for cell in cells]


def difference_lines() -> Iterator[str]:
    for item in differences(SMALL, challenge(tree=True)):
        reason = REASONS[item.departure]
        yield (
            f"| {item.departure.value} | {reason.formula} | {signed(item.storage)} "
            f"| {signed(item.operations)} |"
        )


def why_lines() -> Iterator[str]:
    for item in differences(SMALL, challenge()):
        yield f"- **{item.departure.value}**: {REASONS[item.departure].why}."


def formula_lines() -> Iterator[str]:
    for formula in FORMULAS:
        yield f"| {formula.title} | {formula.text} | {formula.rules} | {formula.source} |"


def total_lines() -> Iterator[str]:
    for name, rules in (
        ("`paper`", PAPER),
        ("`challenge`", challenge()),
        ("`challenge`, `--adds tree`", challenge(tree=True)),
    ):
        account = count(SMALL, rules)
        cells = [shown(account.total(kind)) for kind in ("multiplies", "adds", "other")]
        cells = [shown(account.storage), *cells, shown(account.operations)]
        yield f"| {name} | {' | '.join(cells)} | {float(account.score):.7f} |"


def moment_lines() -> Iterator[str]:
    for moment in moments(DENSE):
        holds = " + ".join(f"{name} {size:,}" for name, size in moment.holds if size)
        yield f"| {moment.name} | {holds} | {moment.size:,} |"


TABLES = {
    "table": table_lines,
    "piece": piece_lines,
    "difference": difference_lines,
    "why": why_lines,
    "formula": formula_lines,
    "total": total_lines,
    "moment": moment_lines,
}


@pytest.mark.parametrize("name", TABLES)
def test_the_lines_of_every_table(name: str) -> None:
    lines = list(TABLES[name]())
    assert lines
    missing = [line for line in lines if line not in PAGE]
    assert missing == []


def test_every_number_of_the_text() -> None:
    """Outside of the tables, too: a number on the page is one that is computed here."""
    held = state(DENSE)
    weights = sum(m.size + m.bias_size for m in DENSE.matrices.values())
    qkv, inner, table = 576 * 256, 768 * 256, 21_500 * 64
    published = Fraction(5_326_376 * 9, 32), Fraction(weights, 32), 57 * (1 + Fraction(23, 32))
    operations = Fraction("6301457.19") * 9 / 32 + Fraction("6189183.40") + 845_247
    assert float(operations) == pytest.approx(8_806_715.24, abs=0.01)
    known = {
        *(shown(number) for number in published),
        shown(sum(published)),
        f"{float(score(Fraction(sum(published)), operations)):.9f}"[:9],
        *(f"{n:,}" for n in (qkv, inner, table, weights, 5_326_376, 267_735, 198_232, 35_479)),
        *(f"{n:,}" for n in (11_858, 245_569, 3_500, 21_500, 242_735, 576 * 255 + 576)),
        *(f"{n:,}" for n in (held.keys, held.values, held.cache, held.size, int(held.bytes))),
        f"{transient(DENSE).size:,}",
        f"{count(DENSE).total('other').numerator:,}",
        *PUBLISHED,
        # A matrix of 576 × 256 at density 0.642 and 9 bits.
        *(shown(n) for n in _example()),
    }
    text = PAGE
    for lines in TABLES.values():
        for line in lines():
            text = text.replace(line, "")
    numbers = set(re.findall(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+\.\d{4,}", text))
    assert numbers - known == set()


def _example() -> list[Fraction]:
    """What the page says about one matrix."""
    size, outputs = 576 * 256, 576
    nonzeros = round(Fraction("0.642") * size)
    return [
        Fraction(nonzeros),
        Fraction(nonzeros * 9 + size, 32),
        Fraction(size * 9, 32),
        Fraction(nonzeros * 9, 32),
        Fraction(nonzeros * 255, 256) + outputs,
        Fraction(size * 255, 256) + outputs,
    ]


def test_the_commands_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = "".join(re.findall(r"```sh\n(.*?)```", PAGE, flags=re.DOTALL))
    commands = [shlex.split(line, comments=True)[1:] for line in blocks.splitlines()]
    assert len(commands) >= 4
    for words in commands:
        assert main(words) == 0, capsys.readouterr().err
