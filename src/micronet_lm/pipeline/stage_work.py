"""The work of the stages: each calls the function of its verb, and returns numbers."""

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from micronet_lm.accounting import PAPER, Target, challenge, count, examine
from micronet_lm.accounting.run_target import counted_shares
from micronet_lm.accounting.summary import as_json
from micronet_lm.artifact import read_packed
from micronet_lm.artifact.packed_target import target_of
from micronet_lm.artifact.packing import pack_run
from micronet_lm.compression import (
    SoftLabels,
    Surface,
    distill,
    search_cache,
    write_searched_run,
    write_soft_labels,
)
from micronet_lm.compression.pruned_run import make_plan, prune
from micronet_lm.compression.quantization.run import quantize, quantized_recipe
from micronet_lm.compression.searched_run import confirmation_sentence
from micronet_lm.compression.sensitivity import analyse_run
from micronet_lm.compression.temperature import fold_temperature, search_temperature
from micronet_lm.config import (
    CorpusConfig,
    DistillConfig,
    NgramsConfig,
    PackConfig,
    Recipe,
    SpellingConfig,
)
from micronet_lm.corpus import Corpus
from micronet_lm.corpus.splits import perplexity_disagreement, unknown_disagreement
from micronet_lm.errors import RunError
from micronet_lm.files import write_text
from micronet_lm.layout import Phi
from micronet_lm.pipeline.stage import Interrupted, Product, Work
from micronet_lm.progress import bar
from micronet_lm.runs import is_run, run_recipe
from micronet_lm.runs.files import BEST, PACKED, RECIPE, TENSORBOARD
from micronet_lm.runtime.ngram_share import add_ngrams
from micronet_lm.training import Outcome, Run, evaluate, perplexity, train
from micronet_lm.training.preparation import completed, is_built, make_corpus, open_corpus
from micronet_lm.training.processes import joined_processes

Inputs = Mapping[str, Product]


def build_corpus(
    here: Path, inputs: Inputs, *, config: CorpusConfig, from_path: Path | None, given: Path | None
) -> dict[str, Any]:
    """Build the corpus, or link to an existing one."""
    if given is not None and not here.is_symlink():
        here.symlink_to(os.path.relpath(given.resolve(), here.parent.resolve()))
    corpus = open_corpus(config, here) if is_built(here) else make_corpus(config, here, from_path)
    manifest = corpus.manifest
    return {
        "fingerprint": corpus.fingerprint,
        "words": manifest.words,
        "tokens": dict(manifest.tokens),
        **_warned(unknown_disagreement(manifest.tokens, manifest.unknown)),
    }


def train_model(here: Path, inputs: Inputs, *, recipe: Recipe) -> dict[str, Any]:
    """Train a teacher, or a student with or without one."""
    run, corpus = Run(here), Corpus.open(inputs["corpus"].path)
    whole = completed(recipe, corpus)
    if recipe.distill is None:
        outcome = train(run, whole, corpus)
    else:
        outcome = distill(run, whole, corpus, SoftLabels.open(inputs["labels"].path))
    return _trained(run, corpus, outcome)


def label_text(here: Path, inputs: Inputs, *, config: DistillConfig) -> dict[str, Any]:
    """Write the teacher's soft labels for every token."""
    teacher = Run.open(inputs["teacher"].path)
    report = write_soft_labels(
        teacher.model(),
        Corpus.open(inputs["corpus"].path),
        here,
        method=config.method,
        count=config.count,
    )
    keys = ("tokens", "hit_share", "mass", "bytes", "fingerprint")
    return {key: value for key, value in report.as_json().items() if key in keys}


def analyse(here: Path, inputs: Inputs, *, tokens: int, weights: Phi) -> dict[str, Any]:
    """Measure the sensitivity of each matrix to pruning."""
    run = Run.open(inputs["source"].path)
    ids = Corpus.open(inputs["corpus"].path).split("valid")[:tokens]
    with bar("Analysing", total=None, unit="points") as advance:
        result = analyse_run(run, ids, here, weights=weights, advance=advance)
    points = sum(len(losses) for losses in result.losses.values())
    return {"points": points + 1, "perplexity": perplexity(result.base), "tokens": len(ids)}


