"""The stages of a recipe, in the paper's order; only those that the recipe needs."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from micronet_lm.config import CorpusConfig, Recipe, SearchConfig, identifying
from micronet_lm.corpus import Corpus
from micronet_lm.corpus.textfiles import find_files
from micronet_lm.corpus.wikitext import PUBLISHED
from micronet_lm.errors import UsageError
from micronet_lm.files import file_sha256
from micronet_lm.pipeline import stage_work
from micronet_lm.pipeline.recipes import TEACHER, Recipes
from micronet_lm.pipeline.stage import Stage
from micronet_lm.training.preparation import open_corpus

TRAINED = ("teacher", "student", "prune", "quantize")
"""Stages that train, for which a run trained elsewhere can be taken."""


MODELS = ("student", "prune", "search-cache", "quantize", "search-again")
"""Stages that the model itself goes through, in order; a teacher is beside the way."""


@dataclass(frozen=True, kw_only=True)
class Sources:
    """Paths of existing inputs; they do not change a stage's result."""

    from_path: Path | None = None
    """Path of a published corpus."""

    corpus: Path | None = None
    """Path of an existing corpus."""

    runs: Mapping[str, Path] = field(default_factory=dict)
    """Runs that were trained elsewhere, by stage."""


def stages_of(recipes: Recipes, sources: Sources | None = None) -> dict[str, Stage]:
    """Return the stages of a recipe by name, each after its inputs."""
    sources = sources or Sources()
    stages: dict[str, Stage] = {}

    def add(stage: Stage) -> Stage:
        stage = with_job(stage, recipes)
        if given := sources.runs.get(stage.name):
            stage = replace(
                stage, work=partial(stage_work.take_over, source=given, work=stage.work)
            )
        return stages.setdefault(stage.name, stage)

    corpus = add(_corpus(recipes, sources))
    model = add(_student(recipes, corpus, add))
    models = {"student": model}
    if recipes.pruned:
        model = models["prune"] = add(_pruned(recipes.pruned, corpus, model, add))
    if search := recipes.whole.search:
        model = models["search-cache"] = add(_searched(search, corpus, model))
    if config := recipes.whole.quantize:
        settings = identifying(config, "quantize.")
        changes = {f"quantize.{key}": v for key, v in config.model_dump(mode="json").items()}
        model = models["quantize"] = add(
            Stage(
                name="quantize",
                folder="quantized",
                settings=settings,
                needs={"corpus": corpus, "source": model},
                work=partial(stage_work.quantize_model, changes=changes),
                fresh=config.steps == 0,  # calibration alone cannot be resumed
            )
        )
        if search and search.again:
            later = replace(_searched(search, corpus, model), name="search-again", folder="again")
            model = models["search-again"] = add(later)
    packed = add(
        Stage(
            name="pack",
            folder="packed",
            settings={"name": recipes.name, **_extras(recipes.whole)},
            needs={"corpus": corpus, "source": model},
            work=partial(
                stage_work.pack,
                name=recipes.name,
                asked=recipes.asked or recipes.name,
                ngrams=recipes.whole.ngrams,
                spelling=recipes.whole.spelling,
                form=recipes.whole.pack,
            ),
            fresh=True,
        )
    )
    teacher = {"teacher": stages["teacher"]} if recipes.teacher else {}
    add(
        Stage(
            name="account",
            folder="account",
            settings={},
            needs={"corpus": corpus, **teacher, **models, "pack": packed},
            work=stage_work.account,
            fresh=True,
        )
    )
    unknown = set(sources.runs) - set(TRAINED).intersection(stages)
    if unknown:
        raise UsageError(
            f"--take {min(unknown)}=RUN: no such stage trains here; choose from "
            f"{', '.join(name for name in TRAINED if name in stages)}"
        )
    return stages


def with_job(stage: Stage, recipes: Recipes) -> Stage:
    """Return the stage with what the recipe says that its job asks of a cluster."""
    asked = recipes.whole.cluster
    return replace(stage, job=asked.of(stage.name)) if asked else stage


def chosen_targets(stages: Mapping[str, Stage], until: str | None) -> list[Stage]:
    """Return the stages to bring to completion: all, or the one to stop after."""
    if until is None:
        return list(stages.values())
    if until not in stages:
        raise UsageError(f"--until must be one of {', '.join(stages)}, got {until}")
    return [stages[until]]


