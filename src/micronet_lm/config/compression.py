"""The sections of a recipe that compress: distillation, pruning, and the search after training."""

from typing import Literal, Self

from pydantic import Field, model_validator

from micronet_lm.config.section import Section


class TrainChanges(Section):
    """Changes of a later stage to section `train`; keys left out keep their values."""

    steps: int | None = Field(default=None, ge=1)
    """Optimizer steps."""

    batch: int | None = Field(default=None, ge=1)
    """Sequences per step, over all processes."""

    learning_rate: float | None = Field(default=None, gt=0.0)
    """Largest learning rate."""

    warmup: int | None = Field(default=None, ge=0)
    """Steps over which the learning rate rises linearly from zero."""

    evaluate_every: int | None = Field(default=None, ge=1)
    """Steps between two evaluations on the validation split."""

    save_every: int | None = Field(default=None, ge=1)
    """Steps between two checkpoints."""


class DistillConfig(Section):
    """Learning from a teacher's soft labels and the text (section 4.1); absent means none."""

    teacher: str | None = None
    """Preset or recipe of the teacher, which a pipeline trains first to compute soft labels."""

    method: Literal["top-k", "sampled"] = "top-k"
    """The teacher's `top-k` words with their probabilities, or an unbiased `sampled` set."""

    top_k: int = Field(default=30, ge=1)
    """Words per token to learn from; at most as many as the soft labels have."""

    samples: int = Field(default=12, ge=1)
    """Words per token drawn from the teacher's distribution; for `sampled` labels."""

    weight_max: float = Field(default=0.5, ge=0.0, le=1.0)
    """Weight of the soft labels at the first step (λ_max); the text has the rest."""

    weight_min: float = Field(default=0.05, ge=0.0, le=1.0)
    """Weight of the soft labels at the end, after a linear decrease (λ_min)."""

    @model_validator(mode="after")
    def _the_weight_falls(self) -> Self:
        if self.weight_min > self.weight_max:
            raise ValueError(
                f"weight_min must not exceed weight_max {self.weight_max}, got {self.weight_min}: "
                "lower it"
            )
        return self

    @property
    def count(self) -> int:
        """Number of labels per token."""
        return self.top_k if self.method == "top-k" else self.samples


class PruneConfig(Section):
    """Gradual pruning of a trained model during further training (section 4.2)."""

    sparsity: float = Field(default=0.358, ge=0.0, lt=1.0)
    """Share of the `weights` that are zero at the end: ρ = Σ|φ|ρ_φ / Σ|φ| over φ in Φ."""

    weights: Literal["matrices", "all"] = "matrices"
    """The weights Φ that ρ is a share of. `matrices`: all matrices but position tables; each may be
    pruned. `all`, as the authors count: all weights but LayerNorm's. Of these, tail bins' biases
    may be pruned too, but no position tables, other biases, last bin's projections or entries for
    tail bins."""

    initial_sparsity: float = Field(default=0.16, ge=0.0, lt=1.0)
    """Share that is zero before the first step (ρ_0); at most `sparsity`."""

    allocation: Literal["slope", "threshold", "uniform"] = "slope"
    """How the sparsity is divided among the matrices: by the `slope` of their sensitivity, so that
    the next weight costs least; up to one `threshold` of perplexity, as in the paper; or
    `uniform`."""

    steps: int | None = Field(default=None, ge=1)
    """Steps over which the sparsity rises; all steps of the run if left out."""

    every: int = Field(default=1000, ge=1)
    """Steps between two prunings."""

    analysed_tokens: int = Field(default=20_000, ge=2)
    """Number of first validation tokens used by a pipeline's sensitivity analysis."""

    train: TrainChanges | None = None
    """Changes to section `train` while a pipeline prunes."""


class SearchConfig(Section):
    """The search for the cache's best parameters after training (appendix F)."""

    cache_size: int = Field(default=3000, ge=1)
    """Size of the cache whose parameters are searched (n_cache of the search)."""

    ramp: int | None = Field(default=None, ge=0)
    """New ramp of the cache (`cache.ramp`), for models that also read short texts; that of the
    training if left out."""

    fade: int | None = Field(default=None, ge=0, le=2**24)
    """New fade of the cache (`cache.fade`): a larger cache needs votes that fade; that of the
    training if left out."""

    confirm: bool = True
    """Search on the first half of the validation split, and keep what was trained where that is
    better on the second half. `false`, the paper's way: search on all of it and keep what is found.
    """

    again: bool = False
    """Search once more after quantization; the paper found that this does not help."""

    temperature: bool = False
    """First search for a temperature of the softmax and fold it into the weights: a model that has
    read a small text many times is too sure of itself."""
