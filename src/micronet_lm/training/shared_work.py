"""Work that processes take as they become free, so that a slow one delays the others little."""

from collections.abc import Iterator

from micronet_lm.errors import RunError
from micronet_lm.training.processes import Processes


class SharedWork:
    """Numbered pieces of work; each goes to one process, and the leader collects what they find.

    Every process makes one with the same name and size.
    """

    def __init__(self, name: str, size: int, processes: Processes) -> None:
        self._name, self._size, self._processes = name, size, processes
        self._own: list[str] = []
        self._read = 0

    def pieces(self) -> Iterator[int]:
        """Return the pieces that this process is to do, each when it is asked for."""
        store = self._processes.store
        if store is None:
            yield from range(self._size)
            return
        while (piece := store.add(f"{self._name}/next", 1) - 1) < self._size:
            yield piece
            if (failure := self._processes.failure()) is not None:
                raise RunError(failure)

    def report(self, found: str) -> None:
        """Tell the leader a result of this process."""
        store = self._processes.store
        if store is None:
            self._own.append(found)
            return
        number = store.add(f"{self._name}/found", 1) - 1
        store.set(f"{self._name}/found/{number}", found)

    def news(self) -> list[str]:
        """Return the results of all processes since the last call; only the leader asks."""
        store = self._processes.store
        if store is None:
            news, self._own = self._own, []
            return news
        news = []
        while store.check([key := f"{self._name}/found/{self._read}"]):
            news.append(store.get(key).decode())
            self._read += 1
        return news
