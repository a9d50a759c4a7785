"""Recipes load strictly, and every mistake is one sentence."""

from pathlib import Path

import pytest

from micronet_lm.config import (
    Recipe,
    changed_keys,
    describe_keys,
    dump_recipe,
    load_recipe,
    merge_recipe,
    parse_recipe,
    preset_names,
    preset_summary,
    split_overrides,
)
from micronet_lm.errors import ConfigError


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_loads_and_survives_a_round_trip(name: str) -> None:
    import yaml

    recipe = load_recipe(name)
    assert parse_recipe(yaml.safe_load(dump_recipe(recipe)), origin=name) == recipe
    assert len(preset_summary(name)) > 20


def test_the_presets_that_the_design_names_are_there() -> None:
    assert {"paper/student", "paper/teacher", "demo", "wikitext-2/small"} <= set(preset_names())
    assert {"paper/distilled", "wikitext-2/teacher", "wikitext-2/distilled"} <= set(preset_names())


def test_the_papers_distillation() -> None:
    distill = load_recipe("paper/distilled").distill
    assert distill is not None
    assert (distill.method, distill.count) == ("top-k", 30)
    assert (distill.weight_max, distill.weight_min) == (0.5, 0.05)
    assert load_recipe("paper/student").distill is None
    # A student differs from what it is compared with in nothing but its teacher.
    changed = changed_keys(load_recipe("wikitext-2/small"), load_recipe("wikitext-2/distilled"))
    assert {key.split(".")[0] for key in changed} == {"distill"}


def test_the_papers_windows_cover_the_reach() -> None:
    student = load_recipe("paper/student")
    assert student.model.reach == 769 <= student.train.window


def test_a_base_is_completed_not_replaced() -> None:
    student, teacher = load_recipe("paper/student"), load_recipe("paper/teacher")
    assert teacher.model.cutoffs == student.model.cutoffs
    assert (teacher.model.width, student.model.width) == (512, 256)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--model.context", "129"], {"model.context": 129}),
        (["--model.context=129"], {"model.context": 129}),
        (["--train.learning_rate", "1e-3"], {"train.learning_rate": 1e-3}),
        (["--model.cutoffs", "10,20"], {"model.cutoffs": [10, 20]}),
        (["--model.cutoffs", "[]"], {"model.cutoffs": []}),
        (["--corpus.max_vocabulary", "none"], {"corpus.max_vocabulary": None}),
        (["--model.cutoffs", "10"], {"model.cutoffs": 10}),
        (["--corpus.source", "a b.txt"], {"corpus.source": "a b.txt"}),
    ],
)
def test_overrides(words: list[str], expected: dict[str, object]) -> None:
    assert split_overrides(["train", *words, "demo"]) == (["train", "demo"], expected)


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        ({"model.contxt": 3}, r"unknown key 'model.contxt' \(did you mean 'context'\?\)"),
        ({"modle.context": 3}, r"unknown key 'modle' \(did you mean 'model'\?\)"),
        ({"model.context": 0}, "model.context must be at least 1, got 0"),
        ({"model.context": "far"}, "model.context must be a whole number, got 'far'"),
        ({"model.cutoffs": [20, 10]}, r"cutoffs must be positive and increasing, got \(20, 10\)"),
        ({"model.cutoffs": []}, "embedding_widths has 3 entries but 0 cutoffs make 1 bins"),
        (
            {"model.vocabulary": 20_000},
            "last cutoff must be below the vocabulary of 20000, got 25000",
        ),
        (
            {"corpus.max_vocabulary": 25_000},
            r"must be above the last of model\.cutoffs .* got 25000",
        ),
        ({"train.accumulate": 3}, "accumulate must divide the batch of 20 sequences, got 3"),
        (
            {"train.warmup": 300_000},
            "warmup must be shorter than the run's 200000 steps, got 300000",
        ),
        ({"train.final_learning_rate": 1.0}, r"final_learning_rate must not exceed .* got 1\.0"),
        (
            {"train.beginnings": 0.5, "train.sampling": "stream"},
            "beginnings 0.5 needs random windows",
        ),
        ({"model.context": "97"}, "model.context must be a whole number, got '97'"),
        ({"model.context": True}, "model.context must be a whole number, got True"),
        ({"train.learning_rate": float("nan")}, "learning_rate must be a finite number, got nan"),
        ({"model.context.size": 3}, "'context' is a value, not a section"),
        ({"cache.sise": 3}, r"unknown key 'cache.sise' \(did you mean 'size'\?\)"),
        ({"cache.lam": 1.0}, "cache.lam must be below 1, got 1.0"),
        ({"cache.theta": 0}, "cache.theta must be above 0, got 0"),
        ({"hebbian.gamma": 2}, "hebbian.gamma must be at most 1, got 2"),
        ({"distill.weight_max": 1.5}, "distill.weight_max must be at most 1, got 1.5"),
        ({"distill.weight_min": 0.6}, r"weight_min must not exceed weight_max 0\.5, got 0\.6"),
        ({"distill.method": "best"}, "distill.method must be 'top-k' or 'sampled', got 'best'"),
    ],
)
def test_mistakes(overrides: dict[str, object], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence) as caught:
        load_recipe("paper/student", overrides)
    assert "\n" not in str(caught.value)


