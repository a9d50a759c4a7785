"""Every setting of appendix A and of the authors' configurations, and every printed number.

This is a transcription of its own, beside the presets and `report/paper.yaml`: a slip in either
does not go unnoticed.
"""

from typing import Any

import pytest

from micronet_lm.config import Recipe, flat_keys, load_recipe
from micronet_lm.pipeline import take_apart
from micronet_lm.report.paper_counts import paper_count
from micronet_lm.report.tables import load_table, table_names

SHAPE = {
    "vocabulary": 267_735,
    "cutoffs": [3_500, 25_000],
    "embedding_widths": [256, 64, 4],
    "width": 256,
    "layers": 8,
    "heads": 8,
    "key_width": 24,
    "value_width": 24,
    "ffn_width": 768,
    "context": 97,
    "dropout": 0.0,
}
TEACHER = {
    "embedding_widths": [512, 256, 16],
    "width": 512,
    "layers": 16,
    "key_width": 64,
    "value_width": 64,
    "ffn_width": 1536,
}

# preset: (window, batch, cache, Hebbian)
TRAININGS: dict[str, tuple[int, int, int, bool]] = {
    "paper/student": (1152, 20, 0, False),
    "paper/cache-0": (1152, 20, 0, True),
    "paper/cache-1000": (1152, 15, 1000, True),
    "paper/cache-2000": (1152, 14, 2000, True),
    "paper/student-cache": (1152, 10, 2000, False),
    "paper/student-hebbian": (1152, 14, 2000, True),
    "paper/context-65": (576, 48, 0, False),
    "paper/context-97": (1152, 20, 0, False),
    "paper/context-129": (1152, 24, 0, False),
    "paper/context-257": (2304, 11, 0, False),
    "paper/context-513": (4608, 3, 0, False),
    "paper/context-1025": (9216, 1, 0, False),
    "paper/core-129": (1152, 24, 2000, True),
    "paper/core-257": (2304, 11, 2000, True),
    "paper/cache-0-11.0m": (1152, 16, 0, True),
    "paper/cache-0-15.2m": (1152, 15, 0, True),
    "paper/base": (2304, 2, 0, False),
    "paper/teacher": (1152, 14, 0, True),
    "paper/teacher-configuration": (1152, 14, 0, True),
    "paper/micronet": (1152, 10, 2000, True),
    **dict.fromkeys((f"paper/search-no-cache-{n}000" for n in (2, 4, 6)), (1152, 20, 0, True)),
    **dict.fromkeys((f"paper/search-{n}000" for n in (2, 4, 6, 8)), (1152, 14, 2000, True)),
}

# preset: (C, sparsity, searched cache, bits); what the rows of the compression table begin with.
COMPRESSED = {
    f"paper/compression-{context}-{sparsity}-{size}-{bits}": (context, sparsity, size, bits)
    for context, sparsity, size, bits in (
        (97, 0.239, 2000, 8),
        (97, 0.239, 2000, 9),
        (97, 0.358, 2000, 9),
        (97, 0.358, 2000, 10),
        (97, 0.358, 3000, 8),
        (97, 0.358, 3000, 9),
        (97, 0.358, 4000, 8),
        (97, 0.358, 4000, 9),
        (97, 0.477, 2000, 9),
        (97, 0.477, 4000, 10),
        (129, 0.358, 2000, 9),
        (129, 0.358, 2000, 10),
        (129, 0.358, 3000, 9),
        (257, 0.358, 2000, 9),
    )
}
DISTILLED = {97: (1152, 10, 2000, True), 129: (1152, 24, 2000, True), 257: (2304, 11, 2000, True)}
TRAININGS |= {preset: DISTILLED[own[0]] for preset, own in COMPRESSED.items()}

# The recipes of every row of our own, by table, from top to bottom.
ROWS = {
    "compression": list(COMPRESSED),
    "sota": ["paper/base", "paper/student", "paper/student-cache"],
    "context": [f"paper/context-{n}" for n in (1025, 513, 257, 129, 97, 65)],
    "cache": [f"paper/cache-{n}" for n in ("0", "0-11.0m", "0-15.2m", "1000", "2000")],
    "cache-search": [
        *(f"paper/search-no-cache-{n}000" for n in (2, 4, 6)),
        *(f"paper/search-{n}000" for n in (2, 2, 4, 6, 8)),
    ],
}

