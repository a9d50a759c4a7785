"""Activations that are alive, and the state, against hand counts and the model's own state."""

import torch

from micronet_lm.accounting import Plan, carry_out, describe
from micronet_lm.accounting.memory import moments, state, transient
from micronet_lm.config import load_recipe
from micronet_lm.model.state import StreamState


def test_the_state_is_what_the_model_keeps() -> None:
    recipe = load_recipe("paper/student", {"cache.size": 2000})
    kept = StreamState.empty(recipe.model, 1, torch.device("meta"))
    held = state(describe(recipe, "student"))
    assert held.keys == sum(tensor.numel() for tensor in kept.keys)
    assert held.values == sum(tensor.numel() for tensor in kept.values)
    assert held.cache == 2000 * 256 + 2000
    assert held.size == held.keys + held.values + held.cache
    assert held.bytes == 4 * held.size


def test_quantized_activations_make_the_state_smaller() -> None:
    target = describe(load_recipe("paper/student", {"cache.size": 2000}), "student")
    narrow = state(carry_out(Plan(bits=9), target))
    assert narrow.bytes * 8 == (2 * 8 * 96 * 8 * 24 + 2000 * 256) * 9 + 2000 * 32


def test_most_is_alive_when_the_next_word_is_predicted() -> None:
    target = describe(load_recipe("paper/student", {"cache.size": 2000}), "student")
    held = transient(target)
    assert held.name == "prediction"
    assert held.size == 256 + 64 + 267_735 + 2 + 2000
    by_name = {moment.name: moment.size for moment in moments(target)}
    assert by_name["attention"] == 256 + 576 + 8 * 97 + 192
    assert by_name["feed-forward"] == 256 + 256 + 768
    # With few words and a long context, attention is where most is alive.
    small = {"model.vocabulary": 300, "model.cutoffs": [], "model.embedding_widths": [256]}
    wide = describe(load_recipe("paper/student", {**small, "model.context": 1025}), "wide")
    assert transient(wide).name == "attention"
