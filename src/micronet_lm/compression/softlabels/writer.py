"""One pass of the teacher over the training split, shard by shard; several processes share them.

A shard's bytes do not depend on the process that writes it, so a killed pass resumes with the
missing shards and gives the same bytes.
"""

import json
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from micronet_lm.compression.softlabels.choosing import Chosen, covered, sampled, top_k
from micronet_lm.compression.softlabels.manifest import (
    MANIFEST,
    Manifest,
    Method,
    Settings,
)
from micronet_lm.compression.softlabels.shards import (
    HALF,
    IDS,
    PROBABILITIES,
    arrays,
    is_finished,
    leftovers,
    summary_of,
    write_shard,
)
from micronet_lm.compression.softlabels.teacher import Piece, distributions
from micronet_lm.corpus import Corpus
from micronet_lm.errors import LabelsError, UsageError
from micronet_lm.files import locked
from micronet_lm.model import LanguageModel
from micronet_lm.model.fingerprint import fingerprint_of
from micronet_lm.training.agreement import agree, agree_on_folder
from micronet_lm.training.evaluation import check_ids
from micronet_lm.training.loop import make_deterministic
from micronet_lm.training.memory import keep_freed_memory
from micronet_lm.training.processes import joined_processes
from micronet_lm.training.progress_line import ProgressLine
from micronet_lm.training.shared_work import SharedWork

SHARD_TOKENS = 1 << 17
"""Tokens per shard: some 20 MB, so that a kill loses only minutes of work."""


@dataclass(frozen=True, kw_only=True)
class Report:
    """The result of the pass."""

    tokens: int
    """Number of labelled tokens."""
    hit_share: float
    """Share of tokens whose true next word is among the labels."""
    mass: float
    """Mean of the teacher's probability of the labelled words."""
    shards: int
    """Number of shards."""
    bytes: int
    """Size of the labels on disk."""
    seconds: float
    """Time of this call."""
    tokens_per_second: float
    """Speed of this call in tokens per second, all processes together."""
    fingerprint: str
    """Hash of all labels."""

    def as_json(self) -> dict[str, Any]:
        """Return plain values for a JSON object."""
        return asdict(self)


def write_soft_labels(
    teacher: LanguageModel,
    corpus: Corpus,
    folder: Path,
    *,
    method: Method = "top-k",
    count: int = 30,
    seed: int = 0,
    shard_tokens: int = SHARD_TOKENS,
    quiet: bool = False,
) -> Report:
    """Label every token of the training split; resume an interrupted call.

    Under `torchrun` every process calls this, and shards go to processes as they become free; the
    hosts must share the folder. A folder with labels of
    another teacher, corpus or kind is refused.
    """
    ids = corpus.split("train")
    check_ids(ids, teacher.config)
    words = teacher.config.bounds[-1]
    if method == "top-k" and count > words:
        raise UsageError(
            f"--top-k must be at most the {words:,} words of the corpus, got {count:,}"
        )
    settings = Settings(
        method=method,
        count=count,
        seed=seed if method == "sampled" else 0,
        teacher=fingerprint_of(teacher),
        corpus=corpus.fingerprint,
        vocabulary=words,
        tokens=len(ids) - 1,
        shard_tokens=shard_tokens,
    )
    make_deterministic()
    keep_freed_memory()
    begin = time.perf_counter()
    with (
        joined_processes() as processes,
        _claimed(folder, settings) if processes.leads else nullcontext(),
    ):
        agree(processes, {key: str(value) for key, value in settings})
        agree_on_folder(folder, processes)
        missing = [n for n in range(settings.shards) if not is_finished(folder, n)]
        missing = json.loads(processes.share_text(json.dumps(missing)))
        work = SharedWork("shards", len(missing), processes)
        own = (missing[piece] for piece in work.pieces())
        quiet = quiet or not processes.leads
        total = sum(len(settings.span(n)) for n in missing) // processes.count
        teacher = teacher.to(processes.device)
        _write_shards(teacher, ids, folder, settings, own, total=total, quiet=quiet)
        processes.wait()  # until all shards are written
        summary = summary_of(folder, settings)
        if processes.leads and missing:
            Manifest(settings=settings, summary=summary).save(folder)
    seconds = time.perf_counter() - begin
    size = sum(dtype.itemsize for dtype in arrays(settings).values())
    return Report(
        tokens=settings.tokens,
        hit_share=summary.hits / settings.tokens,
        mass=summary.mass / settings.tokens,
        shards=settings.shards,
        bytes=settings.tokens * count * size,
        seconds=seconds,
        tokens_per_second=sum(len(settings.span(n)) for n in missing) / seconds,
        fingerprint=summary.fingerprint,
    )


