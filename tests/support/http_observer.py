"""Observes the answers of servers to clients in this process: HTTPX, aiohttp, `http.client` (urllib, requests), and raw
bytes over `asyncio.open_connection`.

Only registered servers are observed, because the platform in this process is observed directly (`watched`). For other
answers the cost is one look-up in a set.
"""

import asyncio
import http.client
from collections import defaultdict
from collections.abc import AsyncGenerator, Iterator
from functools import cache, lru_cache
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import httpx2
from fastapi.routing import APIRoute
from tests.support.leaks import LEAK_DETECTOR, LeakDetector
from tests.support.talks import Asking, Talk
from tests.support.watched import Exchange

from gatehouse.platform.administration.contents import FAMILIES
from gatehouse.portal.server.contents import FAMILIES as PORTAL_FAMILIES

#: the receivers of exchanges
watch: LeakDetector = LEAK_DETECTOR
#: host and port of the observed servers
_servers: set[str] = set()
#: the observed raw connections by server
_talks: dict[str, list[Talk]] = defaultdict(list)


def register(url: str) -> None:
    install()
    _servers.add(urlsplit(url).netloc)


def unregister(url: str) -> None:
    """Stop observing the server, because another server may soon use its port."""
    authority = urlsplit(url).netloc
    _servers.discard(authority)
    for talk in _talks.pop(authority, ()):
        talk.over()


@cache
def install() -> None:
    """Wrap the client libraries. Done once per process, for the first observed server."""
    _install_httpx()
    _install_aiohttp()
    _install_http_client()
    _install_raw()


def _exchange(method: str, target: str, headers: Any, body: object = b"") -> Exchange:
    path = urlsplit(target).path
    sent = [(str(name).lower().encode(), str(value).encode()) for name, value in headers]
    exchange = Exchange(method, path, sent, _route(method, path))
    exchange.hear(body if isinstance(body, bytes) else b"")
    return exchange


@lru_cache(10_000)
def _route(method: str, path: str) -> str | None:
    """Return the template of the administration or portal route for this path, with or without a slash at its end, or
    None."""
    spellings = {path, path.rstrip("/"), f"{path}/"}
    for route in (route for family in (*FAMILIES, *PORTAL_FAMILIES) for route in family.routes):
        if isinstance(route, APIRoute) and method in route.methods and any(map(route.path_regex.match, spellings)):
            return route.path_format
    return None


def _answers(exchange: Exchange, status: int, headers: Any) -> None:
    exchange.status = status
    exchange.headers = [(str(name).encode(), str(value).encode()) for name, value in headers]


# HTTPX ---------------------------------------------------------------------------------------------------------------


def _of_httpx(response: httpx2.Response) -> Exchange | None:
    request = response.request
    authority = request.url.netloc.decode()
    if authority not in _servers:
        return None
    try:
        requested = request.content
    except httpx2.RequestNotRead:
        requested = b""
    target = request.url.raw_path.decode()
    exchange = _exchange(request.method, target, request.headers.multi_items(), requested)
    _answers(exchange, response.status_code, response.headers.multi_items())
    return exchange


def _install_httpx() -> None:
    # The methods by which both complete answers and streams are read.
    read, aread = httpx2.Response.iter_bytes, httpx2.Response.aiter_bytes

    def iter_bytes(self: httpx2.Response, chunk_size: int | None = None) -> Iterator[bytes]:
        exchange = _of_httpx(self)
        try:
            for chunk in read(self, chunk_size):
                if exchange is not None:
                    exchange.say(chunk)
                yield chunk
        finally:
            if exchange is not None:
                exchange.tell(watch)

    async def aiter_bytes(self: httpx2.Response, chunk_size: int | None = None) -> AsyncGenerator[bytes, None]:
        exchange = _of_httpx(self)
        chunks = aread(self, chunk_size)
        try:
            async for chunk in chunks:
                if exchange is not None:
                    exchange.say(chunk)
                yield chunk
        finally:
            await chunks.aclose()
            if exchange is not None:
                exchange.tell(watch)

    httpx2.Response.iter_bytes = iter_bytes  # type: ignore[method-assign]
    httpx2.Response.aiter_bytes = aiter_bytes  # type: ignore[method-assign]


# aiohttp -------------------------------------------------------------------------------------------------------------