# preset: batch while pruning
PRUNINGS = {"paper/micronet": 9} | {
    preset: {97: 9, 129: 12, 257: 8}[own[0]] for preset, own in COMPRESSED.items()
}


def section(recipe: Recipe, name: str) -> dict[str, Any]:
    tree: dict[str, Any] = recipe.model_dump(mode="json")[name]
    return tree


def some(tree: dict[str, Any], keys: dict[str, Any]) -> dict[str, Any]:
    return {key: tree[key] for key in keys}


def test_the_students_shape() -> None:
    recipe = load_recipe("paper/student")
    assert some(section(recipe, "model"), SHAPE) == SHAPE
    assert recipe.model.reach == 8 * 96 + 1


@pytest.mark.parametrize("preset", TRAININGS)
def test_windows_batches_cache_and_hebbian_of_every_row(preset: str) -> None:
    recipe = load_recipe(preset)
    cache = recipe.cache.size if recipe.cache else 0
    own = (recipe.train.window, recipe.train.batch, cache, recipe.hebbian is not None)
    assert own == TRAININGS[preset]
    assert (recipe.train.steps, recipe.train.warmup, recipe.train.clip) == (200_000, 1_000, 0.5)
    assert (recipe.train.optimizer, recipe.train.sampling) == ("adam", "random")
    assert recipe.train.final_learning_rate == 0  # at the end of a cosine
    # Appendix A says 0.0001 for the student; every student configuration has 0.001.
    assert recipe.train.learning_rate == (0.0005 if preset == "paper/teacher" else 0.001)
    assert recipe.model.dropout == (0.1 if preset == "paper/teacher" else 0.0)
    if recipe.hebbian:
        assert (recipe.hebbian.gamma, recipe.hebbian.limit) == (0.01, 500)
    if recipe.cache:
        fixed = preset == "paper/student-cache"
        values = (recipe.cache.theta, recipe.cache.lam, recipe.cache.trained)
        assert values == ((0.024, 0.068, False) if fixed else (0.016, 0.07, True))
        assert recipe.cache.ramp == 0


@pytest.mark.parametrize("preset", COMPRESSED)
def test_context_sparsity_cache_and_bits_of_the_compression_table(preset: str) -> None:
    recipe = load_recipe(preset)
    assert recipe.prune and recipe.search and recipe.quantize
    found = (recipe.prune.sparsity, recipe.search.cache_size, recipe.quantize.bits)
    assert (recipe.model.context, *found) == COMPRESSED[preset]


@pytest.mark.parametrize("name", ROWS)
def test_every_row_is_made_by_its_own_recipe(name: str) -> None:
    table = load_table(name)
    rows = [row.recipe(table.columns[-1], "paper") for row in table.rows]
    assert [preset for preset in rows if preset] == ROWS[name]
    for preset, row in zip(COMPRESSED, load_table("compression").rows, strict=True):
        context, sparsity, size, bits = COMPRESSED[preset]
        assert row.label.startswith(f"C {context}, {sparsity}, {size}, {bits} bits")


@pytest.mark.parametrize(
    ("preset", "size"),
    [(f"paper/search-{n}000", n * 1000) for n in (2, 4, 6, 8)]
    + [(f"paper/search-no-cache-{n}000", n * 1000) for n in (2, 4, 6)],
)
def test_sizes_of_the_searched_caches(preset: str, size: int) -> None:
    search = load_recipe(preset).search
    assert search
    assert (search.cache_size, search.confirm) == (size, False)


def test_shapes_of_the_larger_models_without_a_cache() -> None:
    for preset, keys in (
        ("paper/cache-0-11.0m", {"key_width": 48, "value_width": 48, "ffn_width": 1024}),
        ("paper/cache-0-15.2m", {"width": 384, "embedding_widths": [384, 64, 16]}),
        ("paper/cache-0-15.2m", {"key_width": 36, "value_width": 36, "ffn_width": 768}),
        ("paper/base", {"cutoffs": [], "embedding_widths": [256], "context": 257}),
    ):
        assert some(section(load_recipe(preset), "model"), keys) == keys