def test_an_override_without_a_value() -> None:
    with pytest.raises(ConfigError, match=r"--model\.context needs a value"):
        split_overrides(["train", "demo", "--model.context"])


def test_a_file_may_hold_a_family_of_recipes() -> None:
    names = preset_names()
    assert {"paper/context-65", "paper/context-1025", "paper/cache-0-11.0m"} <= set(names)
    assert "paper/context" not in names
    assert load_recipe("paper/context-513").model.context == 513
    assert load_recipe("paper/context-513").train.window == 4608
    # The longest family's name wins, and a variant may have the name of another's beginning.
    assert load_recipe("paper/cache-0").model.width == 256
    assert load_recipe("paper/cache-0-15.2m").model.width == 384
    with pytest.raises(ConfigError, match=r"family of recipes: choose paper/context-65, paper/con"):
        load_recipe("paper/context")
    with pytest.raises(ConfigError, match="did you mean 'paper/context-513'"):
        load_recipe("paper/context-512")


@pytest.mark.parametrize("scale", ["paper", "wikitext-2", "demo"])
def test_windows_cover_the_reach_in_every_sweep(scale: str) -> None:
    # One exception: at WikiText-2's scale C = 1025 has the windows of C = 513, so that all rows
    # have as many steps of as many tokens; its window is at least two contexts long.
    short = {"wikitext-2/paper/context-1025"}
    sweep = [
        name for name in preset_names() if "/context-" in name and name.startswith(f"{scale}/")
    ]
    assert len(sweep) == 6
    for name in sweep:
        recipe = load_recipe(name)
        covered = 2 * recipe.model.context if name in short else recipe.model.reach
        assert covered <= recipe.train.window, name


def test_files_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("base: demo\nmodel:\n  context: 33\n")
    assert load_recipe(str(file)).model.context == 33
    file.write_text("a: [")
    with pytest.raises(ConfigError, match=r"mine\.yaml: not valid YAML"):
        load_recipe(str(file))
    file.write_text("- 1\n")
    with pytest.raises(ConfigError, match="a recipe must map sections"):
        load_recipe(str(file))
    file.write_text(f"base: {file}\n")
    with pytest.raises(ConfigError, match="its own base"):
        load_recipe(str(file))
    with pytest.raises(ConfigError, match="cannot be read"):
        load_recipe(str(tmp_path / "other.yaml"))
    with pytest.raises(ConfigError, match=r"there is no preset 'dmo' \(did you mean 'demo'\?\)"):
        load_recipe("dmo")


def test_bases_that_go_round_in_a_circle_are_refused(tmp_path: Path) -> None:
    one, other = tmp_path / "one.yaml", tmp_path / "other.yaml"
    one.write_text(f"base: {other}\n")
    other.write_text(f"base: {one}\n")
    with pytest.raises(ConfigError, match="its own base"):
        load_recipe(str(one))


def test_recipes_do_not_change() -> None:
    recipe = Recipe()
    with pytest.raises(ValueError, match="frozen"):
        recipe.model.context = 5  # type: ignore[misc]
    assert merge_recipe(recipe, {"model.context": 5}).model.context == 5
    assert recipe.model.context == 97


def test_one_number_may_stand_for_a_list() -> None:
    recipe = merge_recipe(Recipe(), {"model.cutoffs": 10, "model.embedding_widths": [256, 8]})
    assert recipe.model.cutoffs == (10,)


def test_changed_keys() -> None:
    one = Recipe()
    assert changed_keys(one, one) == []
    other = merge_recipe(one, {"model.context": 5, "train.seed": 1})
    assert changed_keys(one, other) == ["model.context", "train.seed"]


def test_naming_a_key_switches_a_technique_on_and_zero_switches_it_off() -> None:
    plain = load_recipe("paper/student")
    assert (plain.cache, plain.hebbian) == (None, None)
    cached = load_recipe("paper/student", {"cache.size": 1000})
    assert cached.cache is not None
    assert (cached.cache.size, cached.cache.theta, cached.cache.lam) == (1000, 0.016, 0.07)
    assert changed_keys(plain, cached) == [
        f"cache.{key}" for key in ("size", "theta", "lam", "trained", "ramp", "fade")
    ]
    # The authors' batch is smaller with a cache.
    off = {"cache.size": 0, "train.batch": plain.train.batch}
    assert load_recipe("paper/student-cache", off) == plain
    hebbian = load_recipe("paper/student-hebbian")
    assert hebbian.hebbian is not None
    assert (hebbian.hebbian.gamma, hebbian.hebbian.limit) == (0.01, 500)
    assert merge_recipe(hebbian, {"hebbian.limit": 0, **off}) == plain


def test_help_lists_the_keys_of_techniques_too() -> None:
    text = describe_keys()
    assert "--cache.theta (default 0.016)" in text
    assert "--hebbian.limit (default 500)" in text
    assert "Naming a key switches it on" in text