def _write_shards(
    teacher: LanguageModel,
    ids: NDArray[np.unsignedinteger],
    folder: Path,
    settings: Settings,
    numbers: Iterable[int],
    *,
    total: int,
    quiet: bool,
) -> None:
    """Write some shards and report the progress."""
    training = teacher.training
    teacher.eval()
    done, hits, mass, begin = 0, 0, 0.0, time.monotonic()
    with ProgressLine(total, quiet=quiet) as line:
        for number in numbers:
            shard = _Shard(settings, number)
            for piece in distributions(teacher, ids, settings.span(number)):
                found, mass_found = shard.add(piece)
                done, hits, mass = done + len(piece.following), hits + found, mass + mass_found
                pace = done / max(1e-9, time.monotonic() - begin)
                text = f"true word among the labels {hits / done:.1%}  mass {mass / done:.1%}"
                line.report(min(done, total), f"{text}  {pace:,.0f} tokens/s", what="token")
            write_shard(folder, number, shard.values, hits=shard.hits, mass=shard.mass)
    teacher.train(training)


class _Shard:
    """The labels of a shard while it is computed."""

    def __init__(self, settings: Settings, number: int) -> None:
        self._settings, self._span = settings, settings.span(number)
        shape = (len(self._span), settings.count)
        self.values = {name: np.empty(shape, dtype) for name, dtype in arrays(settings).items()}
        self.hits, self.mass = 0, 0.0
        # A token's draws depend only on the seed and its position.
        self._shifts = np.random.default_rng([settings.seed, number]).random(len(self._span))

    def add(self, piece: Piece) -> tuple[int, float]:
        """Add the labels of some tokens; return how many have the true word, and their mass."""
        low = piece.place - self._span.start
        part = slice(low, low + len(piece.following))
        chosen = self._choose(piece, part)
        self.values[IDS][part] = chosen.words.cpu().numpy()
        if PROBABILITIES in self.values:
            self.values[PROBABILITIES][part] = chosen.probabilities.cpu().numpy().astype(HALF)
        hits = int((chosen.words == piece.following.unsqueeze(1)).any(dim=1).sum())
        mass = float(covered(chosen).sum(dtype=torch.float64))
        self.hits, self.mass = self.hits + hits, self.mass + mass
        return hits, mass

    def _choose(self, piece: Piece, part: slice) -> Chosen:
        if self._settings.method == "top-k":
            return top_k(piece.distribution, self._settings.count)
        shifts = torch.from_numpy(self._shifts[part])
        return sampled(piece.distribution, self._settings.count, shifts)


@contextmanager
def _claimed(folder: Path, settings: Settings) -> Iterator[None]:
    """Lock the folder for writing; refuse one with other contents."""
    if folder.is_file():
        raise LabelsError(f"{folder} is a file: give --out a folder that does not exist yet")
    strange = [p.name for p in folder.glob("*")] if folder.is_dir() else []
    if MANIFEST in strange:
        there = Manifest.load(folder).settings
        changed = [key for key, value in there if value != getattr(settings, key)]
        if changed:
            raise LabelsError(
                f"{folder} contains soft labels with another {', '.join(changed)} "
                f"({getattr(there, changed[0])}, not {getattr(settings, changed[0])}): give "
                "another --out, or delete the folder"
            )
    elif strange:
        raise LabelsError(
            f"{folder} contains {min(strange)!r}, which is not part of soft labels: give --out an "
            "empty folder or one that does not exist yet"
        )
    try:
        with locked(folder):
            for leftover in leftovers(folder):
                leftover.unlink()
            if MANIFEST not in strange:
                Manifest(settings=settings, summary=None).save(folder)
            yield
    except BlockingIOError:
        raise LabelsError(
            f"another process is writing to {folder}: wait for it or choose another --out"
        ) from None
