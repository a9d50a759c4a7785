"""A person's memory beyond a session: words, and states of the texts that were learned."""

import fcntl
import json
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from micronet_lm.errors import PersonalError
from micronet_lm.files import leftovers, make_folder, read_small, replacing
from micronet_lm.runtime.engine import Session
from micronet_lm.runtime.lessons import Lesson, counted, learned, without
from micronet_lm.runtime.personal_file import (
    LONGEST_WORD,
    MOST_TIMES,
    Frame,
    Memories,
    decoded,
    encoded,
)
from micronet_lm.runtime.recollections import Recollections, halves
from micronet_lm.runtime.typos import Beginnings
from micronet_lm.strict_json import parse_json

if TYPE_CHECKING:
    from micronet_lm.runtime.model import LM

STATE_SHARE, WORD_SHARE = 0.3, 0.01
"""Shares of the states and of the words' counts (docs/results/open-vocabulary.md)."""
PATIENCE = 10.0
"""Seconds to wait for another process that changes the memory."""
_MODE = 0o600


class Personal:
    """What a model has learned of one person, in a private file of bounded size.

    Every change is written at once, unless it is asked otherwise; a change by another process is
    seen before the next answer. With `incognito` texts are read, but nothing is learned.
    """

    def __init__(
        self,
        model: "LM",
        path: Path | str,
        *,
        incognito: bool = False,
        shares: tuple[float, float] = (STATE_SHARE, WORD_SHARE),
    ) -> None:
        self.path, self.incognito = Path(path), incognito
        self._model, self._shares = model, shares
        shape = model.shape
        if not shape.cache:
            raise PersonalError("the model has no cache, so it has no personal memory: pack one")
        self._reach = shape.layers * (shape.context - 1) + 1
        self._frame = Frame(
            model=model.engine.checksum,
            width=shape.width,
            vocabulary=len(model.vocabulary),
            states=shape.cache,
            knows=lambda word: model.engine.find(word) is not None,
        )
        self._memories = Memories.none(shape.width)
        self._pending: list[Lesson] = []  # learned, but not written yet
        self._seen: tuple[int, ...] = ()  # of the file that the memories are from
        self._version = 0
        self._forgotten: list[tuple[int, list[str]]] = []
        self._ready: tuple[int, Any, Beginnings] | None = None
        self._refresh()

    @property
    def states(self) -> int:
        """Number of hidden states that are remembered."""
        return len(self._current().following)

    def words(self) -> dict[str, int]:
        """Return the words outside the vocabulary and their counts, the most frequent first."""
        memories, looks = self._current(), self._model.screen.looks
        totals: dict[str, int] = {}
        for token, count in zip(memories.words, memories.counts, strict=True):
            totals[looks(token)] = totals.get(looks(token), 0) + count
        return dict(sorted(totals.items(), key=lambda item: (-item[1], item[0])))

    def learn(self, text: str, *, save: bool = True) -> int:
        """Learn a text; return its number of tokens, 0 if incognito.

        Without `save` it is written by the next change or `save()`.
        """
        tokens = self._model.encoder.tokens(text)
        if self.incognito or not tokens:
            return 0
        lesson = self._lesson(tokens)
        if save:
            self._change(lambda memories: learned(memories, lesson, self._frame))
        else:
            self._pending.append(lesson)
            self._set(learned(self._memories, lesson, self._frame))
        return len(tokens)

    def save(self) -> None:
        """Write what was learned without `save`."""
        if self._pending:
            self._change(lambda memories: memories)

    def forget(self, word: str) -> bool:
        """Remove all that is remembered of a word, in small letters and capitals.

        Return whether there was anything. States that read it go, too; sessions that are open
        forget it as well.
        """
        engine, looks = self._model.engine, self._model.screen.looks
        forms = dict.fromkeys((word, word.lower(), word.capitalize(), word.upper()))
        tokens = [token for form in forms for token in self._model.screen.tokens_of(form)]
        ids = {number for token in tokens if (number := engine.find(token)) is not None}
        ids -= {self._model.encoder.unknown, self._model.encoder.line_end}
        held: list[str] = []

        def drop(memories: Memories) -> Memories:
            folded = word.casefold()
            held.extend(one for one in memories.words if looks(one).casefold() == folded)
            return without(memories, held, ids, self._reach, self._frame)

        before = len(self._current().following)
        self._change(drop)
        self._forgotten.append((self._version, [*held, *tokens]))
        return bool(held) or len(self._memories.following) < before

    def clear(self) -> None:
        """Forget everything; the file remains, empty."""
        words = list(self._current().words)
        self._pending.clear()
        self._change(lambda memories: Memories.none(self._frame.width))
        self._forgotten.append((self._version, words))

    def export(self) -> str:
        """Return the words and their counts as JSON, for `merge` with any model."""
        report = {"micronet_words": 1, "words": self.words()}
        return json.dumps(report, ensure_ascii=False, indent=1) + "\n"

    def merge(self, other: "Personal | str") -> int:
        """Add another memory, or the words that `export` gave; return the number of its words.

        A memory of the same model brings its states along, before those that are here.
        """
        if isinstance(other, Personal):
            return self._merge(other)
        words = _exported(other)
        new = {
            word: count
            for word, count in words.items()
            if _keeps(word)
            and self._model.encoder.tokens(word) == [word]
            and not self._frame.knows(word)
        }
        lesson = Lesson(
            counts=new, following=[], states=np.empty((0, self._frame.width), np.float16)
        )
        self._change(lambda memories: learned(memories, lesson, self._frame))
        return len(new)

    @property
    def version(self) -> int:
        """A number that grows with every change, also by other processes."""
        self._refresh()
        return self._version

    @property
    def index(self) -> Beginnings:
        """The beginnings of the words that sessions recall."""
        return self._prepared()[2]

    def renew(self, session: Session, since: int) -> None:
        """Let a session recall what is known now, and forget what was forgotten since a version."""
        for changed, words in self._forgotten:
            if changed > since:
                for word in words:
                    session.forget(word)
        session.recall(self._prepared()[1])

    def _lesson(self, tokens: list[str]) -> Lesson:
        encoder, looks = self._model.encoder, self._model.screen.looks
        new = [
            token
            for token, number in zip(tokens, encoder.ids_of(tokens).tolist(), strict=True)
            if number == encoder.unknown and looks(token) and _keeps(token)
        ]
        session = self._model.engine.start()
        # States depend on `reach` tokens only, and the oldest would not be kept.
        tail = tokens[-(self._frame.states + self._reach) :]
        session.feed(encoder.line_end)
        session.feed_many(encoder.ids_in(session, tail))
        states, following = session.remembered(self._frame.states)
        kept, labels = np.ones(len(following), bool), []
        for place, number in enumerate(following.tolist()):
            label = number if number < self._frame.vocabulary else session.word(number)
            kept[place] = number != encoder.unknown and (
                isinstance(label, int) or (bool(looks(label)) and _keeps(label))
            )
            if kept[place]:
                labels.append(label)
        return Lesson(counts=counted(new), following=labels, states=halves(states[kept]))

    def _merge(self, other: "Personal") -> int:
        theirs = other._current()
        if other._frame.model != self._frame.model:
            return self.merge(other.export())
        counts = dict(zip(theirs.words, theirs.counts, strict=True))
        known = self._frame.vocabulary
        numbers = theirs.following.tolist()
        lesson = Lesson(
            counts=counts,
            following=[n if n < known else theirs.words[n - known] for n in numbers],
            states=theirs.states,
        )

        def add(ours: Memories) -> Memories:
            whole = learned(Memories.none(self._frame.width), lesson, self._frame)
            labels = [n if n < known else ours.words[n - known] for n in ours.following.tolist()]
            own = dict(zip(ours.words, ours.counts, strict=True))
            newer = Lesson(counts=own, following=labels, states=ours.states)
            return learned(whole, newer, self._frame)

        self._change(add)
        return len(counts)

    def _prepared(self) -> tuple[int, Any, Beginnings]:
        """Return the version, what its sessions recall, and the index of its words."""
        self._refresh()
        if self._ready is None or self._ready[0] != self._version:
            own, looks = self._memories, self._model.screen.looks
            recollections = Recollections(
                states=own.states,
                following=own.following,
                words=own.words,
                counts=own.counts,
                state_share=self._shares[0],
                word_share=self._shares[1],
            )
            recollected = self._model.engine.recollect(recollections)
            self._ready = self._version, recollected, Beginnings(map(looks, own.words))
        return self._ready

    def _current(self) -> Memories:
        self._refresh()
        return self._memories

    def _set(self, memories: Memories) -> None:
        self._memories = memories
        self._version += 1

    def _refresh(self) -> None:
        """Read the file again if it has changed, and learn again what is not in it yet."""
        seen = self._stat()
        if seen == self._seen:
            return
        memories = self._read() if seen else Memories.none(self._frame.width)
        for lesson in self._pending:
            memories = learned(memories, lesson, self._frame)
        self._seen = seen
        self._set(memories)

    def _change(self, change: Callable[[Memories], Memories]) -> None:
        """Change the newest memories and write them, while no other process does."""
        with self._locked():
            for killed in leftovers(self.path):  # nobody else writes now; it may hold a word
                killed.unlink(missing_ok=True)
            self._refresh()
            memories = change(self._memories)
            with replacing(self.path, mode=_MODE) as temporary:
                temporary.write_bytes(encoded(memories, self._frame))
            self._pending.clear()
            self._seen = self._stat()
            self._set(memories)

    def _read(self) -> Memories:
        try:
            return decoded(read_small(self.path, self._frame.most_bytes), self._frame)
        except PersonalError as error:
            raise PersonalError(f"{self.path} {error}") from None

    def _stat(self) -> tuple[int, ...]:
        try:
            found = self.path.stat()
        except FileNotFoundError:
            return ()
        if not stat.S_ISREG(found.st_mode):
            raise PersonalError(f"{self.path} is not a regular file: choose another path")
        if found.st_mode & 0o077:
            raise PersonalError(
                f"{self.path} can be read or changed by others: take that away with "
                f"'chmod 600 {self.path}'"
            )
        return found.st_ino, found.st_mtime_ns, found.st_size

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock of the file's folder, which dies with its process and leaves no trace."""
        make_folder(self.path.absolute().parent)
        handle = os.open(self.path.absolute().parent, os.O_RDONLY | os.O_CLOEXEC)
        try:
            until = time.monotonic() + PATIENCE
            while True:
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > until:
                        raise PersonalError(
                            f"{self.path} is being changed by another process: try again later"
                        ) from None
                    time.sleep(0.01)
            yield
        finally:
            os.close(handle)


def _keeps(word: str) -> bool:
    """Return whether a word is short enough to be kept, and text."""
    try:
        return 0 < len(word.encode()) <= LONGEST_WORD and "\n" not in word
    except UnicodeEncodeError:
        return False


def _exported(text: str) -> dict[str, int]:
    """Read what `Personal.export` gave."""
    try:
        report = parse_json(text, "it")
        words = report["words"] if report["micronet_words"] == 1 else None
    except (ValueError, KeyError, TypeError):
        words = None
    if not isinstance(words, dict) or not all(
        type(count) is int and 0 < count <= MOST_TIMES for count in words.values()
    ):
        raise PersonalError(
            "these are not exported words: give what 'export' wrote, a JSON object with "
            "micronet_words and words"
        )
    return words
