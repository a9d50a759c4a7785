"""What a hidden state depends on: exactly the last L(C−1)+1 tokens, in training and streaming."""

import pytest
import torch
from tests.support.shapes import TWO_BINS, changed

from micronet_lm.model import LanguageModel, StreamState
from micronet_lm.model.transformer import Attention


def small_model(*, layers: int = 3, context: int = 6, dropout: float = 0.0) -> LanguageModel:
    torch.manual_seed(1)
    model = LanguageModel(changed(TWO_BINS, layers=layers, context=context, dropout=dropout))
    for module in model.modules():
        if isinstance(module, Attention):
            torch.nn.init.normal_(module.positions)
    return model


@pytest.mark.parametrize(("layers", "context"), [(1, 4), (3, 6), (2, 1), (2, 50)])
def test_receptive_field_is_exact(layers: int, context: int) -> None:
    """Gradients reach back to the L(C−1)+1 last tokens, and all of them, and none before."""
    model = small_model(layers=layers, context=context).double()
    reach = layers * (context - 1) + 1
    assert model.config.reach == reach
    time = reach + 7
    embedded = torch.randn(1, time, 16, dtype=torch.float64, requires_grad=True)
    model.embedding.forward = lambda ids: embedded  # type: ignore[method-assign]
    hidden, _ = model(torch.zeros(1, time, dtype=torch.long))
    (gradient,) = torch.autograd.grad(hidden[0, -1].sum() + hidden[0, -1].square().sum(), embedded)
    touched = gradient[0].abs().sum(dim=1) > 0
    assert touched[-reach:].all()
    assert not touched[:-reach].any()


def test_causality() -> None:
    model = small_model()
    ids = torch.randint(60, (1, 40))
    before, _ = model(ids)
    changed = ids.clone()
    changed[0, 25] = (changed[0, 25] + 1) % 60
    after, _ = model(changed)
    torch.testing.assert_close(before[:, :25], after[:, :25], rtol=0, atol=0)
    assert not torch.allclose(before[:, 25], after[:, 25])


@pytest.mark.parametrize("chunk", [1, 2, 5, 6, 13, 48, 97])
def test_streaming_equals_training_mode(chunk: int) -> None:
    model = small_model()
    ids = torch.randint(60, (3, 130))
    whole, _ = model(ids)
    state: StreamState | None = None
    parts = []
    for low in range(0, ids.shape[1], chunk):
        hidden, state = model(ids[:, low : low + chunk], state)
        parts.append(hidden)
    torch.testing.assert_close(torch.cat(parts, dim=1), whole, rtol=1e-4, atol=1e-5)


def test_first_tokens_do_not_attend_to_padding() -> None:
    """The first token of a text sees only itself: its attention returns its own values."""
    model = small_model(layers=1)
    attention = next(m for m in model.modules() if isinstance(m, Attention))
    x = torch.randn(1, 1, 16)
    empty = StreamState.empty(model.config, 1)
    output, _, _ = attention(x, empty.keys[0], empty.values[0], 0)
    values = attention.qkv(x)[..., -10:]
    torch.testing.assert_close(output, attention.output(values))


def test_state_holds_the_last_keys_only() -> None:
    model = small_model()
    _, state = model(torch.randint(60, (2, 30)))
    assert state.seen == 5
    assert [tuple(k.shape) for k in state.keys] == [(2, 5, 2, 6)] * 3
    assert [tuple(v.shape) for v in state.values] == [(2, 5, 2, 5)] * 3
    assert not state.detach().keys[0].requires_grad


def test_dropout_acts_in_training_only() -> None:
    model = small_model(dropout=0.5)
    ids = torch.randint(60, (1, 20))
    model.train()
    assert not torch.equal(model(ids)[0], model(ids)[0])
    model.eval()
    assert torch.equal(model(ids)[0], model(ids)[0])