def test_both_teachers() -> None:
    for preset in ("paper/teacher", "paper/teacher-configuration"):
        recipe = load_recipe(preset)
        assert some(section(recipe, "model"), TEACHER) == TEACHER
        assert (recipe.model.context, recipe.cache) == (97, None)
    assert load_recipe("paper/distilled").distill is not None
    assert load_recipe("paper/distilled").distill.teacher == "paper/teacher"  # type: ignore[union-attr]


def test_distillation() -> None:
    distill = section(load_recipe("paper/micronet"), "distill")
    keys = {"method": "top-k", "top_k": 30, "weight_max": 0.5, "weight_min": 0.05}
    assert some(distill, keys) == keys


@pytest.mark.parametrize("preset", PRUNINGS)
def test_pruning(preset: str) -> None:
    recipes = take_apart(preset)
    pruned, config = recipes.pruned, recipes.whole.prune
    assert pruned is not None
    assert config is not None
    assert (config.initial_sparsity, config.weights, config.allocation) == (
        0.16,
        "all",
        "threshold",
    )
    assert (config.steps, config.every, pruned.train.steps) == (175_000, 1_000, 175_000)
    assert (pruned.train.learning_rate, pruned.train.warmup) == (0.0001, 0)
    assert pruned.train.batch == PRUNINGS[preset]
    assert pruned.hebbian is not None
    assert load_recipe("paper/micronet").prune.sparsity == 0.358  # type: ignore[union-attr]


def test_search_and_quantization() -> None:
    recipe = load_recipe("paper/micronet")
    keys: dict[str, Any] = {
        "cache_size": 3000,
        "confirm": False,
        "ramp": None,
        "temperature": False,
    }
    assert some(section(recipe, "search"), keys) == keys
    keys = {"bits": 9, "steps": 1, "batch": 1, "learning_rate": 0.0001, "decay": 0.999}
    quantize = section(recipe, "quantize")
    assert some(quantize, keys) == keys
    assert quantize["hebbian"] is False
    assert quantize["places"] == "code"


PRINTED = {
    "micronet": [
        "0.0387 1.8M 8.8M 35.0",
        "0.0475",
        "0.1657",
        "0.8232",
    ],
    "compression": [
        "33.6 32.9 33.6 33.2 1.8M 9.5M 34.7 35.6",
        "33.6 32.9 33.6 33.2 2.0M 9.7M 33.5 34.4",
        "33.6 32.9 34.6 34.1 1.8M 8.5M 34.5 35.3",
        "33.6 32.9 34.6 34.1 1.9M 8.7M 34.2 35.1",
        "33.6 32.9 34.6 33.8 1.6M 8.6M 35.2 36.1",
        "33.6 32.9 34.6 33.8 1.8M 8.9M 0.0387 34.1 35.0",
        "33.6 32.9 34.6 33.6 1.6M 8.9M 35.1 36.0",
        "33.6 32.9 34.6 33.6 1.8M 9.1M 34.0 34.8",
        "33.6 32.9 36.2 35.7 1.6M 7.5M 36.1 36.8",
        "33.6 32.9 36.2 35.2 1.7M 8.4M 35.3 36.0",
        "33.3 32.7 34.0 33.5 1.8M 8.6M 35.0 36.0",
        "33.3 32.7 34.0 33.5 1.9M 8.8M 33.8 34.8",
        "33.3 32.7 34.0 33.2 1.8M 8.9M 34.7 35.7",
        "32.2 31.6 33.3 32.9 1.8M 9.1M 34.3 35.2",
    ],
    "sota": [
        "139M 134M 4.9M 0 35.8",
        "138M 134M 4.5M 0 32.4",
        "73.6M 68.5M 5.0M 0 36.5",
        "8.3M 3.3M 5.0M 0 41.3",
        "8.3M 3.3M 5.0M 2000 34.9",
    ],
    "context": [
        "8.5M 23.4M 38.4",
        "8.4M 20.1M 37.7",
        "8.3M 18.5M 37.5",
        "8.3M 17.6M 38.6",
        "8.3M 17.4M 39.5",
        "8.3M 17.2M 40.5",
    ],
    "cache": [
        "8.3M 17.4M 39.2",
        "11.0M 23.3M 37.6",
        "15.2M 31.6M 32.4",
        "8.3M 17.9M 34.8",
        "8.3M 18.4M 33.6",
    ],
    # Parameters, operations, perplexity, time; the teacher's 23.0 is in appendix A too.
    "pipeline": [
        "74M 149M 30 h",
        "8.3M 17M 39.5",
        "18M 33.7",
        "33.6",
        "33.0 3 min",
        "53.9M 111M 23.0 48 h",
        "8.3M 18M 32.4 30 h",
        "5.6M 13M 34.6 15 h",
        "33.8 3 min",
        "1.8M 8.8M 34.1 2 min",
    ],
    "hebbian": ["36.0 34.5", "34.1 29.7", "39.5 33.7", "39.2 33.6"],
    "cache-search": [
        "34.8 0.0922 0.0197",
        "34.7 0.0964 0.0213",
        "34.8 0.0963 0.0221",
        "33.6 0.0689 0.0242",
        "33.0 0.145 0.0266",
        "32.6 0.156 0.0276",
        "32.4 0.158 0.0281",
        "32.4 0.160 0.0284",
    ],
}


