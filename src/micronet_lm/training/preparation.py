"""Prepare a recipe for training: its corpus, and the keys that depend on the corpus."""

from pathlib import Path

from micronet_lm.config import CorpusConfig, Recipe, merge_recipe
from micronet_lm.corpus import Corpus, build_corpus
from micronet_lm.errors import ConfigError, RunError
from micronet_lm.training.processes import host_name, joined_processes


def is_built(place: Path) -> bool:
    """Return whether a folder has a complete corpus, whose manifest is written last."""
    return (place / "manifest.json").is_file()


def make_corpus(config: CorpusConfig, place: Path, from_path: Path | None = None) -> Corpus:
    """Build the corpus of a recipe; `from_path` is the path of a downloaded WikiText."""
    return build_corpus(
        config.source,
        place,
        tokenizer=config.tokenizer,
        from_path=from_path,
        min_count=config.min_count,
        max_vocabulary=config.max_vocabulary,
        split=config.split,
    )


def prepared_corpus(config: CorpusConfig, place: Path, from_path: Path | None = None) -> Corpus:
    """Open a run's own corpus; the leading process builds it if it is missing, others wait."""
    with joined_processes() as processes:
        if processes.leads and not is_built(place):
            make_corpus(config, place, from_path)
        processes.wait()
        if not is_built(place):
            raise RunError(
                f"{place} is not on {host_name()}, but on the host of process 0: give --out a "
                "folder that all hosts share, or --corpus with a corpus that is on each of them"
            )
    return open_corpus(config, place)


def open_corpus(config: CorpusConfig, place: Path) -> Corpus:
    """Open a built corpus; refuse one with other settings than the recipe's."""
    corpus = Corpus.open(place)
    there = corpus.manifest
    for key, wanted in config.model_dump(exclude_none=True).items():
        if wanted != getattr(there, key):
            raise RunError(
                f"{place} was built with {key} {getattr(there, key)}, not {wanted}: "
                "remove that folder, choose another --out, or give a corpus with --corpus"
            )
    return corpus


def completed(recipe: Recipe, corpus: Corpus) -> Recipe:
    """Return the recipe with the corpus's settings and the size of its vocabulary."""
    size, wanted = len(corpus.vocabulary), recipe.model.vocabulary
    if wanted is not None and wanted != size:
        raise ConfigError(
            f"model.vocabulary is {wanted:,} but {corpus.path} has {size:,} words: "
            "leave out model.vocabulary, or give the corpus that the recipe is made for"
        )
    manifest = corpus.manifest
    # The shares are the recipe's to say: runs that were begun before they had a key resume.
    keys = recipe.corpus.model_dump(exclude={"split"})
    facts = {f"corpus.{key}": getattr(manifest, key) for key in keys}
    return merge_recipe(recipe, {**facts, "model.vocabulary": size})
