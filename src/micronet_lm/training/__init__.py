"""The one training loop, its checkpoints and evaluation."""

from micronet_lm.training.evaluation import (
    Evaluation,
    evaluate,
    hidden_states,
    perplexity,
    token_losses,
)
from micronet_lm.training.loop import Outcome, train
from micronet_lm.training.plugins import Batch, Loss, Objective, Plugin, next_word_loss
from micronet_lm.training.run import Input, Run

__all__ = [
    "Batch",
    "Evaluation",
    "Input",
    "Loss",
    "Objective",
    "Outcome",
    "Plugin",
    "Run",
    "evaluate",
    "hidden_states",
    "next_word_loss",
    "perplexity",
    "token_losses",
    "train",
]