def prune_model(here: Path, inputs: Inputs, *, recipe: Recipe) -> dict[str, Any]:
    """Train the source's model further while its smallest weights are pruned."""
    run, corpus = Run(here), Corpus.open(inputs["corpus"].path)
    source, whole = Run.open(inputs["source"].path), completed(recipe, corpus)
    assert whole.prune is not None  # noqa: S101
    analysis = inputs["sensitivity"].path if "sensitivity" in inputs else here
    plan = make_plan(source.model(), whole.prune, analysis)
    outcome = prune(run, whole, corpus, source=source, plan=plan)
    return {**_trained(run, corpus, outcome), "sparsity": plan.final.sparsity}


def search(
    here: Path,
    inputs: Inputs,
    *,
    size: int,
    ramp: int | None,
    fade: int | None,
    confirm: bool,
    temperature: bool,
) -> dict[str, Any]:
    """Find the cache's best parameters on the validation split, and a temperature if asked to."""
    source, corpus = Run.open(inputs["source"].path), Corpus.open(inputs["corpus"].path)
    ids, model = corpus.split("valid"), source.model()
    with bar("Reading valid", total=len(ids) - 1, unit="tokens") as advance:
        surface = Surface(model, ids, advance=advance)
    tau = 1.0
    if temperature:
        tau = search_temperature(model, surface, confirm=confirm)
        fold_temperature(model, tau)
        surface = Surface(model, ids)
    found = search_cache(model, surface, size=size, ramp=ramp, fade=fade, confirm=confirm)
    record = write_searched_run(source, "best", corpus, "valid", found, here, temperature=tau)
    sentence = confirmation_sentence(record)
    told = {"confirmation": sentence} if sentence else {}
    return {**measured(Run(here), corpus), "size": found.kept_size, "temperature": tau, **told}


