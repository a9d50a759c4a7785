"""A quantized model: its arithmetic to the bit, its integers, and what is left out of it."""

from typing import Any

import numpy as np
import pytest
import torch
from tests.support.reference_arithmetic import Reference
from tests.support.shapes import PROJECTED
from torch import Tensor

from micronet_lm.compression.quantization.calibration import calibrate
from micronet_lm.config import CacheConfig, Place, QuantizeConfig
from micronet_lm.layout import widths
from micronet_lm.model import LanguageModel
from micronet_lm.model.integers import state_of_stored, stored_tensors
from micronet_lm.model.quantizers import Scheme
from micronet_lm.model.rounding import largest
from micronet_lm.model.state import StreamState
from micronet_lm.training import evaluate

IDS = np.random.default_rng(0).integers(90, size=400).astype(np.uint16)


def scheme(config: QuantizeConfig) -> Scheme:
    return Scheme(
        weights={name: (w.bits, w.scales) for name, w in widths(config, PROJECTED).items()},
        places=config.chosen_places,
        activation_bits=config.width_of_activations,
        learned_rate=config.learned_rate if config.learned else None,
    )


def plain(seed: int = 0) -> LanguageModel:
    """Random weights, large enough that everything matters; LayerNorms that are not trivial."""
    torch.manual_seed(seed)
    model = LanguageModel(PROJECTED, CacheConfig(size=25, theta=0.1, lam=0.3))
    for name, parameter in model.named_parameters():
        if parameter.ndim:
            torch.nn.init.normal_(parameter, std=0.4)
            if name.endswith("norm.weight"):
                parameter.data += 1
    return model.eval()


def quantized(**keys: Any) -> LanguageModel:
    config = QuantizeConfig(**{"calibration_tokens": 200, **keys})
    model = plain()
    model.quantize(scheme(config))
    calibrate(model, IDS, config)
    return model


def arrays(model: LanguageModel) -> dict[str, Any]:
    return {name: tensor.numpy() for name, tensor in stored_tensors(model).items()}


def states(model: LanguageModel, chunk: int, words: int = 60) -> Tensor:
    state, found = None, []
    ids = torch.from_numpy(IDS[:words].astype(np.int64))
    with torch.inference_mode():
        for part in ids.split(chunk):
            hidden, state = model(part[None], state)
            found.append(hidden[0])
    return torch.cat(found)


CHOICES: dict[str, dict[str, Any]] = {
    "code": {"bits": 9},
    "text": {"bits": 9, "places": "text", "table_bits": 32, "tail_bits": 32},
    "three bits, all places": {"bits": 3, "places": tuple(Place), "position_bits": 3},
    "mixed": {"bits": 8, "table_bits": 5, "activation_bits": 11, "layer_bits": 4, "bias_bits": 16},
    "learned": {"bits": 5, "learned": True, "places": tuple(Place), "table_scales": "row"},
    "one step a matrix": {"bits": 16, "scales": "matrix"},
    "weights only": {"bits": 6, "places": "none"},
}


@pytest.mark.parametrize("choice", CHOICES)
def test_a_second_implementation_finds_the_same_bits(choice: str) -> None:
    config = QuantizeConfig(**CHOICES[choice])
    model = quantized(**CHOICES[choice])
    reference = Reference(PROJECTED, arrays(model), config.width_of_activations)
    theirs = np.stack([reference.hidden(int(word)) for word in IDS[:60]])
    ours = states(model, 60)
    assert np.array_equal(ours.numpy(), theirs)
    for number in range(3):
        with torch.inference_mode():
            mine = model.softmax._projected(number, ours)
        yours = np.stack([reference.projected(number, row) for row in theirs])
        assert np.array_equal(mine.numpy(), yours)
    # However the text is cut: the beginning, where keys are missing, included.
    for chunk in (1, 7, 50):
        assert torch.equal(states(model, chunk), ours)


def test_the_first_segment_is_masked_as_in_the_plain_model() -> None:
    """At 16 bits the quantized model is the plain one, from the first token on."""
    model, exact = quantized(bits=16), states(plain(), 60)
    ours = states(model, 60)
    torch.testing.assert_close(ours, exact, rtol=0.01, atol=0.01)
    ids = torch.from_numpy(IDS[:6].astype(np.int64))[None]
    empty = StreamState.empty(PROJECTED, 1)
    unmasked = StreamState(keys=empty.keys, values=empty.values, seen=6)
    with torch.inference_mode():
        attended, _ = model(ids, unmasked)  # zeros from before the text are attended to
    assert float((attended[0] - exact[:6]).abs().max()) > 0.1


