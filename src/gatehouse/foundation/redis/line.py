"""One pipelined connection to Redis for any number of concurrent calls.

Redis replies in the order of the calls, so a call needs no connection of its own. A call costs one write and one
future, half of the cost of a call with a pooled client, and less under load. 500 concurrent calls share a few round
trips, and no call waits for a free connection.
"""

import asyncio
import ssl
from collections import deque
from typing import Any, Final, cast
from urllib.parse import parse_qs, unquote, urlsplit

import hiredis
import msgspec

from gatehouse.foundation.settings import BadSettings

_INCOMPLETE: Final = object()


class LineLost(Exception):
    """The call has no usable reply: the connection was refused or lost, the reply did not arrive in time, or Redis
    replied with an error."""


class Address(msgspec.Struct, frozen=True):
    """The address of a Redis server: `redis://[[user]:password@]host[:port][/database]`, `rediss://` for TLS, or
    `unix:///socket`.

    With TLS, the system's authorities and `SSL_CERT_FILE` are trusted, or the authorities in the file that the
    parameter `ssl_ca_certs` names.
    """

    host: str
    port: int
    socket: str | None
    username: str | None
    password: str | None
    database: int
    tls: bool
    authorities: str | None

    @classmethod
    def parse(cls, url: str) -> "Address":
        """Returns the address of a URL. Raises `BadSettings`, whose message does not contain the URL, because the URL
        may contain a password."""
        try:
            return cls._parsed(url)
        except ValueError as error:
            raise BadSettings(f"REDIS_URL: {error}") from None

    @classmethod
    def _parsed(cls, url: str) -> "Address":
        parts = urlsplit(url)
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        unix = parts.scheme == "unix"
        if parts.scheme not in {"redis", "rediss", "unix"}:
            raise ValueError("the scheme must be redis, rediss or unix")
        if unix and not parts.path:
            raise ValueError("the path of the socket is missing")
        try:
            port = parts.port or 6379
        except ValueError:
            # The standard library's message quotes the port. If a password contains a slash, this text is a part of it.
            raise ValueError("the port must be a number, and / : @ in a password must be percent-encoded") from None
        database = query.get("db") or ("" if unix else parts.path.strip("/")) or "0"
        if not database.isdecimal():
            raise ValueError("the database must be a number")
        return cls(
            host=parts.hostname or "localhost",
            port=port,
            socket=unquote(parts.path) if unix else None,
            username=unquote(parts.username) if parts.username else None,
            password=unquote(parts.password) if parts.password else None,
            database=int(database),
            tls=parts.scheme == "rediss",
            authorities=query.get("ssl_ca_certs"),
        )


class RedisLine(asyncio.Protocol):
    """A pipelined connection. If a call has no reply after `timeout_seconds`, the connection is closed: replies arrive
    in order, so later replies would be late, too. `lost` is a future that is done when the connection has been
    closed."""

    def __init__(self, timeout_seconds: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._timeout_seconds = timeout_seconds
        self._reader = hiredis.Reader(notEnoughData=_INCOMPLETE)
        self._pending: deque[tuple[float, asyncio.Future[Any]]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport | None = None
        self.lost: asyncio.Future[None] = self._loop.create_future()

    @classmethod
    async def connect(cls, address: Address, timeout_seconds: float) -> "RedisLine":
        """Returns an open connection. Raises `OSError` or `LineLost`. The caller limits the time."""
        loop = asyncio.get_running_loop()
        if address.socket is not None:
            _, line = await loop.create_unix_connection(lambda: cls(timeout_seconds), address.socket)
        else:
            tls = ssl.create_default_context(cafile=address.authorities) if address.tls else None
            _, line = await loop.create_connection(lambda: cls(timeout_seconds), address.host, address.port, ssl=tls)
        try:
            if address.password is not None:
                await line.call("AUTH", *([address.username] if address.username else []), address.password)
            if address.database:
                await line.call("SELECT", address.database)
        except BaseException:
            line.close()
            raise
        return line

    async def call(self, *command: str | int | bytes) -> Any:
        """Sends a command and returns the reply. Raises `LineLost`, also if Redis replies with an error."""
        answer = await self.send(*command)
        if isinstance(answer, hiredis.ReplyError):
            raise LineLost(str(answer))
        return answer

    def send(self, *command: str | int | bytes) -> "asyncio.Future[Any]":
        """Sends a command and returns a future of the reply. If Redis replies with an error, the future's result is a
        `hiredis.ReplyError`. The future raises `LineLost`."""
        answer: asyncio.Future[Any] = self._loop.create_future()
        if self._transport is None or self._transport.is_closing():
            answer.set_exception(LineLost("not connected"))
            return answer
        self._transport.write(hiredis.pack_command(command))  # type: ignore[arg-type]
        self._pending.append((self._loop.time() + self._timeout_seconds, answer))
        if self._timer is None:
            self._timer = self._loop.call_later(self._timeout_seconds, self._check_oldest)
        return answer

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _check_oldest(self, is_second_check: bool = False) -> None:
        """Closes the connection if the reply to the oldest call is late. Checks twice: if the event loop was delayed,
        it reads replies from the socket between the checks."""
        self._timer = None
        if not self._pending:
            return
        remaining = self._pending[0][0] - self._loop.time()
        if remaining > 0:
            self._timer = self._loop.call_later(remaining, self._check_oldest)
        elif not is_second_check:
            self._timer = self._loop.call_later(0.001, self._check_oldest, True)
        else:
            self._fail("no reply in time")
            self.close()

    def _fail(self, reason: str) -> None:
        pending, self._pending = self._pending, deque()
        for _, answer in pending:
            if not answer.done():
                answer.set_exception(LineLost(reason))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports do not inherit from asyncio's.
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._reader.feed(data)
        try:
            while (reply := self._reader.gets()) is not _INCOMPLETE:
                _, answer = self._pending.popleft()
                if not answer.done():
                    answer.set_result(reply)
        except (hiredis.ProtocolError, IndexError):
            # The server does not speak the protocol of Redis.
            self._fail("not the Redis protocol")
            self.close()

    def connection_lost(self, error: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._fail(f"connection lost: {error}" if error else "connection closed")
        if not self.lost.done():
            self.lost.set_result(None)
