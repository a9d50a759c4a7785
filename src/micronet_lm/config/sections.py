"""The sections of a recipe: frozen, keyword-only, each field documented where it stands.

Contradictions are refused on construction with a sentence that names the value, the limit and
the remedy. Symbols in parentheses are the paper's.
"""

from itertools import pairwise
from typing import Any, Literal, Self, get_args

from pydantic import Field, field_validator, model_validator

from micronet_lm.config.places import Place
from micronet_lm.config.quantization import QuantizeConfig
from micronet_lm.config.section import Section


class CorpusConfig(Section):
    """Which text, and how it becomes ids."""

    source: str = "python-docs"
    """`python-docs`, `wikitext-2`, `wikitext-103`, or a file, folder or glob of UTF-8 text."""

    tokenizer: Literal["wikitext", "word", "word-2"] | None = None
    """`wikitext` (white space) or `word` (ordinary text, by its newest version, `word-2`); the
    source's own when left out."""

    min_count: int | None = Field(default=None, ge=1)
    """Words seen less often in the training split become `<unk>`; the source's own default."""

    max_vocabulary: int | None = Field(default=None, ge=3)
    """At most so many entries, `<unk>` and `<eos>` included."""

    split: tuple[float, float, float] | None = None
    """Shares of train, valid and test in text without published splits; 0.9, 0.05 and 0.05 when
    left out."""


class ModelConfig(Section):
    """The shape of the transformer and of its adaptive embedding and softmax."""

    vocabulary: int | None = Field(default=None, ge=2)
    """Number of words; taken from the corpus when there is one."""

    cutoffs: tuple[int, ...] = ()
    """First word of every bin but the first; none means one bin: a full embedding."""

    embedding_widths: tuple[int, ...] = (256,)
    """Width of the embedding in every bin; one more than there are cutoffs."""

    width: int = Field(default=256, ge=1)
    """Width of the hidden states (d_model)."""

    layers: int = Field(default=8, ge=1)
    """Number of transformer blocks (L)."""

    heads: int = Field(default=8, ge=1)
    """Attention heads a block (h)."""

    key_width: int = Field(default=24, ge=1)
    """Width of a head's queries and keys (d_k)."""

    value_width: int = Field(default=24, ge=1)
    """Width of a head's values (d_v)."""

    ffn_width: int = Field(default=768, ge=1)
    """Inner width of the feed-forward part (d_ff)."""

    context: int = Field(default=97, ge=1)
    """Tokens that one layer attends to, the current one included (C)."""

    dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
    """Share of the embedding's and of every block part's outputs dropped in training."""

    @field_validator("cutoffs", "embedding_widths", mode="before")
    @classmethod
    def _one_is_a_list_too(cls, value: object) -> object:
        if isinstance(value, list):
            return tuple(value)
        return (value,) if isinstance(value, int) else value

    @model_validator(mode="after")
    def _bins_agree(self) -> Self:
        bins = len(self.cutoffs) + 1
        if len(self.embedding_widths) != bins:
            raise ValueError(
                f"embedding_widths has {len(self.embedding_widths)} entries but {len(self.cutoffs)}"
                f" cutoffs make {bins} bins; give one width a bin"
            )
        if any(width < 1 for width in self.embedding_widths):
            raise ValueError(f"embedding_widths {self.embedding_widths} must all be at least 1")
        if any(low >= high for low, high in pairwise((0, *self.cutoffs))):
            raise ValueError(f"cutoffs {self.cutoffs} must be positive and strictly increasing")
        if self.vocabulary is not None and self.cutoffs and self.cutoffs[-1] >= self.vocabulary:
            raise ValueError(
                f"the last cutoff {self.cutoffs[-1]} leaves no words for its bin in a vocabulary"
                f" of {self.vocabulary}; lower the cutoffs or raise the vocabulary"
            )
        return self

    @property
    def reach(self) -> int:
        """How many tokens a hidden state depends on: L(C−1)+1 (section 3.2)."""
        return self.layers * (self.context - 1) + 1

    def quantizers(self, place: Place) -> int:
        """How many activation quantizers belong to a place, over all layers."""
        if place is Place.HIDDEN:
            return 1
        if place is Place.PROJECTED:
            return sum(width != self.width for width in self.embedding_widths)
        return self.layers

    @property
    def bounds(self) -> tuple[int, ...]:
        """Edges of the bins: 0, the cutoffs, the vocabulary."""
        if self.vocabulary is None:
            raise ValueError("model.vocabulary is not known yet")
        return (0, *self.cutoffs, self.vocabulary)


