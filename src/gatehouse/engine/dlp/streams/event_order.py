"""Orders the waiting events of a stream. An event waits for the events that it must not overtake, and for its own
texts.

Only events that may have become ready are checked: events that have reached the front of their queue, and events whose
awaited text has advanced. Events of other open texts therefore cost nothing.
"""

from collections import deque
from collections.abc import Callable, Hashable
from heapq import heappop, heappush
from typing import Generic, TypeVar

Item = TypeVar("Item")
Awaited = TypeVar("Awaited", bound=Hashable)


class _Node(Generic[Item]):
    """A node of the tree, with a queue of events. The first event may be released when the node has no children. `key`
    orders nodes by creation; a node comes after its parent."""

    __slots__ = ("children", "children_created", "is_ready", "key", "name", "parent", "queue")

    def __init__(self, parent: "_Node[Item] | None", name: str, key: tuple[int, ...]) -> None:
        self.parent = parent
        self.name = name
        self.key = key
        self.children: dict[str, _Node[Item]] = {}
        #: pairs of an event and the names of the descendants that the event belongs to; the first event belongs to this
        #: node
        self.queue: deque[tuple[tuple[str, ...], Item]] = deque()
        self.children_created = 0
        self.is_ready = False

    def child(self, name: str) -> "_Node[Item]":
        node = self.children.get(name)
        if node is None:
            node = self.children[name] = _Node(self, name, (*self.key, self.children_created))
            self.children_created += 1
        return node


class EventOrder(Generic[Item, Awaited]):
    """A tree of event queues. Events at the root wait for all events before them. The root's children have the events
    of one choice or block, and their children the events of one text."""

    def __init__(self) -> None:
        self._root: _Node[Item] = _Node(None, "", ())
        self._ready: list[tuple[tuple[int, ...], _Node[Item]]] = []
        #: the nodes whose first event waits for a text, by that text
        self._waiting: dict[Awaited, list[_Node[Item]]] = {}

    def put(self, path: tuple[str, ...], item: Item) -> None:
        """Add an event. `path` contains the names of its node and of the node's ancestors below the root."""
        self._put(self._root, path, item)

    def wake_waiting(self, awaited: Awaited) -> None:
        """Mark the events that wait for `awaited` for another check."""
        for node in self._waiting.pop(awaited, ()):
            self._wake(node)

    def drain(self, release: Callable[[Item], Awaited | None], stops: Callable[[], bool]) -> None:
        """Release events that are ready, until `stops` returns True. `release` releases an event and returns None, or
        returns the object that the event waits for."""
        while self._ready and not stops():
            _, node = heappop(self._ready)
            node.is_ready = False
            self._advance(node, release)

    def _put(self, node: _Node[Item], path: tuple[str, ...], item: Item) -> None:
        while path and not node.queue:
            node, path = node.child(path[0]), path[1:]
        if not node.queue:
            self._wake(node)
        node.queue.append((path, item))

    def _wake(self, node: _Node[Item]) -> None:
        if not node.is_ready:
            node.is_ready = True
            heappush(self._ready, (node.key, node))

    def _advance(self, node: _Node[Item], release: Callable[[Item], Awaited | None]) -> None:
        queue = node.queue
        while queue and not node.children:
            awaited = release(queue[0][1])
            if awaited is not None:
                self._waiting.setdefault(awaited, []).append(node)
                return
            queue.popleft()
            while queue and queue[0][0]:
                path, item = queue.popleft()
                self._put(node.child(path[0]), path[1:], item)
        parent = node.parent
        if parent is None or queue or node.children:
            return
        # A removed node must not be woken again by a text that it has awaited.
        del parent.children[node.name]
        node.parent = None
        if not parent.children:
            self._wake(parent)