def _corpus(recipes: Recipes, sources: Sources) -> Stage:
    config, given = recipes.corpus, sources.corpus
    return Stage(
        name="corpus",
        folder="corpus",
        settings={**_shares_if_said(config), "text": _text(recipes, given)},
        work=partial(
            stage_work.build_corpus, config=config, from_path=sources.from_path, given=given
        ),
    )


def _shares_if_said(config: CorpusConfig) -> dict[str, Any]:
    """Return the corpus's settings, without the shares if unset, so that old corpora stay valid."""
    settings = config.model_dump(mode="json")
    if config.split is None:
        del settings["split"]
    return settings


def _text(recipes: Recipes, given: Path | None) -> str | None:
    """Return a hash of the text, if its name does not identify it."""
    config = recipes.corpus
    if given is not None:
        return open_corpus(config, given).fingerprint
    if config.source in PUBLISHED or config.source == "python-docs":
        return None
    digest = hashlib.sha256()
    for file in find_files(config.source):
        digest.update(bytes.fromhex(file_sha256(file)))
    return digest.hexdigest()


def _student(recipes: Recipes, corpus: Stage, add: Any) -> Stage:
    """Return the stage of the model's training; add those of its teacher and labels, if any."""
    distill = recipes.student.distill
    needs = {"corpus": corpus}
    if recipes.teacher and distill:
        teacher = add(
            Stage(
                name="teacher",
                folder="teacher",
                settings=_own(recipes.teacher),
                needs={"corpus": corpus},
                work=partial(stage_work.train_model, recipe=recipes.teacher),
                keys=TEACHER,
            )
        )
        needs["labels"] = add(
            Stage(
                name="soft-labels",
                folder="labels",
                settings={"method": distill.method, "count": distill.count},
                needs={"corpus": corpus, "teacher": teacher},
                work=partial(stage_work.label_text, config=distill),
            )
        )
    return Stage(
        name="student",
        folder="student",
        settings=_own(recipes.student),
        needs=needs,
        work=partial(stage_work.train_model, recipe=recipes.student),
    )


def _pruned(recipe: Recipe, corpus: Stage, source: Stage, add: Any) -> Stage:
    config = recipe.prune
    assert config is not None  # noqa: S101
    needs = {"corpus": corpus, "source": source}
    if config.allocation != "uniform":
        needs["sensitivity"] = add(
            Stage(
                name="sensitivity",
                folder="sensitivity",
                settings={
                    "tokens": config.analysed_tokens,
                    **({} if config.weights == "matrices" else {"weights": config.weights}),
                },
                needs={"corpus": corpus, "source": source},
                work=partial(
                    stage_work.analyse, tokens=config.analysed_tokens, weights=config.weights
                ),
            )
        )
    return Stage(
        name="prune",
        folder="pruned",
        settings=_own(recipe),
        needs=needs,
        work=partial(stage_work.prune_model, recipe=recipe),
    )


def _searched(config: SearchConfig, corpus: Stage, source: Stage) -> Stage:
    return Stage(
        name="search-cache",
        folder="searched",
        settings=_search(config),
        needs={"corpus": corpus, "source": source},
        work=partial(
            stage_work.search,
            size=config.cache_size,
            ramp=config.ramp,
            fade=config.fade,
            confirm=config.confirm,
            temperature=config.temperature,
        ),
        fresh=True,
    )


def _search(config: SearchConfig) -> dict[str, Any]:
    """Return the search's settings; what was searched before keys were added stays valid."""
    settings = config.model_dump(mode="json", exclude={"again"})
    for key in ("confirm", "temperature"):
        if not settings[key]:
            del settings[key]
    if settings["fade"] is None:
        del settings["fade"]
    return settings


def _extras(recipe: Recipe) -> dict[str, Any]:
    """Return the settings of what a file holds besides the model; files without it stay valid."""
    extras = {"ngrams": recipe.ngrams, "spelling": recipe.spelling, "pack": recipe.pack}
    return {name: part.model_dump(mode="json") for name, part in extras.items() if part is not None}


def _own(recipe: Recipe) -> dict[str, Any]:
    """Return a model's recipe without its text, which is a separate input."""
    tree = identifying(recipe)
    del tree["corpus"]
    return _given(tree)


def _given(tree: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested values without those that are None."""
    return {
        key: _given(value) if isinstance(value, dict) else value
        for key, value in tree.items()
        if value is not None
    }


def linked_corpus(root: Path) -> Path | None:
    """Return the corpus given to an earlier call, if any."""
    place = root / "corpus"
    return place.resolve() if place.is_symlink() and Corpus.open(place) else None
