"""Knowledge distillation (section 4.1): the student learns from the text and from a teacher.

L_t(x_n) = (1 − λ_soft(t)) · L_hard(x_n) + λ_soft(t) · L_soft

L_hard is the cross-entropy of the true word and L_soft = −Σ_x P_teacher(x) log P(x) that of the
labelled words, wherever their bins lie, under the student's final distribution, its cache included.
The teacher's probabilities are not normalized: the rest of its distribution is left out.
"""

import torch
from torch import Tensor

from micronet_lm.compression.annealing import soft_weight
from micronet_lm.compression.softlabels import SoftLabels
from micronet_lm.config import DistillConfig, Recipe
from micronet_lm.corpus import Corpus
from micronet_lm.errors import ConfigError
from micronet_lm.model import LanguageModel, Memory
from micronet_lm.training import Batch, Input, Loss, Outcome, Run, train
from micronet_lm.training.device import on_device


class Distillation:
    """The objective: both losses from one computation of the student's distribution."""

    handles = frozenset({"distill"})

    def __init__(self, labels: SoftLabels, config: DistillConfig, steps: int) -> None:
        labels.check_recipe(config)
        self._labels, self._config, self._steps = labels, config, steps

    def __call__(
        self, model: LanguageModel, hidden: Tensor, batch: Batch, memory: Memory | None
    ) -> Loss:
        """Return the mixed loss of hidden states (B, T, D), and both parts of it."""
        length, count = batch.targets.shape[1], self._config.count
        labels = self._labels.windows(batch.starts.tolist(), length, count)
        words = on_device(labels.words, hidden.device)  # (B, T, K)
        weights = on_device(labels.weights, hidden.device)
        # The true word is one more asked word: so every bin's sum is computed once.
        asked = torch.cat([words, batch.targets.unsqueeze(2)], dim=2)
        logs = model.log_probabilities(hidden, asked, batch.targets, memory)  # (B, T, K + 1)
        hard = -logs[..., -1].mean()
        soft = -(weights * logs[..., :-1]).sum(dim=2).mean()
        weight = soft_weight(self._config, batch.step, self._steps)
        return Loss(
            total=(1 - weight) * hard + weight * soft,
            hard=hard,
            numbers={"soft_loss": soft, "soft_weight": weight},
        )


def distill(
    run: Run,
    recipe: Recipe,
    corpus: Corpus,
    labels: SoftLabels,
    *,
    amend: bool = False,
    quiet: bool = False,
) -> Outcome:
    """Train the student of a recipe with a section `distill`, in the one training loop.

    The run records its labels and refuses to resume with others. See `train` for the rest.
    """
    if recipe.distill is None:
        raise ConfigError(
            "the recipe has no section distill: give one of its keys to switch it on, such as "
            "--distill.weight_max 0.5"
        )
    labels.check_corpus(corpus)
    objective = Distillation(labels, recipe.distill, recipe.train.steps)
    inputs = {"labels": Input(path=labels.path, fingerprint=labels.fingerprint)}
    return train(run, recipe, corpus, objective=objective, inputs=inputs, amend=amend, quiet=quiet)
