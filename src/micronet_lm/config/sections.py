"""The sections of a recipe: frozen, keyword-only, with a docstring for each field.

Contradictions are refused on construction, in one sentence with the value, the limit and the
remedy. Symbols in parentheses are the paper's.
"""

from itertools import pairwise
from typing import Any, Literal, Self, get_args

from pydantic import Field, field_validator, model_validator

from micronet_lm.config.cluster import ClusterConfig
from micronet_lm.config.compression import DistillConfig, PruneConfig, SearchConfig
from micronet_lm.config.ngrams import NgramsConfig
from micronet_lm.config.packing import PackConfig
from micronet_lm.config.places import Place
from micronet_lm.config.quantization import QuantizeConfig
from micronet_lm.config.section import Section
from micronet_lm.config.spelling import SpellingConfig

LARGEST_SIZE = 2**31 - 1
"""Largest width, length or number of words of a model, in recipes and packed files."""


class CorpusConfig(Section):
    """The text and its conversion to ids."""

    source: str = "python-docs"
    """`python-docs`, `wikitext-2`, `wikitext-103`, or a file, folder or glob of UTF-8 text."""

    tokenizer: Literal["wikitext", "word", "word-2"] | None = None
    """`wikitext` (white space) or `word` (ordinary text, by its newest version, `word-2`); the
    source's default if left out."""

    min_count: int | None = Field(default=None, ge=1)
    """Words with fewer occurrences in the training split become `<unk>`; the source's default if
    left out."""

    max_vocabulary: int | None = Field(default=None, ge=3)
    """Largest size of the vocabulary, `<unk>` and `<eos>` included."""

    split: tuple[float, float, float] | None = None
    """Shares of train, valid and test in text without published splits; 0.9, 0.05 and 0.05 when
    left out."""


class ModelConfig(Section):
    """The shape of the transformer and of its adaptive embedding and softmax."""

    vocabulary: int | None = Field(default=None, ge=2, le=LARGEST_SIZE)
    """Number of words; taken from the corpus if there is one."""

    cutoffs: tuple[int, ...] = ()
    """First word of every bin but the first; none means one bin, a full embedding."""

    embedding_widths: tuple[int, ...] = (256,)
    """Width of the embedding in each bin: one entry more than `cutoffs`."""

    width: int = Field(default=256, ge=1, le=LARGEST_SIZE)
    """Width of the hidden states (d_model)."""

    layers: int = Field(default=8, ge=1, le=LARGEST_SIZE)
    """Number of transformer blocks (L)."""

    heads: int = Field(default=8, ge=1, le=LARGEST_SIZE)
    """Attention heads per block (h)."""

    key_width: int = Field(default=24, ge=1, le=LARGEST_SIZE)
    """Width of a head's queries and keys (d_k)."""

    value_width: int = Field(default=24, ge=1, le=LARGEST_SIZE)
    """Width of a head's values (d_v)."""

    ffn_width: int = Field(default=768, ge=1, le=LARGEST_SIZE)
    """Inner width of the feed-forward part (d_ff)."""

    context: int = Field(default=97, ge=1, le=LARGEST_SIZE)
    """Tokens that one layer attends to, the current one included (C)."""

    dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
    """Share of activations dropped in training, at the places of `dropout_places`."""

    dropout_places: Literal["sublayers", "code"] = "sublayers"
    """Outputs of the embedding and of each sublayer, or, as in the authors' `code`, also those of
    the ReLU and of the last layer."""

    scale_embedding: bool = False
    """Whether input embeddings are multiplied by √d_model, as in the authors' code; the paper does
    not say so. For training and evaluation only: a packed file has no such factor."""

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
                f" cutoffs make {bins} bins: give one width per bin"
            )
        if any(not 1 <= width <= LARGEST_SIZE for width in self.embedding_widths):
            raise ValueError(
                f"embedding_widths must all be from 1 to {LARGEST_SIZE}, got"
                f" {self.embedding_widths}"
            )
        if any(low >= high for low, high in pairwise((0, *self.cutoffs))):
            raise ValueError(f"cutoffs must be positive and increasing, got {self.cutoffs}")
        if self.vocabulary is not None and self.cutoffs and self.cutoffs[-1] >= self.vocabulary:
            raise ValueError(
                f"the last cutoff must be below the vocabulary of {self.vocabulary}, got"
                f" {self.cutoffs[-1]}: lower the cutoffs or raise the vocabulary"
            )
        return self

    @property
    def reach(self) -> int:
        """Number of tokens a hidden state depends on: L(C−1)+1 (section 3.2)."""
        return self.layers * (self.context - 1) + 1

    def quantizers(self, place: Place) -> int:
        """Return the number of activation quantizers of a place, over all layers."""
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
    """Number of last hidden states that the cache holds (n_cache); 0 switches it off."""

    theta: float = Field(default=0.016, gt=0.0)
    """Sharpness of the similarity (θ) at the beginning of training."""

    lam: float = Field(default=0.07, gt=0.0, lt=1.0)
    """The cache's share of the prediction (λ) at the beginning of training."""

    trained: bool = True
    """Whether θ and λ are trained with the model (section 3.5) or keep their first values."""

    ramp: int = Field(default=0, ge=0)
    """Number of hidden states from which the cache has its whole share; with only m, its share is
    λ · m / ramp. At most `size` counts. 0, as in the paper, gives the whole share at once."""

    fade: int = Field(default=0, ge=0, le=2**24)
    """Number of tokens in which the vote of a hidden state shrinks to 1/e, so that recent words
    count more; 0, as in the paper, lets none shrink."""


