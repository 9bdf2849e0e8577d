"""What servers that run as processes answer, as clients of this process read it: HTTPX, aiohttp, and whatever stands on
`http.client` (urllib, requests).

The platform in this process is looked at itself (`watched`), so only what was named here is listened to. It costs a
look at a set for every other answer, and a copy of the bytes for these.
"""

import http.client
from collections.abc import AsyncGenerator, Iterator
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import httpx2
from fastapi.routing import APIRoute
from tests.support.leaks import WATCH, Watch
from tests.support.watched import Exchange

from gatehouse.platform.api import FAMILIES

#: who is told
watch: Watch = WATCH
#: host and port of the servers that are listened to
_servers: set[str] = set()


def listen_to(url: str) -> None:
    _servers.add(urlsplit(url).netloc)


def leave(url: str) -> None:
    """Its port may be another's soon."""
    _servers.discard(urlsplit(url).netloc)


def install() -> None:
    """Once a process."""
    _install_httpx()
    _install_aiohttp()
    _install_http_client()


def _exchange(method: str, authority: str, target: str, headers: Any, asked: object) -> Exchange | None:
    if authority not in _servers:
        return None
    path = urlsplit(target).path
    sent = [(str(name).lower().encode(), str(value).encode()) for name, value in headers]
    exchange = Exchange(method, path, sent, _route(method, path))
    exchange.hear(asked if isinstance(asked, bytes) else b"")
    return exchange


@lru_cache(10_000)
def _route(method: str, path: str) -> str | None:
    """The template of administration's route that answers there, if one does: with or without the slash at its end."""
    spellings = {path, path.rstrip("/"), f"{path}/"}
    for route in (route for family in FAMILIES for route in family.routes):
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
        asked = request.content
    except httpx2.RequestNotRead:
        asked = b""
    target = request.url.raw_path.decode()
    exchange = _exchange(request.method, authority, target, request.headers.multi_items(), asked)
    if exchange is not None:
        _answers(exchange, response.status_code, response.headers.multi_items())
    return exchange


def _install_httpx() -> None:
    # What both read by in the end, whole answers and streams.
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
    chunk_of = aiohttp.StreamReader._read_nowait_chunk
    #: by the reader of the answer's body
    under_way: dict[int, Exchange] = {}

    async def started(self: aiohttp.ClientResponse, connection: Any) -> Any:
        answer = await start(self, connection)
        asked = self.request_info
        authority = f"{asked.url.host}:{asked.url.port}"
        exchange = _exchange(asked.method, authority, asked.url.raw_path, asked.headers.items(), None)
        if exchange is not None:
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
    aiohttp.StreamReader._read_nowait_chunk = read  # type: ignore[method-assign]


# http.client ---------------------------------------------------------------------------------------------------------


def _install_http_client() -> None:
    putrequest, putheader = http.client.HTTPConnection.putrequest, http.client.HTTPConnection.putheader
    getresponse = http.client.HTTPConnection.getresponse
    read = http.client.HTTPResponse.read

    def asks(self: Any, method: str, url: str, *rest: Any, **more: Any) -> None:
        self._asks = (method, url, [])
        putrequest(self, method, url, *rest, **more)

    def with_header(self: Any, header: Any, *values: Any) -> None:
        text = [each.decode("latin-1") if isinstance(each, bytes) else str(each) for each in (header, *values)]
        self._asks[2].append((text[0], " ".join(text[1:])))
        putheader(self, header, *values)

    def answered(self: Any) -> http.client.HTTPResponse:
        response: Any = getresponse(self)
        method, url, headers = self._asks
        response._exchange = _exchange(method, f"{self.host}:{self.port}", url, headers, None)
        if response._exchange is not None:
            _answers(response._exchange, response.status, response.getheaders())
        return response  # type: ignore[no-any-return]

    def heard(self: Any, amt: int | None = None) -> bytes:
        chunk: bytes = read(self, amt)
        if (exchange := getattr(self, "_exchange", None)) is not None:
            exchange.say(chunk)
            if self.fp is None:
                self._exchange = None
                exchange.tell(watch)
        return chunk

    changed: Any = http.client.HTTPConnection
    changed.putrequest, changed.putheader, changed.getresponse = asks, with_header, answered
    http.client.HTTPResponse.read = heard  # type: ignore[method-assign]
