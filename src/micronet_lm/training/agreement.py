"""What processes that train together must have in common before the first step.

The leader decides which checkpoint a run resumes from and sends it to the others, so that hosts
need not share the run's folder. Then all compare what they begin with.
"""

import hashlib
import json
import secrets
import time
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from micronet_lm.config import Recipe, dump_recipe
from micronet_lm.corpus import Corpus
from micronet_lm.errors import RunError
from micronet_lm.runs import Progress
from micronet_lm.training.checkpoint import Checkpoint, read_checkpoint
from micronet_lm.training.processes import Processes, host_name
from micronet_lm.training.run import Input

FOLDER_SECONDS = 5.0
"""How long a host may take to see a file that another has written: network folders have caches."""


def agree(processes: Processes, facts: Mapping[str, str]) -> None:
    """Refuse to begin, in every process with the same sentence, unless all have the same facts.

    `facts` are short texts by what they are called, such as a step or a hash.
    """
    if processes.count == 1:
        return
    said = [json.loads(t) for t in processes.texts(json.dumps([host_name(), dict(facts)]))]
    (leader, leading), *others = said
    for rank, (host, own) in enumerate(others, 1):
        for name in {**leading, **own}:
            if leading.get(name) != own.get(name):
                raise RunError(
                    f"the processes do not begin with the same {name}: process 0 on {leader} has "
                    f"{leading.get(name, 'none')}, process {rank} on {host} has "
                    f"{own.get(name, 'none')}: give all hosts the same files, best in a folder "
                    "that they share, and run the command again"
                )


def agree_on_sources(
    processes: Processes, recipe: Recipe, corpus: Corpus, inputs: Mapping[str, Input] | None
) -> None:
    """Refuse to begin unless all processes have the same recipe, corpus and other inputs."""
    recipe_hash = hashlib.sha256(dump_recipe(recipe).encode()).hexdigest()
    given = {name: short(own.fingerprint) for name, own in (inputs or {}).items()}
    facts = {"recipe": short(recipe_hash), "corpus": short(corpus.fingerprint)}
    agree(processes, {**facts, **given})


def agree_on_state(processes: Processes, progress: Progress, tensors: Mapping[str, Tensor]) -> None:
    """Refuse to begin unless all processes have the same step, progress and tensors."""
    if processes.count == 1:
        return
    whole = json.dumps(vars(progress))
    hashes = {"progress": hashlib.sha256(whole.encode()).hexdigest(), "weights": digest(tensors)}
    agree(processes, {"step": f"step {progress.step}", **{n: short(h) for n, h in hashes.items()}})


def short(fingerprint: str) -> str:
    """Return the part of a hash that people compare."""
    return fingerprint[:16]


def digest(tensors: Mapping[str, Tensor]) -> str:
    """Return one hash of named tensors."""
    found = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        plain = tensor.detach().cpu().contiguous()
        found.update(f"{name} {plain.dtype} {tuple(plain.shape)}\n".encode())
        found.update(plain.reshape(-1).view(torch.uint8).numpy().data)
    return found.hexdigest()


def leaders_checkpoint(path: Path, processes: Processes) -> Checkpoint | None:
    """Return the leader's checkpoint in every process; None if the leader has none."""
    own = read_checkpoint(path) if processes.leads and path.is_file() else None
    if processes.count == 1:
        return own
    kinds = {n: (str(t.dtype), list(t.shape)) for n, t in own.tensors.items()} if own else {}
    header = {"progress": vars(own.progress), "tensors": kinds} if own else None
    there = json.loads(processes.share_text(json.dumps(header)))
    if there is None:
        return None
    tensors = {}
    for name, (kind, shape) in there["tensors"].items():
        dtype = getattr(torch, kind.removeprefix("torch."))
        mine = own.tensors[name] if own else torch.empty(shape, dtype=dtype)
        tensors[name] = processes.share_tensor(mine)
    return Checkpoint(tensors=tensors, progress=Progress(**there["progress"]))


def agree_on_folder(folder: Path, processes: Processes) -> None:
    """Refuse a folder that the hosts do not share, in every process with the same sentence."""
    if processes.count == 1:
        return
    mark = folder / f".seen-{processes.share_text(secrets.token_hex(8))}"
    if processes.leads:
        mark.touch()
    processes.wait()
    end = time.monotonic() + FOLDER_SECONDS
    while not (seen := mark.exists()) and time.monotonic() < end:
        time.sleep(0.1)
    said = [json.loads(t) for t in processes.texts(json.dumps([host_name(), seen]))]
    if processes.leads:
        mark.unlink(missing_ok=True)
    for rank, (host, sees) in enumerate(said):
        if not sees:
            raise RunError(
                f"process {rank} on {host} does not see the files that process 0 on {said[0][0]} "
                f"writes in {folder}: give a folder that all hosts share"
            )
