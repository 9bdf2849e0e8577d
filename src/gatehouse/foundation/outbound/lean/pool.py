"""The connection pool: idle connections, and the limits of concurrent and waiting calls."""

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final, Self

from gatehouse.foundation.outbound import NoConnectionFree
from gatehouse.foundation.outbound.lean.connection import LeanConnection
from gatehouse.foundation.outbound.lean.route import Origin

#: At least this number of calls may wait for one provider, even if fewer may be in progress, so that a short burst of
#: calls is not refused.
MIN_WAITING_CALLS: Final = 1000


@dataclass(frozen=True, slots=True)
class PoolLimits:
    """Maximum numbers of calls in progress in total (`calls`) and for one provider (`calls_per_provider`), and of
    calls that wait for one provider (`waiting_per_provider`)."""

    calls: int
    calls_per_provider: int
    waiting_per_provider: int

    @classmethod
    def of(cls, calls: int, calls_per_provider: int | None) -> Self:
        """Returns the limits of a client. Without `calls_per_provider`, one provider may have all calls."""
        return cls(calls, min(calls_per_provider or calls, calls), max(calls, MIN_WAITING_CALLS))


class HostPool:
    """The calls and idle connections of one provider. The most recently used connection is the last one."""

    __slots__ = ("calls", "idle", "origin", "waiting")

    def __init__(self, origin: Origin) -> None:
        self.origin = origin
        self.calls = 0
        self.idle: OrderedDict[LeanConnection, None] = OrderedDict()
        self.waiting: OrderedDict[asyncio.Future[None], None] = OrderedDict()


class ConnectionPool:
    """The connections of one client. `limits.calls` is the maximum of calls in progress and idle connections together.
    To make room, the oldest idle connection is closed first."""

    def __init__(self, limits: PoolLimits, keepalive_seconds: float) -> None:
        self._limits = limits
        self._keepalive_seconds = keepalive_seconds
        self._calls = 0
        self._idle = 0
        self._hosts: dict[Origin, HostPool] = {}
        # The hosts with waiting calls. They are served in turn, so that one busy provider does not delay the others.
        self._waiting_hosts: OrderedDict[HostPool, None] = OrderedDict()
        self._open: set[LeanConnection] = set()

    def close(self) -> None:
        """Closes all connections, also those in use."""
        for connection in tuple(self._open):
            connection.break_off()

    def enter(self, origin: Origin) -> HostPool | None:
        """Begins a call, which `leave` ends. Returns None if the call has to wait."""
        host = self._hosts.get(origin)
        if host is None:
            host = self._hosts[origin] = HostPool(origin)
        if self._calls >= self._limits.calls or host.calls >= self._limits.calls_per_provider:
            return None
        self._calls += 1
        host.calls += 1
        return host

    async def wait(self, origin: Origin, seconds: float) -> HostPool:
        """Waits until other calls end, then begins a call. Raises `NoConnectionFree`."""
        host = self._hosts[origin]
        if len(host.waiting) >= self._limits.waiting_per_provider:
            raise NoConnectionFree
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        host.waiting[waiter] = None
        self._waiting_hosts[host] = None
        try:
            async with asyncio.timeout(seconds):
                await waiter
        except BaseException as error:
            if waiter in host.waiting:
                self._remove_waiter(host, waiter)
            elif waiter.cancelled():
                # `_admit_waiting` has skipped the cancelled waiter at the same time.
                self._forget_unused(host)
            else:
                # The call was admitted at the same time.
                self.leave(host)
            if isinstance(error, TimeoutError):
                raise NoConnectionFree from None
            raise
        return host

    def leave(self, host: HostPool) -> None:
        """Ends a call and admits waiting calls."""
        self._calls -= 1
        host.calls -= 1
        if self._waiting_hosts:
            self._admit_waiting()
        if not host.calls:
            self._forget_unused(host)

    def idle(self, host: HostPool) -> LeanConnection | None:
        """Returns the most recently used idle connection that is still open, or None."""
        while host.idle:
            connection, _ = host.idle.popitem()
            self._idle -= 1
            if connection.alive():
                return connection
            connection.abort()
        return None

    def make_room(self) -> None:
        """Closes idle connections until there is room for one more connection."""
        while self._idle and self._idle + self._calls > self._limits.calls:
            host = next(host for host in self._hosts.values() if host.idle)
            next(iter(host.idle)).abort()

    def opened(self, connection: LeanConnection) -> None:
        self._open.add(connection)

    def on_idle(self, connection: LeanConnection) -> None:
        origin = connection.origin
        host = self._hosts.get(origin)
        if host is None:
            host = self._hosts[origin] = HostPool(origin)
        host.idle[connection] = None
        self._idle += 1
        connection.keep_idle(self._keepalive_seconds)

    def on_closed(self, connection: LeanConnection) -> None:
        self._open.discard(connection)
        host = self._hosts.get(connection.origin)
        if host is not None and connection in host.idle:
            del host.idle[connection]
            self._idle -= 1
            self._forget_unused(host)

    def _admit_waiting(self) -> None:
        while self._waiting_hosts and self._calls < self._limits.calls:
            host = next((host for host in self._waiting_hosts if host.calls < self._limits.calls_per_provider), None)
            if host is None:
                return
            waiter, _ = host.waiting.popitem(last=False)
            if host.waiting:
                self._waiting_hosts.move_to_end(host)
            else:
                del self._waiting_hosts[host]
            if waiter.cancelled():
                # The waiter's task has been cancelled, but has not run since.
                continue
            self._calls += 1
            host.calls += 1
            waiter.set_result(None)

    def _remove_waiter(self, host: HostPool, waiter: asyncio.Future[None]) -> None:
        del host.waiting[waiter]
        if not host.waiting:
            del self._waiting_hosts[host]
            self._forget_unused(host)

    def _forget_unused(self, host: HostPool) -> None:
        if not (host.calls or host.idle or host.waiting) and self._hosts.get(host.origin) is host:
            del self._hosts[host.origin]
