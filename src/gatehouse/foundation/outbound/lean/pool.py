"""Who may call, who waits for it, and which connections are idle."""

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final, Self

from gatehouse.foundation.outbound import NoConnectionFree
from gatehouse.foundation.outbound.lean.connection import Connection
from gatehouse.foundation.outbound.lean.route import Origin

#: Calls that may wait for one provider, however few may be in progress: a burst is no overload.
WAITING: Final = 1000


@dataclass(frozen=True, slots=True)
class Bounds:
    """`calls` in progress in all, and with one provider; `waiting`: how many more may wait for one provider."""

    calls: int
    calls_each: int
    waiting_each: int

    @classmethod
    def of(cls, calls: int, calls_each: int | None) -> Self:
        """A carrier's. None: one provider may have all calls."""
        return cls(calls, min(calls_each or calls, calls), max(calls, WAITING))


class Host:
    """One provider's calls and idle connections, the newest last."""

    __slots__ = ("calls", "idle", "origin", "waiting")

    def __init__(self, origin: Origin) -> None:
        self.origin = origin
        self.calls = 0
        self.idle: OrderedDict[Connection, None] = OrderedDict()
        self.waiting: OrderedDict[asyncio.Future[None], None] = OrderedDict()


class Pool:
    """Keeper of a worker's connections. Idle ones count too: beside the calls in progress there is room for as many
    as `bounds.calls` leaves, and the oldest goes first."""

    def __init__(self, bounds: Bounds, keepalive_seconds: float) -> None:
        self._bounds = bounds
        self._keepalive = keepalive_seconds
        self._calls = 0
        self._idle = 0
        self._hosts: dict[Origin, Host] = {}
        # Taken in turn, so that a jam at one provider is not everybody's.
        self._jammed: OrderedDict[Host, None] = OrderedDict()
        self._open: set[Connection] = set()

    def close(self) -> None:
        """Every connection, whatever it is doing."""
        for connection in tuple(self._open):
            connection.break_off()

    def enter(self, origin: Origin) -> Host | None:
        """A call begins, to be ended by `leave`; None where it has to wait."""
        host = self._hosts.get(origin)
        if host is None:
            host = self._hosts[origin] = Host(origin)
        if self._calls >= self._bounds.calls or host.calls >= self._bounds.calls_each:
            return None
        self._calls += 1
        host.calls += 1
        return host

    async def wait(self, origin: Origin, seconds: float) -> Host:
        """The same, once others have ended. Raises `NoConnectionFree`."""
        host = self._hosts[origin]
        if len(host.waiting) >= self._bounds.waiting_each:
            raise NoConnectionFree
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        host.waiting[turn] = None
        self._jammed[host] = None
        try:
            async with asyncio.timeout(seconds):
                await turn
        except BaseException as error:
            if turn in host.waiting:
                self._give_up(host, turn)
            elif turn.cancelled():
                # Passed over, in the same moment.
                self._forget_unused(host)
            else:
                # Its turn had come in the same moment.
                self.leave(host)
            if isinstance(error, TimeoutError):
                raise NoConnectionFree from None
            raise
        return host

    def leave(self, host: Host) -> None:
        """A call is over; whoever waits is let in."""
        self._calls -= 1
        host.calls -= 1
        if self._jammed:
            self._let_in()
        if not host.calls:
            self._forget_unused(host)

    def idle(self, host: Host) -> Connection | None:
        """The connection that was used last, if the far end still keeps one."""
        while host.idle:
            connection, _ = host.idle.popitem()
            self._idle -= 1
            if connection.alive():
                return connection
            connection.abort()
        return None

    def make_room(self) -> None:
        """For one more connection."""
        while self._idle and self._idle + self._calls > self._bounds.calls:
            host = next(host for host in self._hosts.values() if host.idle)
            next(iter(host.idle)).abort()

    def opened(self, connection: Connection) -> None:
        self._open.add(connection)

    def rests(self, connection: Connection) -> None:
        origin = connection.origin
        host = self._hosts.get(origin)
        if host is None:
            host = self._hosts[origin] = Host(origin)
        host.idle[connection] = None
        self._idle += 1
        connection.rest(self._keepalive)

    def ended(self, connection: Connection) -> None:
        self._open.discard(connection)
        host = self._hosts.get(connection.origin)
        if host is not None and connection in host.idle:
            del host.idle[connection]
            self._idle -= 1
            self._forget_unused(host)

    def _let_in(self) -> None:
        while self._jammed and self._calls < self._bounds.calls:
            host = next((host for host in self._jammed if host.calls < self._bounds.calls_each), None)
            if host is None:
                return
            turn, _ = host.waiting.popitem(last=False)
            if host.waiting:
                self._jammed.move_to_end(host)
            else:
                del self._jammed[host]
            if turn.cancelled():
                # It is over, and has not been able to say so yet.
                continue
            self._calls += 1
            host.calls += 1
            turn.set_result(None)

    def _give_up(self, host: Host, turn: asyncio.Future[None]) -> None:
        del host.waiting[turn]
        if not host.waiting:
            del self._jammed[host]
            self._forget_unused(host)

    def _forget_unused(self, host: Host) -> None:
        if not (host.calls or host.idle or host.waiting) and self._hosts.get(host.origin) is host:
            del self._hosts[host.origin]
