"""Which of the paper's claims hold, from made-up numbers."""

import json
import math
from typing import Any

import numpy as np
import pytest

from micronet_lm.report.cache_effect import CacheEffect, cache_effect, token_gaps
from micronet_lm.report.claims import Claim, Verdict, judged, load_claims, pooled_noise
from micronet_lm.report.effect_stage import COMPARED, KINDS, REFERENCE, shares, sums
from micronet_lm.report.figure_claims import MOST_RARE, judged_figure
from micronet_lm.report.reproduction import Cell
from micronet_lm.report.tables import CACHE_FIGURES, load_table, table_names


def cells(**values: Any) -> Any:
    """Cells by row; the columns are all alike."""

    def cell(row: str, column: str) -> Cell:
        own = values[f"{row}_{column}"]
        seeds = tuple(own) if isinstance(own, list) else ()
        return Cell(measured=sum(own) / len(own) if seeds else own, seeds=seeds)

    return cell


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ({"a_x": 100.0, "b_x": 110.0}, Verdict.HOLDS),
        ({"a_x": 110.0, "b_x": 100.0}, Verdict.FAILS),
        ({"a_x": 100.0, "b_x": 102.0}, Verdict.UNTOLD),
        ({"a_x": [99.9, 100.0, 100.1], "b_x": [102.9, 103.0, 103.1]}, Verdict.HOLDS),
        ({"a_x": 100.0, "b_x": None}, Verdict.MISSING),
    ],
)
def test_a_difference_counts_above_two_standard_errors(
    values: dict[str, Any], verdict: Verdict
) -> None:
    claim = Claim(text="", rising=(("a", "x"), ("b", "x")))
    assert judged(claim, cells(**values), 0.01).verdict is verdict


def test_the_worst_pair_decides() -> None:
    chain = Claim(text="", rising=(("a", "x"), ("b", "x"), ("c", "x")))
    own = judged(chain, cells(a_x=1.0, b_x=2.0, c_x=1.5), 0.01)
    assert (own.verdict, own.ours) == (Verdict.FAILS, "1.00 < 2.00 > 1.50")
    own = judged(chain, cells(a_x=1.0, b_x=2.0, c_x=2.01), 0.01)
    assert (own.verdict, own.ours) == (Verdict.UNTOLD, "1.00 < 2.00 ≈ 2.01")


@pytest.mark.parametrize(
    ("first", "noise", "verdict"),
    [
        (120.0, 0.01, Verdict.HOLDS),  # far higher is not lower
        (99.0, 0.01, Verdict.HOLDS),
        (90.0, 0.01, Verdict.FAILS),
        (99.0, 0.02, Verdict.UNTOLD),  # 5 % lower could not be seen
    ],
)
def test_no_significant_decrease(first: float, noise: float, verdict: Verdict) -> None:
    claim = Claim(text="", not_lower=(("a", "x"), ("b", "x")))
    assert judged(claim, cells(a_x=first, b_x=100.0), noise).verdict is verdict


def test_numbers_of_one_training_count_above_a_tenth_of_a_per_cent() -> None:
    claim = Claim(text="", rising=(("a", "x"), ("b", "x")), exact=True)
    assert judged(claim, cells(a_x=100.0, b_x=100.2), 0.01).verdict is Verdict.HOLDS
    assert judged(claim, cells(a_x=100.0, b_x=100.05), 0.01).verdict is Verdict.UNTOLD
    again = Claim(text="", not_lower=(("a", "x"), ("b", "x")), exact=True)
    assert judged(again, cells(a_x=99.95, b_x=100.0), 0.01).verdict is Verdict.HOLDS
    assert judged(again, cells(a_x=99.8, b_x=100.0), 0.01).verdict is Verdict.FAILS
    quotient = Claim(text="", rising=(("a", "x", "y"), ("b", "x", "y")), exact=True)
    own = judged(quotient, cells(a_x=101.0, a_y=100.0, b_x=52.0, b_y=50.0), 0.01)
    assert (own.verdict, own.ours) == (Verdict.HOLDS, "+1.00 % < +4.00 %")


