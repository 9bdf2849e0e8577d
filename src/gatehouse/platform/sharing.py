"""New connections go to the worker with the fewest. All accept from one socket, and the kernel gives a whole burst to
whoever wakes first: so each looks at the others' numbers before it takes one more.
"""

import asyncio
import mmap
import select
import socket
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

import structlog

log = structlog.get_logger(__name__)

#: Seconds for which a worker with more than another leaves a connection to that one, and between two looks whether it
#: was taken. Then the other is busy, or stopped: nothing is left to it until it looks again.
_LEAVE: Final = 0.05
_LOOK: Final = 0.002
#: Seconds without accepting where the process is out of descriptors or memory.
_OUT: Final = 0.5
_ACCEPTS_NONE: Final = -1


class Board:
    """How many connections each worker has open, in memory that all of them share, as one of them sees it."""

    def __init__(self, slot: int, connections: "memoryview[int]", looked: "memoryview[int]") -> None:
        self._slot = slot
        self._open = connections
        self._looked = looked

    @classmethod
    def of(cls, workers: int) -> list["Board"]:
        """One for each worker; nobody accepts yet."""
        # Anonymous memory: processes that are forked from this one share it.
        numbers = memoryview(mmap.mmap(-1, workers * 16)).cast("q")
        boards = [cls(slot, numbers[:workers], numbers[workers:]) for slot in range(workers)]
        for board in boards:
            board.leave()
        return boards

    def tell(self, connections: int) -> None:
        self._open[self._slot] = connections

    def leave(self) -> None:
        """This worker accepts no more: it is ending, has died, or has not begun."""
        self._open[self._slot] = _ACCEPTS_NONE

    def look(self, now: int, since: int) -> bool:
        """Whether one that has looked later than `since` has fewer. Nanoseconds of the clock that all share."""
        self._looked[self._slot] = now
        mine = self._open[self._slot]
        return any(
            _ACCEPTS_NONE < number < mine and looked > since
            for number, looked in zip(self._open, self._looked, strict=True)
        )


class Counted(set[Any]):
    """A server's set of connections, with their number on the board while it accepts."""

    def __init__(self, board: Board) -> None:
        super().__init__()
        self.board = board
        self.accepting = False
        #: those that are accepted and not in the set yet: a handshake takes its time
        self.coming = 0
        #: the server has told all connections that it ends
        self.closing = False

    def add(self, connection: Any, /) -> None:
        super().add(connection)
        self.tell()
        if self.closing:
            # It came too late to be told with the others, and is not ready to be told yet.
            asyncio.get_running_loop().call_soon(connection.shutdown)

    def discard(self, connection: Any, /) -> None:
        super().discard(connection)
        self.tell()

    def tell(self) -> None:
        if self.accepting:
            self.board.tell(len(self) + self.coming)


class Acceptor:
    """Accepts until it is closed, as a server of asyncio's does. `serve` makes a connection of an accepted socket."""

    def __init__(
        self, listener: socket.socket, connections: Counted, serve: Callable[[socket.socket], Awaitable[object]]
    ) -> None:
        self._listener = listener
        self._connections = connections
        self._serve = serve
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._paused: asyncio.TimerHandle | None = None
        #: since when a connection is left to others, and when they were last waited for in vain
        self._left_at = 0
        self._in_vain_at = 0
        listener.setblocking(False)
        connections.accepting = True
        connections.tell()
        self._loop.add_reader(listener, self._readable)

    def close(self) -> None:
        self._connections.accepting, self._connections.closing = False, True
        self._connections.board.leave()
        if self._paused is not None:
            self._paused.cancel()
        else:
            self._loop.remove_reader(self._listener)

    async def wait_closed(self) -> None:
        """A server of asyncio's has this too. What was accepted is the connections' own affair."""

    def _readable(self) -> None:
        """Takes one at most: what else waits is the next turn's, or another worker's."""
        now = time.monotonic_ns()
        if self._connections.board.look(now, self._in_vain_at):
            self._left_at = self._left_at or now
            if now - self._left_at < _LEAVE * 1e9:
                self._pause(_LOOK)
                return
            self._in_vain_at = now
        self._left_at = 0
        try:
            wire, _ = self._listener.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        except OSError as error:
            log.warning("connections.not_accepted", reason=str(error))
            self._pause(_OUT)
            return
        wire.setblocking(False)
        self._connections.coming += 1
        self._connections.tell()
        task = self._loop.create_task(self._begin(wire), name="connection")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _begin(self, wire: socket.socket) -> None:
        try:
            await self._serve(wire)
        except OSError:
            # The handshake failed, or the client has left: there is nobody to tell.
            wire.close()
        finally:
            self._connections.coming -= 1
            self._connections.tell()

    def _pause(self, seconds: float) -> None:
        self._loop.remove_reader(self._listener)
        self._paused = self._loop.call_later(seconds, self._go_on)

    def _go_on(self) -> None:
        self._paused = None
        looking = select.poll()
        looking.register(self._listener, select.POLLIN)
        if not looking.poll(0):
            # Whoever it was left to has taken it.
            self._left_at = 0
        self._loop.add_reader(self._listener, self._readable)
