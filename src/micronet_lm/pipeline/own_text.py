"""A recipe for somebody's own text: from its amount, the time there is and this machine's pace.

`choose` is a function of its arguments only. `measure` is asked for the pace of a shape; the shapes
are tried from the largest that the amount of text can teach down to one that the time suffices for.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from micronet_lm.config import Recipe, parse_recipe
from micronet_lm.corpus.build import check_content, count
from micronet_lm.corpus.splits import DEFAULT_RATIO
from micronet_lm.corpus.textfiles import TextFiles
from micronet_lm.corpus.tokenizers import newest_tokenizer
from micronet_lm.errors import CorpusError
from micronet_lm.pipeline.costs import EXACT, SEARCHES
from micronet_lm.pipeline.speed import Speed

FEWEST_TOKENS = 2_000
"""Tokens of text below which nothing is trained."""

MEASURED_TOKENS = 50_000
"""Tokens that valid and test have at most: enough to measure on, and quick to read."""

ENOUGH_STEPS = 300
"""Steps that a shape must have time for; else a smaller one learns more."""

OVERHEAD = 40.0
"""Seconds of a pipeline that no step takes: processes, packing, accounting, the report."""

TABLE_TOKENS = 5_000_000
"""Training tokens up to which n-grams are counted, in memory."""

TABLE_BYTES = (20_000, 250_000)
"""Fewest and most bytes of the table of n-grams; between them, a byte per training token."""

_RARE = (1, 2, 3, 5)
"""Counts below which words may become unknown."""


@dataclass(frozen=True, kw_only=True)
class TextFacts:
    """A text in numbers."""

    source: str
    """The file, folder or pattern."""

    tokens: int
    """Tokens of the whole text."""

    words: Mapping[int, int]
    """Distinct words that occur at least so often, for each of a few counts."""


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A recipe, and why it is this one."""

    recipe: Recipe
    reasons: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class _Shape:
    """A size of model, and the amount of text that it takes to teach it."""

    tokens: int
    """Fewest tokens of training text."""
    width: int
    layers: int
    heads: int
    context: int
    dropout: float
    batch: int
    epochs: int
    """Most readings of the text: with more, a model of this size learns it by heart."""
    sparsity: float | None
    """Share of weights that are pruned; None if there are too few for pruning to be useful."""


SHAPES = (
    _Shape(
        tokens=0, width=32, layers=1, heads=2, context=17, dropout=0.2, batch=4, epochs=40,
        sparsity=None,
    ),
    _Shape(
        tokens=20_000, width=64, layers=2, heads=4, context=33, dropout=0.2, batch=8, epochs=30,
        sparsity=0.2,
    ),
    _Shape(
        tokens=200_000, width=96, layers=3, heads=4, context=49, dropout=0.1, batch=8, epochs=20,
        sparsity=0.358,
    ),
    _Shape(
        tokens=2_000_000, width=128, layers=4, heads=4, context=65, dropout=0.1, batch=8, epochs=10,
        sparsity=0.358,
    ),
    _Shape(
        tokens=20_000_000, width=192, layers=6, heads=6, context=97, dropout=0.0, batch=8, epochs=5,
        sparsity=0.358,
    ),
)  # fmt: skip
"""From small to large."""


def read_facts(source: str) -> TextFacts:
    """Count a text once; refuse one that is too short."""
    found = TextFiles(source, DEFAULT_RATIO)
    counts = count(found, newest_tokenizer(found.default_tokenizer))
    if counts.tokens.total() >= FEWEST_TOKENS:  # else `choose` says that there are too few
        check_content(counts, source)
    words = {least: sum(n >= least for n in counts.words.values()) for least in _RARE}
    return TextFacts(source=source, tokens=counts.tokens.total(), words=words)