class HebbianConfig(Section):
    """The Hebbian softmax (section 3.4; Rae et al. 2018); absent or with limit 0 means none."""

    gamma: float = Field(default=0.01, ge=0.0, le=1.0)
    """Smallest rate at which a word's output row moves towards its hidden states (γ)."""

    limit: int = Field(default=500, ge=0)
    """Occurrences of a word after which its row is not updated any more (T); 0 switches it off."""


class TrainConfig(Section):
    """The one training loop."""

    steps: int = Field(default=200_000, ge=1)
    """Optimizer steps (T)."""

    batch: int = Field(default=4, ge=1)
    """Sequences per step, over all processes."""

    window: int = Field(default=1152, ge=1)
    """Consecutive tokens of a sequence that are trained on jointly (C_e)."""

    accumulate: int = Field(default=1, ge=1)
    """Parts in which a process computes its share of the batch, one after the other, to save
    memory."""

    learning_rate: float = Field(default=1e-3, gt=0.0)
    """Largest learning rate, reached at the end of the warm-up."""

    final_learning_rate: float = Field(default=0.0, ge=0.0)
    """Learning rate at the end of the cosine decay."""

    warmup: int = Field(default=1000, ge=0)
    """Steps over which the learning rate rises linearly from zero."""

    optimizer: Literal["adam", "muon"] = "adam"
    """`adam` for all weights, as in the paper, or `muon` for the layers' matrices and Adam for the
    rest."""

    beta1: float = Field(default=0.9, ge=0.0, lt=1.0)
    """Adam's decay of the mean of gradients."""

    beta2: float = Field(default=0.999, ge=0.0, lt=1.0)
    """Adam's decay of the mean of squared gradients."""

    weight_decay: float = Field(default=0.0, ge=0.0)
    """Decoupled decay of all matrices, but not of biases, norms and position tables."""

    clip: float = Field(default=0.25, ge=0.0)
    """Largest norm of the whole gradient; 0 switches clipping off."""

    seed: int = Field(default=0, ge=0, lt=2**31)
    """Seed of everything random in a run."""

    sampling: Literal["random", "stream"] = "random"
    """`random` windows of the text, or contiguous `stream`s that keep the state between steps."""

    beginnings: float = Field(default=0.0, ge=0.0, le=1.0)
    """Share of the random windows that begin at a line's beginning, for models that are asked about
    texts of a few words; short windows (`window`) have more of such words."""

    prefix: int = Field(default=0, ge=0)
    """Tokens before each random window that are read without gradients, so that its first tokens
    have keys, values and a filled cache; 0, as in the paper, begins a window with nothing."""

    precision: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """Precision of training's matrix products; `auto` chooses bfloat16 if a measurement shows that
    it works on this machine and is at least 1.1 times as fast (see `micronet doctor`). On a GPU it
    is bfloat16 where the GPU multiplies that, and float16 with a scaled loss elsewhere."""

    evaluate_every: int = Field(default=1000, ge=1)
    """Steps between two evaluations on the validation split; the last step always has one."""

    save_every: int = Field(default=1000, ge=1)
    """Steps between two checkpoints; the last step always has one."""

    log_every: int = Field(default=10, ge=1)
    """Steps per line of the metrics, which holds their mean."""

    @model_validator(mode="after")
    def _parts_agree(self) -> Self:
        if self.batch % self.accumulate:
            raise ValueError(
                f"accumulate must divide the batch of {self.batch} sequences, got {self.accumulate}"
            )
        if self.warmup >= self.steps:
            raise ValueError(
                f"warmup must be shorter than the run's {self.steps} steps, got {self.warmup}"
            )
        if self.beginnings and self.sampling == "stream":
            raise ValueError(
                f"beginnings {self.beginnings} needs random windows, but sampling is stream; "
                "set one of them otherwise"
            )
        if self.prefix and (self.sampling == "stream" or self.beginnings):
            other = "streams" if self.sampling == "stream" else "windows at beginnings of lines"
            raise ValueError(
                f"prefix {self.prefix} is for random windows in the middle of a text, but there "
                f"are {other}; set prefix 0, or sampling random and beginnings 0"
            )
        if self.final_learning_rate > self.learning_rate:
            raise ValueError(
                f"final_learning_rate must not exceed learning_rate {self.learning_rate}, got "
                f"{self.final_learning_rate}"
            )
        return self