def quantize_model(here: Path, inputs: Inputs, *, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Quantize the source's weights and activations."""
    run, corpus = Run(here), Corpus.open(inputs["corpus"].path)
    source = Run.open(inputs["source"].path)
    recipe = quantized_recipe(source.recipe(), changes)
    outcome = quantize(run, recipe, corpus, source=source)
    return _trained(run, corpus, outcome)


def pack(
    here: Path,
    inputs: Inputs,
    *,
    name: str,
    asked: str,
    ngrams: NgramsConfig | None = None,
    spelling: SpellingConfig | None = None,
    form: PackConfig | None = None,
) -> dict[str, Any]:
    """Pack the model into one file with its card; the file has no times or paths.

    With a table of n-grams, perplexities are those of the packed file.
    """
    source = inputs["source"]
    splits = {"valid": "validation_perplexity", "test": "test_perplexity"}
    file = here / PACKED
    pack_run(
        source.path,
        file,
        corpus=inputs["corpus"].path,
        name=name,
        perplexities={split: source.result[key] for split, key in splits.items()},
        made_by=f"micronet run {asked}",
        spelling=spelling,
        form=form,
    )
    told = _perplexities(source)
    if ngrams is not None:
        model, fit = add_ngrams(file, file, Corpus.open(inputs["corpus"].path), ngrams)
        told = {key: model.card["perplexity"][split] for split, key in splits.items()}
        told = {**told, "share": fit.share, "ngrams": fit.sentence}
    return {"bytes": file.stat().st_size, **told}


def account(here: Path, inputs: Inputs) -> dict[str, Any]:
    """Count every stage's model by both rules, with its perplexities."""
    corpus = Corpus.open(inputs["corpus"].path)
    rows = []
    for name, product in inputs.items():
        if name == "corpus":
            continue
        count_one = _counted_file if name == "pack" else _counted
        counted = count_one(product.path, corpus)
        rows.append({"stage": name, **_perplexities(product), **counted})
    whole = {"corpus": corpus.manifest.source, "stages": rows}
    write_text(here / "account.json", json.dumps(whole, indent=1) + "\n")
    last = rows[-1]
    keys = ("stage", "parameters", "weights", "nonzeros", "bits", "storage", "operations", "score")
    short = [{key: row[key] for key in keys} for row in rows]
    return {
        **{key: last[key] for key in ("storage", "operations", "score", "bytes")},
        "models": short,
    }


def take_over(here: Path, inputs: Inputs, *, source: Path, work: Work) -> dict[str, Any]:
    """Continue with a run that was trained elsewhere; a run with other inputs is refused."""
    with joined_processes() as processes:
        if processes.leads and not here.exists():
            if not is_run(source):
                raise RunError(f"--take: {source} is not a run: it has no {RECIPE}")
            copy = here.with_name(f".{here.name}.copy")
            if copy.exists():
                shutil.rmtree(copy)
            shutil.copytree(source, copy, ignore=shutil.ignore_patterns(".*", TENSORBOARD))
            copy.rename(here)
        processes.wait()
    return work(here, inputs)


def measured(run: Run, corpus: Corpus) -> dict[str, Any]:
    """Return a run's validation and test perplexity."""
    model = run.model()
    best = run.progress().best_loss
    assert best is not None  # noqa: S101
    ids = corpus.split("test")
    with bar("Evaluating test", total=len(ids) - 1, unit="tokens") as advance:
        test = evaluate(model, ids, advance=advance)
    cache = model.cache
    learned = {} if cache is None else {"theta": cache.theta.item(), "lam": cache.lam.item()}
    valid = perplexity(best)
    return {
        **learned,
        "parameters": model.parameter_count(),
        "validation_perplexity": valid,
        "test_perplexity": test.perplexity,
        **_warned(perplexity_disagreement(valid, test.perplexity)),
    }


def _trained(run: Run, corpus: Corpus, outcome: Outcome) -> dict[str, Any]:
    if not outcome.finished:
        raise Interrupted(f"after step {outcome.step:,}")
    numbers = {"steps": outcome.step, "best_step": outcome.best_step}
    with joined_processes() as processes:
        if not processes.leads:
            return numbers  # only the first process's numbers are kept
    return {**numbers, "seconds": outcome.seconds, **measured(run, corpus)}


def _warned(sentence: str | None) -> dict[str, Any]:
    return {"warning": sentence} if sentence else {}


def _perplexities(product: Product) -> dict[str, Any]:
    keys = ("validation_perplexity", "test_perplexity")
    return {key: product.result[key] for key in keys if key in product.result}


def _counted(path: Path, corpus: Corpus) -> dict[str, Any]:
    """Return the costs of a run's best model, by rules `paper` and `challenge`."""
    recipe = run_recipe(path)
    shares = counted_shares(corpus.split("test"), recipe.model)
    target = examine(path, recipe, shares, shares_from=f"the test split of {recipe.corpus.source}")
    return {**costs(target), "bytes": (path / BEST).stat().st_size}


def _counted_file(path: Path, corpus: Corpus) -> dict[str, Any]:
    """Return the costs of a packed file."""
    file = path / PACKED
    model = read_packed(file)
    shares = counted_shares(corpus.split("test"), model.shape)
    return {**costs(target_of(model, PACKED, shares)), "bytes": file.stat().st_size}


def costs(target: Target) -> dict[str, Any]:
    """Return a target's numbers under both rules, and its table by part under rules `paper`."""
    paper = as_json(count(target, PAPER))
    other = count(target, challenge())
    model = paper["model"]
    return {
        "parameters": paper["parameters"],
        "weights": model["weights"],
        "nonzeros": model["nonzeros"],
        "bits": model["bits"],
        "cache": model["cache"],
        "storage": paper["storage"],
        "operations": paper["operations"]["total"],
        "score": paper["score"],
        "challenge": {
            "storage": float(other.storage),
            "operations": float(other.operations),
            "score": float(other.score),
        },
        "rows": paper["rows"],
    }