def test_every_table_with_printed_numbers_is_transcribed() -> None:
    assert set(PRINTED) == set(table_names()) - {"claims"}
    assert not any(row.printed for row in load_table("claims").rows)


@pytest.mark.parametrize("name", PRINTED)
def test_every_printed_number(name: str) -> None:
    assert name in table_names()
    table = load_table(name)
    keys = [column.key for column in table.columns]
    rows = [" ".join(row.printed[key] for key in keys if key in row.printed) for row in table.rows]
    assert rows == PRINTED[name]


# What the compression table prints and its authors' own sparsities do not give.
INCONSISTENT = {
    ("C 97, 0.358, 3000, 9 bits (the best)", "operations"): ("8.9M", "8.8M"),  # the text: 8.8M
    ("C 97, 0.477, 2000, 9 bits", "storage"): ("1.6M", "1.5M"),
    ("C 97, 0.477, 2000, 9 bits", "operations"): ("7.5M", "7.3M"),
    ("C 97, 0.477, 4000, 10 bits", "storage"): ("1.7M", "1.6M"),
    ("C 97, 0.477, 4000, 10 bits", "operations"): ("8.4M", "8.1M"),
}


def test_storage_and_operations_of_the_compression_table() -> None:
    found = {}
    table = load_table("compression")
    for row in table.rows:
        preset = row.recipe(table.columns[0], "paper")
        own = row.recipe(next(c for c in table.columns if c.key == "storage"), "paper")
        assert own is not None and preset is not None
        for key in ("storage", "operations"):
            counted = f"{paper_count(own, key) / 1e6:.1f}M"
            if counted != row.printed[key]:
                found[row.label, key] = (row.printed[key], counted)
    assert found == INCONSISTENT
    assert f"{paper_count('paper/micronet', 'score'):.4f}" == "0.0387"


def test_wikitext_2_tables_are_in_the_papers_own_way() -> None:
    recipe = load_recipe("wikitext-2/paper/micronet")
    keys = flat_keys(recipe.model_dump(mode="json"))
    assert keys["prune.allocation"] == "threshold"
    assert keys["prune.weights"] == "all"
    assert keys["cache.ramp"] == 0
    assert keys["search.ramp"] is None
    assert keys["quantize.hebbian"] is False
    assert take_apart("wikitext-2/paper/micronet").teacher.cache is None  # type: ignore[union-attr]
    base = load_recipe("wikitext-2/paper/base")
    assert (base.model.context, base.model.cutoffs) == (257, ())
    ours = load_recipe("wikitext-2/micronet")
    assert ours.prune is not None
    assert ours.prune.allocation == "slope"
    for name in table_names():
        table = load_table(name)
        for row in table.rows:
            for column in table.columns:
                preset = row.recipe(column, "wikitext-2")
                if preset:
                    assert load_recipe(preset).train.precision == "float32"
