"""The one training loop, its checkpoints and evaluation."""

from micronet_lm.training.evaluation import Evaluation, evaluate, perplexity
from micronet_lm.training.loop import Outcome, train
from micronet_lm.training.plugins import Batch, Objective, Plugin, next_word_loss
from micronet_lm.training.run import Run

__all__ = [
    "Batch",
    "Evaluation",
    "Objective",
    "Outcome",
    "Plugin",
    "Run",
    "evaluate",
    "next_word_loss",
    "perplexity",
    "train",
]
