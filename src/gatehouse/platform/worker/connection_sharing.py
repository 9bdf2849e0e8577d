"""Balances new connections between workers.

All workers accept from one socket, and the kernel gives a whole burst of connections to the worker that wakes first. So
before a worker accepts a connection, it compares its number of connections with those of the other workers.
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

#: Time for which a worker yields a connection to a worker with fewer connections. If that worker does not accept the
#: connection, it is busy or stopped. No further connection is yielded to it until it has polled the board again.
_YIELD_SECONDS: Final = 0.05
#: Interval at which a yielding worker checks whether the connection was accepted.
_YIELD_CHECK_SECONDS: Final = 0.002
#: Pause after a connection could not be accepted because the process has no free descriptors or memory.
_ACCEPT_ERROR_PAUSE_SECONDS: Final = 0.5
#: Number on the board for a worker that does not accept connections.
_NOT_ACCEPTING: Final = -1


class ConnectionBoard:
    """The number of open connections of each worker in shared memory, as seen by the worker `slot`. `polled` are the
    times of each worker's last call of `others_have_fewer`, in nanoseconds of the monotonic clock."""

    def __init__(self, slot: int, connections: "memoryview[int]", polled: "memoryview[int]") -> None:
        self.slot = slot
        self._open = connections
        self._polled = polled

    @classmethod
    def of(cls, workers: int) -> list["ConnectionBoard"]:
        """Return a board for each worker. No worker accepts connections yet."""
        # Processes forked from this one inherit anonymous shared memory.
        numbers = memoryview(mmap.mmap(-1, workers * 16)).cast("q")
        boards = [cls(slot, numbers[:workers], numbers[workers:]) for slot in range(workers)]
        for board in boards:
            board.leave()
        return boards

    @property
    def workers(self) -> int:
        """Return the number of workers on the board."""
        return len(self._open)

    def publish(self, connections: int) -> None:
        """Set this worker's number of connections."""
        self._open[self.slot] = connections

    def leave(self) -> None:
        """Mark this worker as not accepting connections, because it is stopping, has died, or has not started."""
        self._open[self.slot] = _NOT_ACCEPTING

    def others_have_fewer(self, now: int, since: int) -> bool:
        """Return whether a worker that accepts connections, and that polled the board after `since`, has fewer
        connections. Times are nanoseconds of the monotonic clock, which all workers share."""
        self._polled[self.slot] = now
        own_number = self._open[self.slot]
        return any(
            _NOT_ACCEPTING < number < own_number and polled > since
            for number, polled in zip(self._open, self._polled, strict=True)
        )


class ConnectionSet(set[Any]):
    """The set of connections of a uvicorn server. It publishes its size on the board while the server accepts
    connections."""

    def __init__(self, board: ConnectionBoard) -> None:
        super().__init__()
        self.board = board
        self.accepting = False
        #: number of accepted connections that are not in the set yet because their TLS handshake is in progress
        self.handshaking = 0
        #: whether the server has shut down all connections
        self.closing = False

    def add(self, connection: Any, /) -> None:
        super().add(connection)
        self.publish()
        if self.closing:
            # The connection was added after the shutdown of the others, and cannot be shut down before this call
            # returns.
            asyncio.get_running_loop().call_soon(connection.shutdown)

    def discard(self, connection: Any, /) -> None:
        super().discard(connection)
        self.publish()

    def publish(self) -> None:
        """Publish the number of connections if the server accepts connections."""
        if self.accepting:
            self.board.publish(len(self) + self.handshaking)


class Acceptor:
    """Accepts connections until it is closed. It has the interface of `asyncio.Server`. `serve` creates a connection
    from an accepted socket."""

    def __init__(
        self, listener: socket.socket, connections: ConnectionSet, serve: Callable[[socket.socket], Awaitable[object]]
    ) -> None:
        self._listener = listener
        self._connections = connections
        self._serve = serve
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._paused: asyncio.TimerHandle | None = None
        #: time at which this worker began to yield a connection to others (0 if it does not yield), and time at which
        #: it last yielded in vain
        self._yielding_since = 0
        self._yielded_in_vain_at = 0
        listener.setblocking(False)
        connections.accepting = True
        connections.publish()
        self._loop.add_reader(listener, self._readable)

    def close(self) -> None:
        self._connections.accepting, self._connections.closing = False, True
        self._connections.board.leave()
        if self._paused is not None:
            self._paused.cancel()
        else:
            self._loop.remove_reader(self._listener)

    async def wait_closed(self) -> None:
        """Return at once. The method exists because `asyncio.Server` has it. Accepted connections end by themselves."""

    def _readable(self) -> None:
        """Accept at most one connection. The next one is for the next call, or for another worker."""
        now = time.monotonic_ns()
        if self._connections.board.others_have_fewer(now, self._yielded_in_vain_at):
            self._yielding_since = self._yielding_since or now
            if now - self._yielding_since < _YIELD_SECONDS * 1e9:
                self._pause(_YIELD_CHECK_SECONDS)
                return
            self._yielded_in_vain_at = now
        self._yielding_since = 0
        try:
            accepted_socket, _ = self._listener.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        except OSError as error:
            log.warning("connections.not_accepted", reason=str(error))
            self._pause(_ACCEPT_ERROR_PAUSE_SECONDS)
            return
        accepted_socket.setblocking(False)
        self._connections.handshaking += 1
        self._connections.publish()
        task = self._loop.create_task(self._begin(accepted_socket), name="connection")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _begin(self, accepted_socket: socket.socket) -> None:
        try:
            await self._serve(accepted_socket)
        except OSError:
            # The handshake failed, or the client disconnected.
            accepted_socket.close()
        finally:
            self._connections.handshaking -= 1
            self._connections.publish()

    def _pause(self, seconds: float) -> None:
        self._loop.remove_reader(self._listener)
        self._paused = self._loop.call_later(seconds, self._resume)

    def _resume(self) -> None:
        self._paused = None
        poll = select.poll()
        poll.register(self._listener, select.POLLIN)
        if not poll.poll(0):
            # Another worker has accepted the connection.
            self._yielding_since = 0
        self._loop.add_reader(self._listener, self._readable)