@pytest.mark.parametrize("choice", CHOICES)
def test_integers_times_steps_are_what_is_computed_with(choice: str) -> None:
    config = QuantizeConfig(**CHOICES[choice])
    model, expected = quantized(**CHOICES[choice]), widths(config, PROJECTED)
    stored = stored_tensors(model)
    assert {n.removesuffix(".steps") for n in stored if n.endswith(".steps")} == set(expected)
    for name, parameter in model.named_parameters():
        if name.startswith("quantizers."):
            continue
        used = model.arithmetic.weight(parameter).detach()
        if name not in expected:
            assert torch.equal(used, parameter)
            assert torch.equal(stored[name], parameter)
            continue
        width, whole, scales = expected[name], stored[name], stored[f"{name}.steps"]
        assert whole.dtype == (torch.int8 if width.bits <= 8 else torch.int16)
        assert len(scales) == width.scales in {1, len(whole)}
        assert int(whole.long().abs().max()) <= largest(width.bits)
        assert not (scales.numpy().view(np.uint32) & ((1 << width.bits) - 1)).any()
        spread = scales.view(-1, *[1] * (whole.ndim - 1))
        assert torch.equal(used, whole.float() * spread)
        assert torch.equal(used.double(), whole.double() * spread.double())
    for place in config.chosen_places:
        rows = stored[f"activations.{place}"]
        assert rows.shape == (PROJECTED.quantizers(place), 2)
        assert bool((rows[:, 1] > 0).all())
        assert not (
            rows[:, 1].numpy().view(np.uint32) & ((1 << config.width_of_activations) - 1)
        ).any()


@pytest.mark.parametrize("choice", CHOICES)
def test_what_is_stored_comes_back(choice: str) -> None:
    model = quantized(**CHOICES[choice])
    stored = stored_tensors(model)
    again = LanguageModel(
        PROJECTED, CacheConfig(size=25), scheme(QuantizeConfig(**CHOICES[choice]))
    )
    again.load_state_dict(state_of_stored(again, stored))
    again.eval()
    second = stored_tensors(again)
    assert set(second) == set(stored)
    assert all(torch.equal(second[name], stored[name]) for name in stored)
    assert torch.equal(states(again, 60), states(model, 60))
    assert evaluate(again, IDS).loss == evaluate(model, IDS).loss


def test_zero_channels_zero_tensors_and_pruned_zeros() -> None:
    config = QuantizeConfig(bits=4, calibration_tokens=200)
    model = plain()
    with torch.no_grad():
        model.get_parameter("blocks.0.inner.weight")[3] = 0
        model.get_parameter("blocks.1.outer.weight").zero_()
        model.get_parameter("blocks.1.outer.bias").zero_()
        model.embedding.tables[1][:, ::2] = 0
    zeros = {n: p == 0 for n, p in model.named_parameters()}
    model.quantize(scheme(config))
    calibrate(model, IDS, config)
    stored = stored_tensors(model)
    assert stored["blocks.0.inner.weight.steps"][3] == 0
    assert not stored["blocks.1.outer.weight.steps"].any()
    assert stored["blocks.1.outer.bias.steps"].tolist() == [0.0]
    assert stored["activations.ffn_output"][1].tolist() == [0.0, 0.0]
    for name, zero in zeros.items():
        if f"{name}.steps" in stored:
            assert not stored[name][zero].any()
    reference = Reference(PROJECTED, arrays(model), 4)
    theirs = np.stack([reference.hidden(int(word)) for word in IDS[:60]])
    assert np.array_equal(states(model, 60).numpy(), theirs)
    assert np.isfinite(evaluate(model, IDS).loss)


def test_ranges_are_the_moving_average_of_the_largest_magnitudes() -> None:
    """Against hooks on a model that computes with the same weights and is not quantized."""
    model = quantized(bits=8, places=("relu", "hidden"), decay=0.0, calibration_tokens=399)
    with torch.no_grad():
        weights = {n: model.arithmetic.weight(p) for n, p in model.named_parameters()}
    bare = plain()
    names = dict(bare.named_parameters())
    bare.load_state_dict({n: w for n, w in weights.items() if n in names})
    caught: list[Tensor] = []
    bare.get_submodule("blocks.1.inner").register_forward_hook(
        lambda _, __, out: caught.append(out.relu())
    )
    with torch.inference_mode():
        hidden, _ = bare(torch.from_numpy(IDS[:-1].astype(np.int64))[None])
    stored = stored_tensors(model)
    torch.testing.assert_close(stored["activations.relu"][1, 0], caught[0].max())
    torch.testing.assert_close(stored["activations.hidden"][0, 0], hidden.abs().max())


def test_fitted_steps_have_the_smaller_error() -> None:
    exact = states(plain(), 60)
    for bits in (3, 4):
        errors = []
        for learned in (False, True):
            model = quantized(bits=bits, learned=learned)
            errors.append(float((states(model, 60) - exact).square().mean()))
            with torch.no_grad():
                weight = model.get_parameter("blocks.0.inner.weight")
                wrong = (model.arithmetic.weight(weight) - weight).square().mean()
            errors.append(float(wrong))
        assert errors[3] < errors[1]  # of a weight
        assert errors[2] < errors[0]  # of hidden states


def test_training_computes_nearly_the_same() -> None:
    """Sums in fp32 instead of doubles: a few integers fall to the other side, no more.

    One that falls changes an eighth of the numbers here; a place that is not rounded, two thirds.
    """
    model = quantized(bits=9)
    exact = states(model, 60)
    model.train()
    assert float((states(model, 60) == exact).float().mean()) > 0.6


def test_gradients_reach_all_weights_and_learned_steps() -> None:
    model = quantized(bits=5, learned=True, places=tuple(Place), position_bits=5).train()
    ids = torch.from_numpy(IDS[:101].astype(np.int64))[None]
    hidden, _ = model(ids[:, :-1])
    (-model.log_probability(hidden, ids[:, 1:]).mean()).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert bool((parameter.grad != 0).any()), name
