"""Several processes whose hosts share no folder: each rank has its own, with old or other files."""

import json
import shutil
import signal
import subprocess
from pathlib import Path

from tests.support.corpora import recurring_corpus
from tests.support.processes import CACHE, ENVIRONMENT, TORCHRUN, TWO, finish, train_command
from tests.support.runs import same_tensors, train_lines

from micronet_lm.corpus import Corpus

OWN_FOLDERS = """
import os, signal, sys
import micronet_lm.training.checkpoint as checkpoint
from micronet_lm.cli.main import main

real, calls = checkpoint.save_file, []

def save_file(tensors, path, metadata):
    real(tensors, path, metadata=metadata)
    calls.append(path)
    if len(calls) == int(os.environ.get("KILLED_AT", "0")):
        os.kill(os.getpid(), signal.SIGKILL)

checkpoint.save_file = save_file
sys.exit(main([word.replace("RANK", os.environ["RANK"]) for word in sys.argv[1:]]))
"""


def test_the_leader_decides_which_checkpoint(tmp_path: Path, corpus: Corpus) -> None:
    """Rank 1 has another checkpoint in a folder of its own, which must not be read."""
    more = ["--train.sampling", "stream", "--model.dropout", "0.1", *CACHE]
    whole, mine = tmp_path / "whole", tmp_path / "rank-RANK"
    finish(train_command(whole, corpus, *more, program=TWO))
    script = tmp_path / "own_folders.py"
    script.write_text(OWN_FOLDERS)
    words = train_command(mine, corpus, *more, program=[*TORCHRUN, str(script)])
    dead = subprocess.run(
        words,
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
        env={**ENVIRONMENT, "KILLED_AT": "4"},
    )
    assert f"exitcode  : {-signal.SIGKILL}" in dead.stderr
    ours = [line for line in dead.stderr.splitlines() if line.startswith("micronet [rank 1]")]
    assert len(ours) == 1, dead.stderr
    assert "another process" in ours[0]
    assert not (tmp_path / "rank-1" / "last.safetensors").exists()
    (tmp_path / "rank-1").mkdir(exist_ok=True)
    shutil.copy(whole / "last.safetensors", tmp_path / "rank-1")  # of another step
    finish(words)
    assert same_tensors(whole / "last.safetensors", tmp_path / "rank-0" / "last.safetensors")
    assert [v["loss"] for v in train_lines(whole)] == [
        v["loss"] for v in train_lines(tmp_path / "rank-0")
    ]


DISAGREEING = """
import json, os, sys
from pathlib import Path
import torch
from tests.support.recipes import tiny_recipe
from micronet_lm.compression import write_soft_labels
from micronet_lm.compression.sensitivity import analyse
from micronet_lm.corpus import Corpus
from micronet_lm.errors import MicronetError
from micronet_lm.model import LanguageModel
from micronet_lm.training import Run, train
from micronet_lm.training.processes import joined_processes
from micronet_lm.training.shared_work import SharedWork

place, corpora = Path(sys.argv[1]), sys.argv[2:]
rank = int(os.environ["RANK"])
own = place / str(rank)
own.mkdir()

def said(work):
    try:
        work()
    except MicronetError as error:
        return str(error)
    return None

def model(seed):
    torch.manual_seed(seed)
    return LanguageModel(recipe.model)

corpus, other = map(Corpus.open, corpora)
recipe = tiny_recipe(corpus)
ids = corpus.split("valid")[:60]
with joined_processes() as processes:
    answers = {
        "corpus": said(lambda: train(Run(own / "a"), recipe, (corpus, other)[rank], quiet=True)),
        "weights": said(
            lambda: train(Run(own / "b"), recipe, corpus, model=model(rank), quiet=True)
        ),
        "model": said(lambda: analyse(model(rank), ids, own / "points", processes, grid=(0.5,))),
        "folder": said(lambda: write_soft_labels(model(0), corpus, own / "labels", quiet=True)),
    }
    if rank == 1:  # points of an older analysis, which nobody may read
        (own / "old").write_text("damaged")
    work, done = SharedWork("slow", 12, processes), []
    for piece in work.pieces():
        done.append(piece)
        if rank == 1:  # not ready before the other one has done all that is left
            processes.store.wait(["all-done"])
    if rank == 0:
        processes.store.set("all-done", "")
    answers["pieces"] = sorted(json.loads(processes.share_text(json.dumps(done))))
    answers["slow"] = len(done) if rank == 1 else None
    same = model(0)
    found = analyse(same, ids, own / "old", processes, grid=(0.5, 0.9))
(own / "answers.json").write_text(json.dumps(answers))
(own / "found.json").write_text(json.dumps(found.as_json()))
if rank == 0:
    from micronet_lm.training.processes import Processes
    alone = Processes(rank=0, count=1, device=processes.device)
    table = analyse(same, ids, place / "alone", alone, grid=(0.5, 0.9)).as_json()
    (place / "alone.json").write_text(json.dumps(table))
"""


def test_disagreement_is_one_sentence_in_every_process(tmp_path: Path, corpus: Corpus) -> None:
    """Other corpora, weights, models and folders; then points that only the leader may read."""
    (tmp_path / "other").mkdir()
    other = recurring_corpus(tmp_path / "other")
    script = tmp_path / "disagreeing.py"
    script.write_text(DISAGREEING)
    finish([*TORCHRUN, str(script), str(tmp_path), str(corpus.path), str(other.path)])
    answers = [json.loads((tmp_path / r / "answers.json").read_text()) for r in "01"]
    for rank, said in enumerate(answers):  # each names its own path
        said["folder"] = said["folder"].replace(str(tmp_path / str(rank)), "")
    slow = [said.pop("slow") for said in answers]
    assert answers[0] == answers[1]
    assert slow[1] in (0, 1)  # the slow one was not waited for
    assert len(answers[0]["pieces"]) == 12 - slow[1]
    for name in ("corpus", "weights", "model"):
        assert f"do not begin with the same {name}: process 0 on" in answers[0][name]
        assert "process 1 on" in answers[0][name]
    assert "give a folder that all hosts share" in answers[0]["folder"]
    tables = [tmp_path / "0/found.json", tmp_path / "1/found.json", tmp_path / "alone.json"]
    assert len({file.read_text() for file in tables}) == 1
    assert (tmp_path / "0/old").read_text() == (tmp_path / "alone").read_text()
    assert (tmp_path / "1/old").read_text() == "damaged"
