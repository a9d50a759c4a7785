"""Real runs, packed: trained, pruned, searched and quantized ones give their own perplexity."""

import json
from pathlib import Path

import pytest
import torch
from tests.support.corpora import story_corpus
from tests.support.engines import ENGINES
from tests.support.recipes import BRIEF, as_words
from tests.support.verbs import train_demo

from micronet_lm.accounting import PAPER, challenge, count, examine
from micronet_lm.accounting.run_target import counted_shares
from micronet_lm.artifact import read_packed
from micronet_lm.artifact.packed_target import target_of
from micronet_lm.artifact.packing import corpus_of_run, model_of_run, pack_run
from micronet_lm.cli.main import main
from micronet_lm.config import SpellingConfig
from micronet_lm.corpus import Corpus
from micronet_lm.errors import RunError
from micronet_lm.runs import run_recipe
from micronet_lm.runtime.evaluation import evaluate_engine
from micronet_lm.runtime.model import load
from micronet_lm.runtime.reference import NumpyEngine
from micronet_lm.training import Run, evaluate

TINY = as_words(
    {
        **BRIEF,
        "train.steps": 20,
        "train.evaluate_every": 10,
        "train.precision": "float32",
        "cache.size": 40,
    }
)
WAYS: dict[str, str] = {
    "trained": "",
    "pruned": "prune --sparsity 0.5 --one-shot --allocation uniform",
    "searched": "search-cache --size 60",
    "9 bits": "quantize --bits 9 --steps 0",
    "4 bits": "quantize --bits 4 --steps 2 --learned",
    "8 bits as in the text": "quantize --bits 8 --steps 0 --places text --quantize.table_bits 32",
    "layers of their own width": "quantize --bits 9 --steps 0 --quantize.layer_bits 6",
    "activations only": "quantize --bits 16 --steps 0 --quantize.activation_bits 7 "
    "--quantize.layer_bits 32 --quantize.projection_bits 32 --quantize.table_bits 32 "
    "--quantize.tail_bits 32 --quantize.bias_bits 32",
    "mixed": "quantize --bits 16 --steps 0 --places projected --quantize.table_bits 5 "
    "--quantize.position_bits 6 --quantize.activation_bits 8",
}
"""What is done with a trained run before it is packed."""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return story_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def trained(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_demo(tmp_path_factory.mktemp("runs") / "tiny", corpus, TINY)


@pytest.fixture(params=WAYS, ids=lambda name: name.replace(" ", "-"))
def run(request: pytest.FixtureRequest, trained: Path, tmp_path: Path) -> Path:
    verb, *options = [*WAYS[request.param].split(), ""]
    if not verb:
        return trained
    out = tmp_path / "run"
    assert main([verb, str(trained), "--out", str(out), *filter(None, options)]) == 0
    return out


def test_a_packed_run_has_its_perplexity_and_its_storage(
    run: Path, corpus: Corpus, tmp_path: Path
) -> None:
    out = tmp_path / "model.safetensors"
    pack_run(run, out, name="tiny", perplexities={"test": 12.5})
    ids = corpus.split("test")[:800]
    found = evaluate_engine(NumpyEngine(out), ids)
    wanted = evaluate(Run.open(run).model(), ids)
    assert found.perplexity == pytest.approx(wanted.perplexity, rel=1e-5)
    assert found.tokens == wanted.tokens
    for own, other in zip(found.bins, wanted.bins, strict=True):
        assert (own.first, own.tokens) == (other.first, other.tokens)
        assert own.loss == pytest.approx(other.loss, rel=1e-4)
    # The file is counted as the run is.
    model, recipe = read_packed(out), run_recipe(run)
    shares = counted_shares(corpus.split("test"), recipe.model)
    for rules in (PAPER, challenge(), challenge(tree=True)):
        own_count = count(target_of(model, "m", shares), rules)
        run_count = count(examine(run, recipe, shares), rules)
        assert own_count.storage == run_count.storage
        assert own_count.operations == run_count.operations
        if not rules.options:
            assert model.card["accounting"][rules.name]["storage"] == float(own_count.storage)
    assert model.card["perplexity"]["test"] == 12.5
    assert model.card["perplexity"]["valid"] > 1
    assert model.card["corpus"]["fingerprint"] == corpus.fingerprint
    assert list(model.words) == list(corpus.vocabulary.words)


def test_a_recipe_can_ask_for_a_spelling_model(trained: Path, tmp_path: Path) -> None:
    out = tmp_path / "model.safetensors"
    pack_run(trained, out)
    plain = out.stat().st_size
    assert read_packed(out).spelling is None
    pack_run(trained, out, spelling=SpellingConfig(order=3))
    spelling = read_packed(out).spelling
    assert spelling is not None
    assert len(spelling.data) <= 0.05 * plain
    for engine in ENGINES:
        lm = load(out, engine)
        assert lm.can_spell
        assert lm.open_score("word1 wordless").spelled == 1


def test_theta_and_lambda_are_the_runs(trained: Path, corpus: Corpus) -> None:
    cache, own = model_of_run(trained, corpus).cache, Run.open(trained).model().cache
    assert cache is not None
    assert own is not None
    assert cache.size == 40
    assert cache.theta == pytest.approx(own.theta.item(), rel=1e-6)
    assert cache.lam == pytest.approx(own.lam.item(), rel=1e-6)


def test_the_last_checkpoint_can_be_packed(trained: Path, corpus: Corpus) -> None:
    last = model_of_run(trained, corpus, "last")
    torchs = dict(Run.open(trained).model("last").named_parameters())
    name = "embedding.tables.1"
    assert torch.equal(torch.from_numpy(last.tensors[name].floats()), torchs[name].detach())


def test_floats_that_are_still_trained_are_not_packed_as_integers(
    trained: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    assert main(["quantize", str(trained), "--out", str(out), "--bits", "6", "--steps", "2"]) == 0
    with pytest.raises(RunError, match=r"has .* as floats.*: pack the run's best checkpoint"):
        pack_run(out, tmp_path / "m", checkpoint="last")


def test_what_cannot_be_packed_is_refused(trained: Path, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="is not a run"):
        pack_run(tmp_path, tmp_path / "m")
    moved = tmp_path / "moved"
    moved.mkdir()
    for name in ("recipe.yaml", "best.safetensors"):
        (moved / name).write_bytes((trained / name).read_bytes())
    reference = {"path": "nowhere", "fingerprint": "x"}
    (moved / "corpus.json").write_text(json.dumps(reference))
    with pytest.raises(RunError, match="no longer at"):
        pack_run(moved, tmp_path / "m")
    with pytest.raises(RunError, match="is not the corpus of this run"):
        corpus_of_run(moved, Run.open(trained).corpus().path)
    (moved / "best.safetensors").write_bytes(b"damaged")
    with pytest.raises(RunError, match="is damaged"):
        model_of_run(moved, None)
    (moved / "best.safetensors").unlink()
    with pytest.raises(RunError, match="has the run saved"):
        model_of_run(moved, None)
    assert not (tmp_path / "m").exists()
