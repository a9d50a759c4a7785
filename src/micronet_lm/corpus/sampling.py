"""Choose the tokens of a training step: random windows of the text, or contiguous streams.

Both depend only on the seed and the step. So a run resumes without any saved sampler state, and
every process can take its own rows of the same global batch.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from micronet_lm.errors import CorpusError


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Some sequences of one step's batch."""

    inputs: NDArray[np.int64]
    """(B, T) words to read."""

    targets: NDArray[np.int64]
    """(B, T) words to predict: the inputs shifted by one."""

    starts: NDArray[np.int64]
    """(B) positions of the first inputs in the split."""

    fresh: bool
    """Whether the sequences start again instead of continuing those of the previous step."""

    prefix: NDArray[np.int64]
    """(B, P) words before the inputs, to read without gradients; P is 0 without a prefix."""


class Sampler:
    """Batches of a fixed shape from a split's ids."""

    def __init__(
        self,
        ids: NDArray[np.unsignedinteger],
        *,
        sampling: Literal["random", "stream"],
        batch: int,
        window: int,
        seed: int,
        beginnings: float = 0.0,
        line_end: int | None = None,
        prefix: int = 0,
    ) -> None:
        self._ids, self._prefix = ids, prefix
        self._batch, self._window, self._seed = batch, window, seed
        self._beginnings = beginnings
        self._random = sampling == "random"
        # A stream needs one more token than its inputs; random tiles are shifted by up to a window.
        # The first tokens of the split are only ever a prefix.
        needed = prefix + 2 * window if self._random else batch * window + 1
        if len(ids) < needed:
            remedy = "train.window" if self._random else "train.batch or train.window"
            raise CorpusError(
                f"the split has {len(ids):,} tokens, but {sampling} windows of {window:,} "
                f"in a batch of {batch}{f' after a prefix of {prefix:,}' if prefix else ''} need "
                f"{needed:,}: lower {remedy}{' or train.prefix' if prefix else ''}"
            )
        if beginnings:
            # A window that begins with a line end predicts a line's first word.
            self._line_ends = np.flatnonzero(ids[: len(ids) - window] == line_end)
            if not len(self._line_ends):
                raise CorpusError(
                    "the split has no line end that a whole window follows; "
                    "set train.beginnings 0 or lower train.window"
                )
        self._order: tuple[int, NDArray[np.int64]] | None = None

    def rows(self, step: int, first: int = 0, count: int | None = None) -> Rows:
        """Return rows `first` to `first + count` of the batch of `step` (all rows by default)."""
        wanted = range(first, first + (self._batch if count is None else count))
        if self._random:
            starts = [self._start(step * self._batch + row) for row in wanted]
            fresh = True
        else:
            length = (len(self._ids) - 1) // self._batch
            turn = step % (length // self._window)
            starts = [row * length + turn * self._window for row in wanted]
            fresh = turn == 0
        windows = np.stack([self._ids[s : s + self._window + 1] for s in starts]).astype(np.int64)
        return Rows(
            inputs=windows[:, :-1],
            targets=windows[:, 1:],
            starts=np.array(starts, dtype=np.int64),
            fresh=fresh,
            prefix=np.stack([self._ids[s - self._prefix : s] for s in starts]).astype(np.int64),
        )

    def _start(self, number: int) -> int:
        """Start of the number-th window, moved on to the next line end if it shall begin a text.

        Over any stretch of the run, the share of such windows is `beginnings`.
        """
        start = self._random_start(number)
        if int((number + 1) * self._beginnings) == int(number * self._beginnings):
            return start
        following = np.searchsorted(self._line_ends, start)
        return int(self._line_ends[following % len(self._line_ends)])

    def _random_start(self, number: int) -> int:
        """Return the start of the number-th window of the run.

        An epoch divides the text into tiles of one window, all shifted by the same random amount,
        and visits them in random order. So an epoch sees no token twice, and misses fewer than two
        windows of tokens at the edges, which epochs with other shifts see.
        """
        tiles = (len(self._ids) - self._prefix - self._window) // self._window
        epoch, turn = divmod(number, tiles)
        if self._order is None or self._order[0] != epoch:
            random = np.random.default_rng([self._seed, epoch])
            shift = self._prefix + random.integers(self._window)
            self._order = (epoch, shift + self._window * random.permutation(tiles))
        return int(self._order[1][turn])