class Recipe(Section):
    """Everything that makes a model. A section that is absent switches its technique off."""

    corpus: CorpusConfig = CorpusConfig()
    """The text and its conversion to ids."""

    model: ModelConfig = ModelConfig()
    """The shape of the model."""

    cache: CacheConfig | None = None
    """The cache of recent hidden states; absent means none."""

    hebbian: HebbianConfig | None = None
    """The Hebbian update of the softmax; absent means none."""

    train: TrainConfig = TrainConfig()
    """The training."""

    distill: DistillConfig | None = None
    """Distillation; absent means none."""

    prune: PruneConfig | None = None
    """Gradual pruning; absent means none."""

    search: SearchConfig | None = None
    """The search for the cache's parameters; absent means none."""

    quantize: QuantizeConfig | None = None
    """Quantization; absent means none."""

    ngrams: NgramsConfig | None = None
    """A table of n-grams in the packed model; absent means none."""

    spelling: SpellingConfig | None = None
    """A model of the spelling of words outside the vocabulary; absent means none."""

    pack: PackConfig | None = None
    """The form of the packed file; absent means integers of equal widths and plain words."""

    cluster: ClusterConfig | None = None
    """What the jobs of single stages ask of a cluster; absent means what the estimate says."""

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
                f"corpus.max_vocabulary must be above the last of model.cutoffs {cutoffs}, got"
                f" {limit}: raise it or lower the cutoffs"
            )
        if self.search and self.search.again and not self.quantize:
            raise ValueError(
                "search.again is a search after quantization, but there is no section quantize: "
                "give one of its keys, such as quantize.bits, or leave search.again out"
            )
        if self.prune and self.prune.steps:
            own = self.prune.train and self.prune.train.steps
            limit, key = (own, "prune.train.steps") if own else (self.train.steps, "train.steps")
            if self.prune.steps > limit:
                raise ValueError(
                    f"prune.steps must not exceed {limit} {key}, got {self.prune.steps}"
                )
        return self


def section_type(annotation: Any) -> type[Section] | None:
    """Return the section type of a field, or None for a field that holds a value."""
    for kind in (annotation, *get_args(annotation)):
        if isinstance(kind, type) and issubclass(kind, Section):
            return kind
    return None