class CacheConfig(Section):
    """The differentiable non-parametric cache (section 3.5); absent or of size 0 means none."""

    size: int = Field(default=2000, ge=0)
    """Last activations of the text that the cache holds (n_cache); 0 switches it off."""

    theta: float = Field(default=0.016, gt=0.0)
    """Sharpness of the similarity (θ), where learning begins."""

    lam: float = Field(default=0.07, gt=0.0, lt=1.0)
    """The cache's share of the prediction (λ), where learning begins."""

    ramp: int = Field(default=0, ge=0)
    """Activations with which the cache gets all of its share; with fewer it gets as much less. A
    smaller size ends it sooner. 0, as in the paper: all of the share from the first one on."""


class HebbianConfig(Section):
    """The Hebbian softmax (section 3.4; Rae et al. 2018); absent or of limit 0 means none."""

    gamma: float = Field(default=0.01, ge=0.0, le=1.0)
    """Smallest rate that a word's output row moves towards its activations with (γ)."""

    limit: int = Field(default=500, ge=0)
    """Sightings of a word after which its row moves no more (T); 0 switches the update off."""


class TrainConfig(Section):
    """The one training loop."""

    steps: int = Field(default=200_000, ge=1)
    """Optimizer steps (T)."""

    batch: int = Field(default=4, ge=1)
    """Sequences a step, over all processes."""

    window: int = Field(default=1152, ge=1)
    """Tokens of a sequence that are trained on jointly (C_e)."""

    accumulate: int = Field(default=1, ge=1)
    """Parts that a process computes its share of the batch in, one by one, to save memory."""

    learning_rate: float = Field(default=1e-3, gt=0.0)
    """Largest learning rate, reached at the end of the warm-up."""

    final_learning_rate: float = Field(default=0.0, ge=0.0)
    """Learning rate that the cosine decay ends at."""

    warmup: int = Field(default=1000, ge=0)
    """Steps over which the learning rate rises linearly from zero."""

    beta1: float = Field(default=0.9, ge=0.0, lt=1.0)
    """Adam's decay of the mean of gradients."""

    beta2: float = Field(default=0.999, ge=0.0, lt=1.0)
    """Adam's decay of the mean of squared gradients."""

    weight_decay: float = Field(default=0.0, ge=0.0)
    """Decoupled decay of all matrices; biases, norms and position tables are spared."""

    clip: float = Field(default=0.25, ge=0.0)
    """Largest norm of the whole gradient; 0 switches clipping off."""

    seed: int = Field(default=0, ge=0, lt=2**31)
    """Everything random in a run follows from it."""

    sampling: Literal["random", "stream"] = "random"
    """`random` windows of the text, or contiguous `stream`s that carry the state along."""

    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """Of training's matrix products; `auto` takes bfloat16 where a measurement shows that it works
    on this machine and is at least 1.1 times as fast (`micronet doctor` tells)."""

    evaluate_every: int = Field(default=1000, ge=1)
    """Steps between two evaluations on the validation split; the last step always has one."""

    save_every: int = Field(default=1000, ge=1)
    """Steps between two checkpoints; the last step always has one."""

    log_every: int = Field(default=10, ge=1)
    """Steps that one line of the metrics averages over."""

    @model_validator(mode="after")
    def _parts_agree(self) -> Self:
        if self.batch % self.accumulate:
            raise ValueError(
                f"accumulate {self.accumulate} must divide the batch of {self.batch} sequences"
            )
        if self.warmup >= self.steps:
            raise ValueError(
                f"warmup {self.warmup} must be shorter than the {self.steps} steps of the run"
            )
        if self.final_learning_rate > self.learning_rate:
            raise ValueError(
                f"final_learning_rate {self.final_learning_rate} must not exceed "
                f"learning_rate {self.learning_rate}"
            )
        return self


class TrainChanges(Section):
    """How a later stage's training differs from section `train`; what is left out stays."""

    steps: int | None = Field(default=None, ge=1)
    """Optimizer steps."""

    batch: int | None = Field(default=None, ge=1)
    """Sequences a step, over all processes."""

    learning_rate: float | None = Field(default=None, gt=0.0)
    """Largest learning rate."""

    warmup: int | None = Field(default=None, ge=0)
    """Steps over which the learning rate rises linearly from zero."""

    evaluate_every: int | None = Field(default=None, ge=1)
    """Steps between two evaluations on the validation split."""

    save_every: int | None = Field(default=None, ge=1)
    """Steps between two checkpoints."""


