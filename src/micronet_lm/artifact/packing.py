"""Make a packed model of a run folder, without torch."""

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from micronet_lm.accounting.run_target import counted_shares
from micronet_lm.artifact.card import known_perplexity, make_card
from micronet_lm.artifact.packed_model import CacheParameters, Floats, PackedModel, Weights
from micronet_lm.artifact.packed_target import target_of
from micronet_lm.artifact.spelled import spelling_of
from micronet_lm.artifact.writer import write_packed
from micronet_lm.config import PackConfig, Place, Recipe, SpellingConfig
from micronet_lm.corpus import Corpus
from micronet_lm.corpus.store import open_known
from micronet_lm.errors import RunError
from micronet_lm.layout import is_norm, tensor_shapes, widths
from micronet_lm.runs import (
    PREFIX,
    CheckpointReader,
    Which,
    check_run,
    checkpoint_file,
    open_checkpoint,
    run_corpus,
    run_recipe,
)


def model_of_run(path: Path, corpus: Corpus | None, checkpoint: Which = "best") -> PackedModel:
    """Read a run's checkpoint, with the words of its corpus or none if it is not given."""
    check_run(path)
    recipe = run_recipe(path)
    if recipe.model.scale_embedding:
        raise RunError(
            f"{path} has model.scale_embedding true, a factor that packed files do not have: train "
            "without it to pack the model"
        )
    if corpus is not None and recipe.model.vocabulary != len(corpus.vocabulary):
        raise RunError(
            f"the run's model has {recipe.model.vocabulary:,} words, but {corpus.path} has "
            f"{len(corpus.vocabulary):,}: give the run's own corpus with --corpus"
        )
    file = checkpoint_file(path, checkpoint)
    with open_checkpoint(file) as reader:
        tensors = _weights(reader, recipe)
        activations = _activations(reader)
        cache = _cache(reader, recipe)
    bits = recipe.quantize.width_of_activations if recipe.quantize and activations else None
    return PackedModel(
        shape=recipe.model,
        tensors=tensors,
        words=corpus.vocabulary.words if corpus else (),
        tokenizer=corpus.manifest.tokenizer if corpus else "",
        cache=cache,
        activation_bits=bits,
        activations=activations,
    )


def _weights(reader: CheckpointReader, recipe: Recipe) -> dict[str, Weights]:
    integer = widths(recipe.quantize, recipe.model) if recipe.quantize else {}
    found = {}
    for name in tensor_shapes(recipe.model):
        values = reader.model_tensor(name)
        if name not in integer:
            floats = values.astype(np.float32, copy=False)
            found[name] = Weights(values=floats, maskable=not is_norm(name))
            continue
        if not np.issubdtype(values.dtype, np.integer):
            raise RunError(
                f"{reader.path} has {name} as floats, for resuming the training: pack the run's "
                "best checkpoint, which has integers"
            )
        scales = reader.model_tensor(f"{name}.steps").astype(np.float32, copy=False)
        bits = integer[name].bits
        found[name] = Weights(values=values.astype(np.int16), scales=scales, bits=bits)
    return found


def _activations(reader: CheckpointReader) -> dict[Place, Floats]:
    names = {place: f"activations.{place}" for place in Place}
    return {
        place: reader.model_tensor(name)
        for place, name in names.items()
        if PREFIX + name in reader.names and len(reader.model_tensor(name))
    }


def _cache(reader: CheckpointReader, recipe: Recipe) -> CacheParameters | None:
    """Return θ and λ, the softplus and the sigmoid of what a checkpoint holds."""
    if recipe.cache is None:
        return None
    theta, lam = (float(reader.model_tensor(f"cache.free_{key}")) for key in ("theta", "lam"))
    positive = max(theta, 0.0) + math.log1p(math.exp(-abs(theta)))
    share = 1 / (1 + math.exp(-lam)) if lam >= 0 else math.exp(lam) / (1 + math.exp(lam))
    return CacheParameters(
        size=recipe.cache.size,
        theta=float(np.float32(positive)),
        lam=float(np.float32(share)),
        ramp=min(recipe.cache.ramp, recipe.cache.size),
        fade=recipe.cache.fade,
    )


def pack_run(
    path: Path,
    out: Path,
    *,
    corpus: Path | None = None,
    checkpoint: Which = "best",
    name: str | None = None,
    perplexities: Mapping[str, float] | None = None,
    made_by: str | None = None,
    spelling: SpellingConfig | None = None,
    form: PackConfig | None = None,
) -> PackedModel:
    """Pack a run into one file with its card, and with a spelling model if `spelling` or the run's
    recipe asks for one, in the `form` of the call or of the recipe.

    The card gets `perplexities` by split, beside the checkpoint's own validation perplexity, and
    `made_by`, the command that makes the model.
    """
    check_run(path)
    recipe, own = run_recipe(path), corpus_of_run(path, corpus)
    if spelling is not None:
        recipe = recipe.model_copy(update={"spelling": spelling})
    if form is not None:
        recipe = recipe.model_copy(update={"pack": form})
    model = model_of_run(path, own, checkpoint)
    shares = counted_shares(own.split("test"), recipe.model)
    target = target_of(model, str(path), shares, shares_from="the corpus's test split")
    known = known_perplexity(checkpoint_file(path, checkpoint)) if checkpoint == "best" else {}
    card = make_card(
        name=name or path.resolve().name,
        recipe=recipe,
        corpus=own,
        target=target,
        perplexities={**known, **(perplexities or {})},
        made_by=made_by or f"micronet pack {path.name} -o {out.name}",
    )
    model = replace(model, card=card, coded=recipe.pack is not None and recipe.pack.coded)
    write_packed(out, model)
    if recipe.spelling is not None:
        model = replace(model, spelling=spelling_of(own, recipe.spelling, out.stat().st_size))
        write_packed(out, model)
    return model


def corpus_of_run(path: Path, named: Path | None = None) -> Corpus:
    """Open the corpus that a run was made with, at its recorded path or the given one."""
    place, fingerprint = run_corpus(path)
    return open_known(named or place, fingerprint)
