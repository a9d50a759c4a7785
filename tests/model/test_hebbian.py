"""The Hebbian update: exactly the rows it should, by the amount that the formula says."""

import itertools

import pytest
import torch
from tests.support.shapes import EVEN_BINS, SMALL, changed
from torch import Tensor

from micronet_lm.model import LanguageModel
from micronet_lm.model.hebbian import hebbian_update

GAMMA, LIMIT = 0.2, 6


def model() -> LanguageModel:
    torch.manual_seed(1)
    return LanguageModel(changed(EVEN_BINS, layers=1))


def place(word: int) -> tuple[int, int]:
    """The bin of a word and its row there."""
    return (0, word) if word < 20 else (1, word - 20) if word < 40 else (2, word - 40)


def expected_row(lm: LanguageModel, word: int, states: list[Tensor], seen: int) -> Tensor:
    """One word's row after the update, as a person would compute it."""
    number, place_in_bin = place(word)
    row = lm.tables[number][place_in_bin].detach().clone()
    weight = lm.softmax.projections[number].weight if number else torch.eye(16)
    activations = []
    for state in states:
        activation = torch.as_tensor(weight).detach() @ state
        activations.append(activation / activation.norm() * row.norm())
    mean = torch.stack(activations).mean(dim=0)
    rate = max(1 / (seen + 1), GAMMA)
    return (1 - rate) * row + rate * mean


def test_rows_move_by_the_formula_and_nothing_else_does() -> None:
    lm = model()
    seen = torch.zeros(60, dtype=torch.int32)
    seen[[3, 7, 25, 45, 50]] = torch.tensor([1, 100, 2, 30, 5], dtype=torch.int32)
    # 3 twice; 7, seen 100 times, no more; 12 for the first time; 25, 33, 45 and 50 in the tails.
    words = torch.tensor([3, 7, 12, 25, 3, 45, 33, 50])
    hidden = torch.randn(8, 16)
    before = {name: value.detach().clone() for name, value in lm.named_parameters()}
    expected = {
        word: expected_row(
            lm, word, [hidden[n] for n in range(8) if words[n] == word], int(seen[word])
        )
        for word in (3, 12, 25, 33, 50)
    }
    counts = seen.tolist()
    assert hebbian_update(lm, hidden, words, seen, gamma=GAMMA, limit=LIMIT) == 5

    for word, row in expected.items():
        number, place_in_bin = place(word)
        torch.testing.assert_close(lm.tables[number][place_in_bin].detach(), row)
        assert not torch.equal(row, before[f"embedding.tables.{number}"][place_in_bin])
        before[f"embedding.tables.{number}"][place_in_bin] = lm.tables[number][place_in_bin]
    for name, value in lm.named_parameters():
        assert torch.equal(value, before[name]), name
    for word in words.tolist():
        counts[word] += 1
    assert seen.tolist() == counts


def test_a_new_words_row_becomes_its_activation() -> None:
    lm = model()
    lm.tables[0].data[4] *= 3
    length = lm.tables[0][4].norm()
    hidden = torch.randn(1, 16)
    hebbian_update(lm, hidden, torch.tensor([4]), torch.zeros(60).int(), gamma=GAMMA, limit=LIMIT)
    torch.testing.assert_close(lm.tables[0][4].detach(), hidden[0] / hidden.norm() * length)


def test_after_the_limit_nothing_moves() -> None:
    lm = model()
    seen = torch.zeros(60, dtype=torch.int32)
    rows = []
    for _ in range(LIMIT + 3):
        hebbian_update(lm, torch.randn(1, 16), torch.tensor([30]), seen, gamma=GAMMA, limit=LIMIT)
        rows.append(lm.tables[1][10].detach().clone())
    moved = [not torch.equal(one, other) for one, other in itertools.pairwise(rows)]
    assert moved == [True] * (LIMIT - 1) + [False] * 3
    assert int(seen[30]) == LIMIT + 3


@pytest.mark.parametrize("what", ["activation", "row"])
def test_zeros_do_no_harm(what: str) -> None:
    lm = model()
    hidden = torch.randn(1, 16)
    if what == "activation":
        hidden.zero_()
    else:
        lm.tables[0].data[4] = 0
    seen = torch.zeros(60, dtype=torch.int32)
    hebbian_update(lm, hidden, torch.tensor([4]), seen, gamma=GAMMA, limit=LIMIT)
    assert torch.equal(lm.tables[0][4], torch.zeros(16))


def test_a_full_softmax_has_its_rows_moved_too() -> None:
    lm = LanguageModel(changed(SMALL, vocabulary=30, cutoffs=(), embedding_widths=(16,)))
    before = lm.tables[0].detach().clone()
    hebbian_update(
        lm, torch.randn(2, 16), torch.tensor([5, 29]), torch.zeros(30).int(), gamma=0.1, limit=3
    )
    moved = (lm.tables[0] != before).any(dim=1).nonzero().flatten()
    assert moved.tolist() == [5, 29]
