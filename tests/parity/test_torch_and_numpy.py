"""The NumPy engine gives the torch model's numbers: another computation of the same definition."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tests.support.shapes import SMALL, changed
from tests.support.torch_models import torch_model

from micronet_lm.artifact import PackedModel, write_packed
from micronet_lm.artifact.random_model import Choice, random_model
from micronet_lm.config import CODE_PLACES, TEXT_PLACES, Place
from micronet_lm.model import LanguageModel
from micronet_lm.runtime.reference import NumpyEngine
from micronet_lm.runtime.reference.network import Past
from micronet_lm.training.evaluation import token_losses

THREE_BINS = changed(SMALL, vocabulary=120, cutoffs=(20, 60), layers=3)
ONE_BIN = changed(THREE_BINS, cutoffs=(), embedding_widths=(16,))
NARROW = changed(THREE_BINS, embedding_widths=(12, 8, 4))
LONG = changed(THREE_BINS, context=400)
SHORT = changed(THREE_BINS, context=1)

MODELS = {
    "three bins": (THREE_BINS, Choice(seed=1)),
    "one bin": (ONE_BIN, Choice(seed=2)),
    "first bin projected": (NARROW, Choice(seed=3, cache=30)),
    "cache": (THREE_BINS, Choice(seed=4, cache=50)),
    "cache of 1": (THREE_BINS, Choice(seed=5, cache=1)),
    "cache longer than the text": (ONE_BIN, Choice(seed=6, cache=5000)),
    "pruned": (THREE_BINS, Choice(seed=7, sparsity=0.6, cache=20)),
    "context longer than the text": (LONG, Choice(seed=8)),
    "context of 1": (SHORT, Choice(seed=9, cache=10)),
    "integer weights": (THREE_BINS, Choice(seed=10, bits=4, cache=9, scale_per_row=True)),
    "4 bits": (THREE_BINS, Choice(seed=11, bits=4, cache=40, places=CODE_PLACES)),
    "8 bits by rows": (
        THREE_BINS,
        Choice(seed=12, bits=8, sparsity=0.4, cache=9, places=CODE_PLACES, scale_per_row=True),
    ),
    "9 bits": (NARROW, Choice(seed=13, bits=9, sparsity=0.4, cache=30, places=frozenset(Place))),
    "16 bits": (ONE_BIN, Choice(seed=14, bits=16, position_bits=16, places=frozenset(Place))),
    "as in the text": (
        NARROW,
        Choice(seed=15, bits=9, table_bits=32, bias_bits=32, cache=30, places=TEXT_PLACES),
    ),
    "some of it": (
        THREE_BINS,
        Choice(seed=16, bits=5, position_bits=3, activation_bits=7, places=[Place.QKV]),
    ),
    "activations only": (THREE_BINS, Choice(seed=17, activation_bits=6, places=CODE_PLACES)),
}
TEXT = np.random.default_rng(0).integers(0, 120, 400)
TOLERANCE = 1e-4


@pytest.fixture(scope="module", params=MODELS, ids=lambda name: name.replace(" ", "-"))
def packed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[PackedModel, Path]]:
    model = random_model(*MODELS[request.param])
    path = tmp_path_factory.mktemp("packed") / "model.safetensors"
    write_packed(path, model)
    yield model, path


def expected(model: LanguageModel, ids: NDArray[np.int64]) -> NDArray[np.float32]:
    parts = [losses.numpy() for losses, _ in token_losses(model, ids.astype(np.uint32), chunk=50)]
    return -np.concatenate(parts)


@pytest.mark.parametrize("chunk", [1, 7, 1024])
def test_scores_are_torchs(packed: tuple[PackedModel, Path], chunk: int) -> None:
    model, path = packed
    scores = NumpyEngine(path, chunk=chunk).score(TEXT)
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores, expected(torch_model(model), TEXT), atol=TOLERANCE)


def test_a_session_gives_torchs_distribution(packed: tuple[PackedModel, Path]) -> None:
    model, path = packed
    torched = torch_model(model)
    session = NumpyEngine(path).start()
    state = memory = before = None
    for number, token in enumerate(TEXT[:80].tolist()):
        word = torch.tensor([[token]])
        with torch.inference_mode():
            if before is not None:
                memory = torched.remember(memory, before, word)
            before, state = torched(word, state)
            wanted = torched.log_distribution(before, None, memory)[0, 0].numpy()
        session.feed(token)
        assert session.tokens == number + 1
        found = session.log_distribution()
        np.testing.assert_allclose(found, wanted, atol=TOLERANCE)
        assert np.exp(found, dtype=np.float64).sum() == pytest.approx(1, abs=1e-5)


def test_keys_values_and_hidden_states_are_torchs(packed: tuple[PackedModel, Path]) -> None:
    """Bit for bit: keys, values and hidden states of all tokens; else to the order of a sum."""
    model, path = packed
    tolerance = 0.0 if model.activations else 5e-5
    engine = NumpyEngine(path)
    found, past = engine.advance(TEXT, Past.empty(model.shape))
    with torch.inference_mode():
        hidden, state = torch_model(model)(torch.from_numpy(TEXT)[None])
    np.testing.assert_allclose(found.floats(), hidden[0].numpy(), rtol=0, atol=tolerance)
    qkv = model.activations.get(Place.QKV, np.ones((model.shape.layers, 2), np.float32))
    for layer in range(model.shape.layers):
        for own, torchs in ((past.keys, state.keys), (past.values, state.values)):
            wanted = torchs[layer][0].numpy()[-len(own[layer]) :][: len(own[layer])]
            np.testing.assert_allclose(own[layer] * qkv[layer, 1], wanted, rtol=0, atol=tolerance)


def test_stepping_and_scoring_agree(packed: tuple[PackedModel, Path]) -> None:
    _, path = packed
    engine = NumpyEngine(path)
    session, scores = engine.start(), []
    session.feed(int(TEXT[0]))
    for token in TEXT[1:].tolist():
        scores.append(session.log_probability(token))
        session.feed(token)
    np.testing.assert_allclose(scores, engine.score(TEXT), atol=TOLERANCE)


def test_many_tokens_are_one_by_one(packed: tuple[PackedModel, Path]) -> None:
    _, path = packed
    engine = NumpyEngine(path)
    one, many = engine.start(), engine.start()
    for token in TEXT[:90].tolist():
        one.feed(token)
    for part in (TEXT[:1], TEXT[1:3], TEXT[3:3], TEXT[3:90]):
        many.feed_many(part)
    assert one.tokens == many.tokens == 90
    np.testing.assert_allclose(one.log_distribution(), many.log_distribution(), atol=TOLERANCE)