def _install_aiohttp() -> None:
    start, release, close = (getattr(aiohttp.ClientResponse, name) for name in ("start", "release", "close"))
    send = aiohttp.ClientRequest.send
    chunk_of = aiohttp.StreamReader._read_nowait_chunk
    #: exchanges by the reader of the answer's body
    under_way: dict[int, Exchange] = {}

    async def sending(self: aiohttp.ClientRequest, connection: Any) -> Any:
        # JSON, forms, texts and bytes. Bodies that are sent in pieces contain no secrets.
        body = getattr(self.body, "_value", None)
        response: Any = await send(self, connection)
        response._request_body = body
        return response

    async def started(self: aiohttp.ClientResponse, connection: Any) -> Any:
        answer = await start(self, connection)
        request = self.request_info
        if f"{request.url.host}:{request.url.port}" in _servers:
            body = getattr(self, "_request_body", None)
            exchange = _exchange(request.method, request.url.raw_path, request.headers.items(), body)
            _answers(exchange, self.status, self.headers.items())
            under_way[id(self.content)] = exchange
        return answer

    def read(self: aiohttp.StreamReader, n: int) -> bytes:
        chunk = chunk_of(self, n)
        if under_way and (exchange := under_way.get(id(self))) is not None:
            exchange.say(chunk)
        return chunk

    def over(self: aiohttp.ClientResponse) -> None:
        if under_way and (exchange := under_way.pop(id(self.content), None)) is not None:
            exchange.tell(watch)

    def released(self: aiohttp.ClientResponse) -> Any:
        over(self)
        return release(self)

    def closed(self: aiohttp.ClientResponse) -> None:
        over(self)
        close(self)

    changed: Any = aiohttp.ClientResponse
    changed.start, changed.release, changed.close = started, released, closed
    aiohttp.ClientRequest.send = sending  # type: ignore[method-assign]
    aiohttp.StreamReader._read_nowait_chunk = read  # type: ignore[method-assign]


# http.client ---------------------------------------------------------------------------------------------------------


def _install_http_client() -> None:
    send, getresponse = http.client.HTTPConnection.send, http.client.HTTPConnection.getresponse
    read = http.client.HTTPResponse.read

    def sending(self: Any, data: Any) -> None:
        if f"{self.host}:{self.port}" in _servers:
            if hasattr(data, "read"):
                data = data.read()
            asking = self.__dict__.setdefault("_asking", Asking(_exchange))
            asking.sent(data.encode("latin-1") if isinstance(data, str) else data)
        send(self, data)

    def answered(self: Any) -> http.client.HTTPResponse:
        asking = getattr(self, "_asking", None)
        try:
            response: Any = getresponse(self)
        except BaseException:
            self.__dict__.pop("_asking", None)
            raise
        if asking is not None and asking.waiting:
            response._exchange = asking.waiting.popleft()
            _answers(response._exchange, response.status, response.getheaders())
        return response  # type: ignore[no-any-return]

    def read_observed(self: Any, amt: int | None = None) -> bytes:
        chunk: bytes = read(self, amt)
        if (exchange := getattr(self, "_exchange", None)) is not None:
            exchange.say(chunk)
            if self.fp is None:
                self._exchange = None
                exchange.tell(watch)
        return chunk

    changed: Any = http.client.HTTPConnection
    changed.send, changed.getresponse = sending, answered
    http.client.HTTPResponse.read = read_observed  # type: ignore[method-assign]


# raw bytes -----------------------------------------------------------------------------------------------------------


def _install_raw() -> None:
    connect = asyncio.open_connection

    async def connected(host: Any = None, port: Any = None, **more: Any) -> Any:
        reader, writer = await connect(host, port, **more)
        authority = f"{host}:{port}"
        if authority in _servers:
            talk = Talk(_exchange, watch)
            _talks[authority].append(talk)
            _overhear(talk, reader, writer)
        return reader, writer

    asyncio.open_connection = connected


def _overhear(talk: Talk, reader: Any, writer: Any) -> None:
    feed_data, feed_eof, write = reader.feed_data, reader.feed_eof, writer.write

    def data_received(data: bytes) -> None:
        talk.data_received(data)
        feed_data(data)

    def over() -> None:
        talk.over()
        feed_eof()

    def sent(data: bytes) -> None:
        talk.sent(data)
        write(data)

    reader.feed_data, reader.feed_eof, writer.write = data_received, over, sent