def choose(facts: TextFacts, minutes: float, measure: Callable[[Recipe], Speed]) -> Choice:
    """Choose the recipe for a text and a time; `measure` tells the pace of a shape here."""
    if facts.tokens < FEWEST_TOKENS:
        raise CorpusError(
            f"{facts.source} has {facts.tokens:,} tokens, and a model needs at least "
            f"{FEWEST_TOKENS:,}: give more text"
        )
    share = float(f"{min(DEFAULT_RATIO[1], MEASURED_TOKENS / facts.tokens):.3g}")
    training = int(facts.tokens * (1 - 2 * share))
    taught = [shape for shape in SHAPES if shape.tokens <= training]
    for shape in reversed(taught):
        recipe = _recipe(facts, shape, share)
        speed = measure(recipe)
        steps = _affordable(recipe, speed, 60 * minutes, facts.tokens * share)
        if steps >= ENOUGH_STEPS:
            break
    most = max(1, shape.epochs * training // (recipe.train.batch * recipe.train.window))
    whole = max(20, min(steps, most))
    reasons = _reasons(facts, recipe, training, share, shape is taught[-1], minutes)
    read = whole * recipe.train.batch * recipe.train.window / training
    reasons += (
        f"{whole:,} steps in {_minutes(minutes)} at {speed.step_seconds:.2g} s per step here: the "
        f"text is read {read:.2g} times"
        + (", and more often would only memorize it" if whole < steps else "")
        + ("; more --minutes make a better model" if steps < ENOUGH_STEPS else ""),
    )
    return Choice(recipe=_with_steps(recipe, whole), reasons=reasons)


def _recipe(facts: TextFacts, shape: _Shape, share: float) -> Recipe:
    """Return the recipe of a shape, all but the number of steps."""
    least, words = _vocabulary(facts)
    training, measured = facts.tokens * (1 - 2 * share), facts.tokens * share
    cutoffs = [1000, 5000] if words > 8000 else [500] if words > 1500 else []
    widths = [shape.width, max(8, shape.width // 4), max(4, shape.width // 12)]
    # A window several times as long as the context, but several windows in the text.
    window = min(8 * (shape.context - 1), max(16, int(training) // (4 * shape.batch)))
    cache = int(min(2000, max(50, measured // 4)))
    tree: dict[str, Any] = {
        "corpus": {
            "source": facts.source,
            "min_count": least,
            "max_vocabulary": words,
            "split": [round(1 - 2 * share, 6), share, share],
        },
        "model": {
            "vocabulary": None,
            "cutoffs": cutoffs,
            "embedding_widths": widths[: len(cutoffs) + 1],
            "width": shape.width,
            "layers": shape.layers,
            "heads": shape.heads,
            "key_width": shape.width // shape.heads,
            "value_width": shape.width // shape.heads,
            "ffn_width": 3 * shape.width,
            "context": shape.context,
            "dropout": shape.dropout,
        },
        "cache": {"size": min(cache, 1000)},
        "train": {
            "batch": shape.batch,
            "window": window,
            "learning_rate": 0.004 if shape.width <= 128 else 0.002,
            "clip": 1.0,
        },
        # Both are kept only where a part of the validation split that was held back agrees.
        "search": {"cache_size": cache, "ramp": min(200, cache // 4), "temperature": True},
        "quantize": {"bits": 9, "steps": 1},
        "spelling": {},
    }
    if training <= TABLE_TOKENS:
        least, most = TABLE_BYTES
        tree["ngrams"] = {"budget": int(min(most, max(least, training)))}
    if shape.sparsity:
        tree["prune"] = {
            "sparsity": shape.sparsity,
            "analysed_tokens": int(min(3000, max(2, measured))),
            "train": {"learning_rate": 0.001},
        }
    return parse_recipe(tree, origin="the recipe for this text")


def _vocabulary(facts: TextFacts) -> tuple[int, int]:
    """Return the rarest count of a known word, and how many words the vocabulary may have."""
    rare = 2 if facts.tokens < 1_000_000 else 3 if facts.tokens < 20_000_000 else 5
    limit = min(60_000, max(500, facts.tokens // 20))
    return rare, max(3, min(facts.words[rare] + 2, limit))


def _affordable(recipe: Recipe, speed: Speed, seconds: float, measured: float) -> int:
    """Return the steps of the first training that the time suffices for.

    Six evaluations while it trains, two while it prunes, each split once after every stage, the
    search and the exact arithmetic of integers take time too, and the pruning a fifth of the steps.
    """
    reading = measured * (6 + 2 + 4 + SEARCHES + 2 * EXACT)
    if recipe.prune:
        matrices = 6 * recipe.model.layers + 3 * len(recipe.model.embedding_widths)
        reading += (9 * matrices + 1) * recipe.prune.analysed_tokens
    left = seconds - OVERHEAD - reading * speed.read_seconds
    return int(max(0.0, left) / speed.step_seconds * (0.8 if recipe.prune else 1))


def _with_steps(recipe: Recipe, steps: int) -> Recipe:
    """Return the recipe with all that is counted in steps."""
    tree = recipe.model_dump(mode="json")
    tree["train"] |= {
        "steps": steps,
        "warmup": max(1, steps // 10),
        "evaluate_every": max(1, steps // 6),
        "save_every": max(1, steps // 6),
    }
    if recipe.prune:
        pruning = max(4, steps // 4)
        tree["prune"] |= {"steps": max(1, pruning // 2), "every": max(1, pruning // 20)}
        tree["prune"]["train"] |= {
            "steps": pruning,
            "warmup": pruning // 10,
            "evaluate_every": max(1, pruning // 2),
            "save_every": max(1, pruning // 2),
        }
    return parse_recipe(tree, origin="the recipe for this text")


def _reasons(
    facts: TextFacts, recipe: Recipe, training: int, share: float, fits: bool, minutes: float
) -> tuple[str, ...]:
    model, corpus = recipe.model, recipe.corpus
    layers = "1 layer" if model.layers == 1 else f"{model.layers} layers"
    why = (
        "this much text cannot teach a larger one"
        if fits
        else f"a larger model would have fewer than {ENOUGH_STEPS} steps in {_minutes(minutes)}"
    )
    table = recipe.ngrams and recipe.ngrams.budget
    parts = [
        f"{training:,} tokens of training text: {layers} of width {model.width}, because {why}",
        f"{corpus.max_vocabulary:,} words, those that occur {corpus.min_count} times or more"
        + (" and are the most frequent" if _is_limited(facts, recipe) else ""),
        f"{share:.3g} of the text each for validation and test",
        *([f"up to {table:,} bytes of n-grams, if they help short texts"] if table else []),
    ]
    return tuple(parts)


def _is_limited(facts: TextFacts, recipe: Recipe) -> bool:
    least = recipe.corpus.min_count or 1
    return facts.words[least] + 2 > (recipe.corpus.max_vocabulary or 0)


def _minutes(minutes: float) -> str:
    return "1 minute" if minutes == 1 else f"{minutes:g} minutes"
