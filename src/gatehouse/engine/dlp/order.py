"""Events of a stream that wait: for those before them that they must not overtake, and for their own texts.

Looked at is only what may go on since the last time: what has just come to the front, and what waits for something that
has moved. So many open texts cost no more than their own events.
"""

from collections import deque
from collections.abc import Callable, Hashable
from heapq import heappop, heappush
from typing import Generic, TypeVar

Item = TypeVar("Item")
Awaited = TypeVar("Awaited", bound=Hashable)


class _Line(Generic[Item]):
    """Events one behind the other. Its first goes on when there is no line below it. `key` orders lines as they were
    begun, each behind the one that it is below."""

    __slots__ = ("above", "begun", "below", "is_ready", "key", "name", "queue")

    def __init__(self, above: "_Line[Item] | None", name: str, key: tuple[int, ...]) -> None:
        self.above = above
        self.name = name
        self.key = key
        self.below: dict[str, _Line[Item]] = {}
        #: each with the names of the lines below that it belongs to; the first one belongs here
        self.queue: deque[tuple[tuple[str, ...], Item]] = deque()
        self.begun = 0
        self.is_ready = False

    def line_below(self, name: str) -> "_Line[Item]":
        line = self.below.get(name)
        if line is None:
            line = self.below[name] = _Line(self, name, (*self.key, self.begun))
            self.begun += 1
        return line


class EventOrder(Generic[Item, Awaited]):
    """At the root are the events that wait for everything before them, below them those of one choice or block, below
    these those of one text."""

    def __init__(self) -> None:
        self._root: _Line[Item] = _Line(None, "", ())
        self._ready: list[tuple[tuple[int, ...], _Line[Item]]] = []
        #: the lines whose first event waits for something
        self._waiting: dict[Awaited, list[_Line[Item]]] = {}

    def put(self, path: tuple[str, ...], item: Item) -> None:
        self._put(self._root, path, item)

    def wake_waiting(self, awaited: Awaited) -> None:
        """What waits for it may go on."""
        for line in self._waiting.pop(awaited, ()):
            self._wake(line)

    def drain(self, go: Callable[[Item], Awaited | None], stops: Callable[[], bool]) -> None:
        """Lets go what may, until `stops`: `go` tells what an event waits for, or None when it is gone."""
        while self._ready and not stops():
            _, line = heappop(self._ready)
            line.is_ready = False
            self._advance(line, go)

    def _put(self, line: _Line[Item], path: tuple[str, ...], item: Item) -> None:
        while path and not line.queue:
            line, path = line.line_below(path[0]), path[1:]
        if not line.queue:
            self._wake(line)
        line.queue.append((path, item))

    def _wake(self, line: _Line[Item]) -> None:
        if not line.is_ready:
            line.is_ready = True
            heappush(self._ready, (line.key, line))

    def _advance(self, line: _Line[Item], go: Callable[[Item], Awaited | None]) -> None:
        queue = line.queue
        while queue and not line.below:
            awaited = go(queue[0][1])
            if awaited is not None:
                self._waiting.setdefault(awaited, []).append(line)
                return
            queue.popleft()
            while queue and queue[0][0]:
                path, item = queue.popleft()
                self._put(line.line_below(path[0]), path[1:], item)
        above = line.above
        if above is None or queue or line.below:
            return
        # A line that is over is not woken again by what it has waited for.
        del above.below[line.name]
        line.above = None
        if not above.below:
            self._wake(above)