def test_the_papers_numbers_stand_beside_ours() -> None:
    claim = Claim(text="", rising=(("a", "x"), ("b", "x"), ("c", "x")))
    printed = {"a": "32.4", "b": "32.4", "c": "33.0"}
    own = judged(claim, lambda row, _: Cell(printed=printed[row]), 0.01)
    assert (own.verdict, own.paper) == (Verdict.MISSING, "32.4 = 32.4 < 33.0")


def test_the_noise_is_pooled_over_rows_with_seeds() -> None:
    assert pooled_noise([Cell(measured=3.0)]) is None
    one = [math.exp(x) for x in (0.0, 0.02)]
    two = [math.exp(5 + x) for x in (0.0, 0.0, 0.03)]
    pooled = pooled_noise([Cell(seeds=tuple(one)), Cell(seeds=tuple(two))])
    assert pooled == pytest.approx(math.sqrt((0.0002 + 0.0006) / 3))


def test_every_claim_names_cells_that_exist() -> None:
    for name, claims in load_claims().items():
        if name not in table_names():
            for claim in claims:
                assert judged_figure(claim, None, {}, 0.01).verdict is Verdict.MISSING
            continue
        table = load_table(name)
        labels = {row.label for row in table.rows}
        columns = {column.key for column in table.columns}
        for claim in claims:
            for row, *own in claim.terms:
                assert row in labels
                assert set(own) <= columns


def test_sums_of_the_cache_figures() -> None:
    ids = np.array([5, 6, 5, 2_000, 6], dtype=np.uint16)
    zero = np.zeros(4)
    losses = {
        "no cache": np.array([0.0, 1.0, 4.0, 3.0]),
        "cache of 1000": zero,
        "cache of 2000": zero,
    }
    own = sums(ids, losses)["no cache"]
    assert own["all tokens"] == 2.0
    assert own["gaps below 100"] == 1.0
    assert own["first occurrences"] == 1.0
    assert own["words of rank above 1000"] == 1.0


def figure_verdict(quantity: str, noise: float = 0.01, **own: float) -> Verdict:
    """The verdict on a claim about the model without a cache; kinds with _ for a space."""
    kinds = {kind.replace("_", " "): value for kind, value in own.items()}
    shares = dict.fromkeys(KINDS, 0.25)
    claim = Claim(text="", positive=(quantity, "no cache"))
    return judged_figure(claim, {"no cache": kinds}, shares, noise).verdict


def test_claims_about_the_cache_figures() -> None:
    # Two standard errors of two seeds, for a quarter of the tokens: 0.0071 nats.
    assert figure_verdict("gaps below 100", gaps_below_100=0.01) is Verdict.HOLDS
    assert figure_verdict("gaps below 100", gaps_below_100=0.005) is Verdict.UNTOLD
    assert figure_verdict("gaps below 100", 0.001, gaps_below_100=0.005) is Verdict.HOLDS
    assert figure_verdict("minus gaps below 100", gaps_below_100=0.01) is Verdict.FAILS
    rare = "words of rank above 1000".replace(" ", "_")
    for part, whole, verdict in (
        (0.3, 0.5, Verdict.HOLDS),
        (0.2, 0.5, Verdict.FAILS),
        (0.25, 0.5, Verdict.UNTOLD),
        (-0.4, -0.5, Verdict.FAILS),  # nothing is lost at all
    ):
        assert figure_verdict(MOST_RARE, **{rare: part, "all_tokens": whole}) is verdict


def test_shares_of_the_kinds_of_tokens() -> None:
    ids = np.random.default_rng(0).zipf(1.2, size=20_000) % 30_000
    zero = np.zeros(len(ids) - 1)
    losses = dict.fromkeys((*COMPARED, REFERENCE), zero)
    figures = {what: cache_effect(ids, losses, by).as_json() for what, by in CACHE_FIGURES.items()}
    found = shares(json.loads(json.dumps(figures)))
    gaps = token_gaps(ids)[1:]
    assert found.keys() == KINDS.keys()
    for kind, (by, first, after) in KINDS.items():
        values = ids[1:] + 1 if by == "tokens" else gaps
        exact = ((values >= first) & (values < after)).mean()
        assert found[kind] == pytest.approx(exact, abs=0.02)
    tree = json.loads(json.dumps(figures["cache-gaps"]))
    assert CacheEffect.from_json(tree) == cache_effect(ids, losses, "gaps")
