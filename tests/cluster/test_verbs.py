"""Every verb whose work processes share, on two nodes, by the script of docs/cluster.md."""

from pathlib import Path
from typing import NamedTuple

import pytest
from tests.support.cluster_jobs import changed, documented_script
from tests.support.processes import ONE, TWO, finish, train_command
from tests.support.recipes import TINY, as_words
from tests.support.runs import same_tensors
from tests.support.slurm import Cluster, wait_for_end

from micronet_lm.corpus import Corpus

SIZES = {"train.steps": 8, "train.batch": 4, "train.learning_rate": 0.005, "train.warmup": 1}
SIZES |= {"train.evaluate_every": 4, "train.save_every": 3, "prune.every": 2, "prune.steps": 6}


class Verb(NamedTuple):
    """How a verb is called here, and what it makes."""

    words: list[str]
    """Words of its command line besides --out; TEACHER, LABELS and CORPUS stand for folders."""

    made: str
    """Pattern of its files that are compared."""

    pieces: bool
    """Whether its pieces are those of one process; a training has the bits of as many processes."""


TRAINED = "last.safetensors"
VERBS = {
    "soft-labels": Verb(["TEACHER", "--top-k", "5", "--shard-tokens", "500"], "*.npy", True),
    "distill": Verb(
        ["demo", "--labels", "LABELS", "--distill.top_k", "5", *as_words(TINY)], TRAINED, False
    ),
    "sensitivity": Verb(
        ["TEACHER", "--tokens", "200", "--grid", "0.3,0.7"], "sensitivity.json", True
    ),
    "prune": Verb(
        ["TEACHER", "--sparsity", "0.4", "--allocation", "uniform", *as_words(SIZES)],
        TRAINED,
        False,
    ),
    "quantize": Verb(["TEACHER", "--bits", "6", "--steps", "4"], TRAINED, False),
}

ADDRESS = {
    "first=$(scontrol show hostnames | head -1)": (
        'first=$(scontrol show node "$SLURMD_NODENAME" | grep -o "NodeAddr=[0-9.]*" | cut -c10-)'
    )
}
"""The first node by its address, for a cluster where names of hosts cannot be resolved."""


@pytest.fixture(name="folders", scope="module")
def _folders(tmp_path_factory: pytest.TempPathFactory, corpus: Corpus) -> dict[str, str]:
    """A trained run and its soft labels, made by one process outside the cluster."""
    place = tmp_path_factory.mktemp("verbs")
    given = {"TEACHER": str(place / "teacher"), "LABELS": str(place / "labels")}
    finish(train_command(place / "teacher", corpus))
    words, _, _ = VERBS["soft-labels"]
    named = [given.get(word, word) for word in words]
    finish([*ONE, "soft-labels", *named, "--out", given["LABELS"], "--corpus", str(corpus.path)])
    return given


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_on_two_nodes(
    cluster: Cluster, tmp_path: Path, corpus: Corpus, folders: dict[str, str], verb: str
) -> None:
    out, here, log = tmp_path / "nodes", tmp_path / "here", tmp_path / "log.txt"
    words, made, pieces = VERBS[verb]
    given = [verb, *[folders.get(word, word) for word in words], "--corpus", str(corpus.path)]
    script = documented_script(" ".join([*given, "--out", str(out)]), mem="900M", log=str(log))
    if verb == "sensitivity":
        script = changed(script, ADDRESS)
    (tmp_path / "job.sh").write_text(script)
    done = cluster.run(["sbatch", "--parsable", str(tmp_path / "job.sh")])
    assert done.returncode == 0, done.stderr
    ended = wait_for_end(cluster, done.stdout.strip())
    assert (ended["JobState"], ended["NumNodes"]) == ("COMPLETED", "2"), log.read_text()
    finish([*(ONE if pieces else TWO), *given, "--out", str(here)])
    files = sorted(here.glob(made))
    assert files
    for file in files:
        other = out / file.name
        if made == TRAINED:
            assert same_tensors(file, other)
        else:
            assert file.read_bytes() == other.read_bytes(), file.name