class DistillConfig(Section):
    """Learning from a teacher's soft labels beside the text (section 4.1); absent means none."""

    teacher: str | None = None
    """Preset or recipe of the teacher, which is trained and asked for soft labels before."""

    method: Literal["top-k", "sampled"] = "top-k"
    """The teacher's `top-k` words with their probabilities, or `sampled` words without bias."""

    top_k: int = Field(default=30, ge=1)
    """Words a token that are learned from; no more than the soft labels hold."""

    samples: int = Field(default=12, ge=1)
    """Words a token that were drawn from the teacher's distribution; for `sampled` labels."""

    weight_max: float = Field(default=0.5, ge=0.0, le=1.0)
    """Weight of the soft labels at the first step (λ_max); the text itself has the rest."""

    weight_min: float = Field(default=0.05, ge=0.0, le=1.0)
    """Weight that it falls towards, linearly, over the run's steps (λ_min)."""

    @model_validator(mode="after")
    def _the_weight_falls(self) -> Self:
        if self.weight_min > self.weight_max:
            raise ValueError(
                f"weight_min {self.weight_min} must not exceed weight_max {self.weight_max}: "
                "the weight falls from the one to the other"
            )
        return self

    @property
    def count(self) -> int:
        """Labels a token."""
        return self.top_k if self.method == "top-k" else self.samples


class PruneConfig(Section):
    """Gradual pruning of a trained model while it is trained further (section 4.2)."""

    sparsity: float = Field(default=0.358, ge=0.0, lt=1.0)
    """Share of all matrices' weights that are zero in the end (ρ)."""

    initial_sparsity: float = Field(default=0.16, ge=0.0, lt=1.0)
    """Share that is removed before the first step (ρ_0), but no more than in the end."""

    allocation: Literal["slope", "threshold", "uniform"] = "slope"
    """How the matrices share it: by the `slope` of their sensitivity, where the next weight costs
    least; up to one `threshold` of perplexity, as in the paper; or `uniform`."""

    steps: int | None = Field(default=None, ge=1)
    """Steps over which the sparsity rises; all steps of the run when left out."""

    every: int = Field(default=1000, ge=1)
    """Steps between two removals."""

    analysed_tokens: int = Field(default=20_000, ge=2)
    """First tokens of the validation split that a pipeline's sensitivity analysis measures on."""

    train: TrainChanges | None = None
    """How a pipeline trains while it prunes."""


class SearchConfig(Section):
    """The search for the cache's best parameters after training (appendix F)."""

    cache_size: int = Field(default=3000, ge=1)
    """Size of the cache that they are searched for (n_cache of the search)."""

    ramp: int | None = Field(default=None, ge=0)
    """The ramp that the cache gets (`cache.ramp`), for models that also read short texts; when left
    out, it keeps the one that it was trained with."""

    confirm: bool = True
    """Search on the first half of the validation split, and keep what was trained where that is
    better on the second half. `false`, the paper's way: search on all of it and keep what is found.
    """


class Recipe(Section):
    """Everything that makes a model. A section that is absent switches its technique off."""

    corpus: CorpusConfig = CorpusConfig()
    """Which text, and how it becomes ids."""

    model: ModelConfig = ModelConfig()
    """The shape of the model."""

    cache: CacheConfig | None = None
    """The cache of recent activations; absent means none."""

    hebbian: HebbianConfig | None = None
    """The Hebbian update of the softmax; absent means none."""

    train: TrainConfig = TrainConfig()
    """How the model is trained."""

    distill: DistillConfig | None = None
    """The teacher's part in the training; absent means none."""

    prune: PruneConfig | None = None
    """Gradual pruning; absent means none."""

    search: SearchConfig | None = None
    """The search for the cache's parameters; absent means none."""

    quantize: QuantizeConfig | None = None
    """Quantization; absent means none."""

    @field_validator("cache")
    @classmethod
    def _an_empty_cache_is_none(cls, cache: CacheConfig | None) -> CacheConfig | None:
        return cache if cache and cache.size else None

    @field_validator("hebbian")
    @classmethod
    def _an_update_that_never_acts_is_none(
        cls, hebbian: HebbianConfig | None
    ) -> HebbianConfig | None:
        return hebbian if hebbian and hebbian.limit else None

    @model_validator(mode="after")
    def _sections_agree(self) -> Self:
        limit, cutoffs = self.corpus.max_vocabulary, self.model.cutoffs
        if limit is not None and cutoffs and limit <= cutoffs[-1]:
            raise ValueError(
                f"corpus.max_vocabulary {limit} is not above the last of model.cutoffs {cutoffs};"
                " raise it or lower the cutoffs"
            )
        if self.prune and self.prune.steps:
            own = self.prune.train and self.prune.train.steps
            limit, key = (own, "prune.train.steps") if own else (self.train.steps, "train.steps")
            if self.prune.steps > limit:
                raise ValueError(f"prune.steps {self.prune.steps} must not exceed {limit} {key}")
        return self


def section_type(annotation: Any) -> type[Section] | None:
    """Return the section that a field holds, or may hold; nothing when it holds a value."""
    for kind in (annotation, *get_args(annotation)):
        if isinstance(kind, type) and issubclass(kind, Section):
            return kind
    return None
