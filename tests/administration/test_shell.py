"""The HTTP shell of administration APIs, behind a real server."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
import uvicorn
from fastapi import FastAPI, Request
from starlette.responses import Response
from tests.support.wire import Wire, connected

from gatehouse.administration.shell import CLIENT_LEFT_STATUS, Arrival, RequestHead, Shell, read_head
from gatehouse.foundation import log
from gatehouse.foundation.errors import Forbidden
from gatehouse.foundation.http import handlers
from gatehouse.foundation.http.envelopes import CODED, ErrorFormats
from gatehouse.foundation.settings import CommonSettings
from gatehouse.ingress.protocol import GatewayHttpProtocol

LIMIT = 100_000


class DatabaseAway(Exception):
    pass


@dataclass
class Api:
    """A small API in the shell, which records the received requests."""

    url: str = ""
    observed: list[tuple[str, str, int]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    admitted_bodies: list[bytes] = field(default_factory=list)
    logged_ids: list[str | None] = field(default_factory=list)

    async def admit(self, arrival: Arrival[RequestHead]) -> None:
        arrival.response_headers["X-RateLimit-Limit"] = "5"
        match arrival.head.path:
            case "/refused":
                raise Forbidden("Not you.")
            case "/broken-admission":
                raise RuntimeError("the inside of it")
            case "/away":
                raise DatabaseAway("the inside of it")
            case "/small":
                arrival.body.limit = 10
                self.admitted_bodies.append(await arrival.read_body())

    async def observe_until(self, count: int) -> list[tuple[str, str, int]]:
        async with asyncio.timeout(60):
            while len(self.observed) < count:
                await asyncio.sleep(0.01)
        return self.observed

    def shell(self) -> Shell[RequestHead]:
        app = FastAPI(openapi_url=None)
        responses = handlers.install(app, ErrorFormats(otherwise=CODED), unavailable=(DatabaseAway,))

        @app.post("/things/{name}")
        @app.post("/small")
        async def take(request: Request) -> Response:
            self.bodies.append(await request.body())
            self.logged_ids.append(log.request_id.get())
            return Response(request.state.client_address.encode())

        @app.api_route("/shown", methods=["GET", "HEAD"])
        async def show() -> Response:
            return Response(b"shown", headers={"Cache-Control": "public"})

        @app.get("/broken")
        async def broken() -> None:
            raise RuntimeError("the inside of it")

        return Shell(
            app,
            responses,
            CommonSettings(trusted_proxies=("127.0.0.1/32",), max_request_bytes=LIMIT, body_timeout_seconds=0.3),
            read_head=read_head,
            admit=self.admit,
            observe=lambda method, route, status, seconds: self.observed.append((method, route, status)),
        )

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        config = uvicorn.Config(
            self.shell(), http=GatewayHttpProtocol, lifespan="off", log_config=None, access_log=False, ws="none"
        )
        server = uvicorn.Server(config)
        server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            task = asyncio.create_task(server.serve(sockets=[listener]))
            while not server.started:
                await asyncio.sleep(0.01)
            self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            try:
                yield
            finally:
                server.should_exit = True
                await task


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    api = Api()
    async with api.serving():
        yield api


@pytest.fixture
async def wire(api: Api) -> AsyncIterator[Wire]:
    async with connected(api.url) as wire:
        yield wire


def head(path: str, *lines: str, method: str = "POST") -> bytes:
    return "\r\n".join((f"{method} {path} HTTP/1.1", "Host: x", *lines, "", "")).encode()


async def status_of(wire: Wire, request: bytes) -> int:
    wire.writer.write(request)
    return int((await wire.answer())[0].split(" ")[1])


async def test_a_body_that_is_announced_too_large_is_413_before_it_is_sent(api: Api, wire: Wire) -> None:
    wire.writer.write(head("/things/a", f"Content-Length: {LIMIT + 1}", "Expect: 100-continue"))
    answer, body = await wire.answer()
    assert answer.startswith("HTTP/1.1 413")
    assert "connection: close" in answer.lower()
    assert b'"error":"request_too_large"' in body
    assert await wire.rest() == b""
    assert api.bodies == []
    assert api.observed == [("POST", "unmatched", 413)]


async def test_a_chunked_body_is_413_as_soon_as_it_is_too_large(api: Api, wire: Wire) -> None:
    wire.writer.write(head("/things/a", "Transfer-Encoding: chunked"))
    piece = b"1000\r\n" + b"x" * 0x1000 + b"\r\n"
    for _ in range(LIMIT // 0x1000 + 1):
        wire.writer.write(piece)
    answer, _ = await wire.answer()
    assert answer.startswith("HTTP/1.1 413")
    assert "connection: close" in answer.lower()
    assert api.bodies == []


async def test_a_chunked_body_without_a_length_reaches_the_route_whole(api: Api, wire: Wire) -> None:
    wire.writer.write(head("/things/a", "Transfer-Encoding: chunked"))
    for piece in (b"3\r\nabc\r\n", b"2\r\nde\r\n", b"0\r\n\r\n"):
        wire.writer.write(piece)
        await asyncio.sleep(0.05)
    assert (await wire.answer())[0].startswith("HTTP/1.1 200")
    assert api.bodies == [b"abcde"]


@pytest.mark.parametrize("silent", [True, False])
async def test_a_body_that_takes_too_long_is_408_and_the_connection_ends(api: Api, wire: Wire, silent: bool) -> None:
    wire.writer.write(head("/things/a", "Content-Length: 1000"))

    async def drip() -> None:
        while not silent:
            wire.writer.write(b"x")
            await asyncio.sleep(0.02)

    dripping = asyncio.create_task(drip())
    answer, body = await wire.answer()
    dripping.cancel()
    assert answer.startswith("HTTP/1.1 408")
    assert "connection: close" in answer.lower()
    assert b'"error":"request_timeout"' in body
    assert b"0.3 seconds" in body
    assert api.bodies == []


async def test_a_client_that_leaves_while_it_sends_is_counted_and_reaches_no_route(api: Api) -> None:
    async with connected(api.url) as wire:
        wire.writer.write(head("/things/a", "Content-Length: 1000") + b"x")
        await wire.writer.drain()
    assert await api.observe_until(1) == [("POST", "unmatched", CLIENT_LEFT_STATUS)]
    assert api.bodies == []


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [("/broken", 500, "internal_error"), ("/broken-admission", 500, "internal_error"),
     ("/away", 503, "database_unavailable"), ("/refused", 403, "forbidden"), ("/nowhere", 404, "not_found")],
)  # fmt: skip
async def test_every_error_has_the_paths_form_and_the_added_headers(
    wire: Wire, path: str, status: int, code: str
) -> None:
    wire.writer.write(head(path, "X-Request-Id: mine-1", method="GET"))
    answer, body = await wire.answer()
    assert answer.startswith(f"HTTP/1.1 {status}")
    assert f'"error":"{code}"'.encode() in body
    assert b"inside" not in body
    for line in ("x-request-id: mine-1", "cache-control: no-store", "x-content-type-options: nosniff"):
        assert line in answer.lower()
    assert ("retry-after" in answer.lower()) == (status == 503)
    # No unread bytes are left on the connection.
    assert "connection: close" not in answer.lower()
    assert await status_of(wire, head("/shown", method="GET")) == 200


async def test_head_is_answered_without_a_body(api: Api, wire: Wire) -> None:
    wire.writer.write(head("/shown", method="HEAD"))
    answer = await wire.head()
    assert answer.startswith("HTTP/1.1 200")
    assert "content-length: 5" in answer
    # The next answer begins directly after the first.
    assert await status_of(wire, head("/shown", method="GET")) == 200
    assert api.observed == [("HEAD", "/shown", 200), ("GET", "/shown", 200)]


async def test_a_routes_own_header_is_kept(wire: Wire) -> None:
    wire.writer.write(head("/shown", method="GET"))
    answer, _ = await wire.answer()
    assert "cache-control: public" in answer
    assert "no-store" not in answer
    assert "x-ratelimit-limit: 5" in answer


async def test_a_request_is_counted_under_its_routes_template_and_logged_with_its_id(api: Api, wire: Wire) -> None:
    wire.writer.write(
        head("/things/a", "Content-Length: 2", "X-Request-Id: mine-1", "X-Forwarded-For: 203.0.113.9") + b"{}"
    )
    assert (await wire.answer())[1] == b"203.0.113.9"
    assert api.observed == [("POST", "/things/{name}", 200)]
    assert api.logged_ids == ["mine-1"]


async def test_admission_may_read_the_body_within_its_own_limit(api: Api, wire: Wire) -> None:
    assert await status_of(wire, head("/small", "Content-Length: 10") + b"0123456789") == 200
    assert (api.admitted_bodies, api.bodies) == ([b"0123456789"], [b"0123456789"])
    assert await status_of(wire, head("/small", "Content-Length: 11") + b"0123456789a") == 413
    assert len(api.bodies) == 1


async def test_a_client_that_waits_for_100_continue_and_is_refused_gets_the_end_of_the_connection(
    api: Api, wire: Wire
) -> None:
    """The client may or may not send its body now, so the following bytes cannot be interpreted."""
    wire.writer.write(head("/refused", "Content-Length: 1000", "Expect: 100-continue"))
    answer, _ = await wire.answer()
    assert answer.startswith("HTTP/1.1 403")
    assert "connection: close" in answer.lower()
    assert await wire.rest() == b""


@pytest.mark.parametrize(
    ("request_head", "body"),
    [(head("/refused", "Content-Length: 1000"), b"x" * 1000), (head("/refused", method="DELETE"), b""),
     (head("/refused", method="GET"), b"")],
    ids=["a small body", "DELETE without a body", "GET"],
)  # fmt: skip
async def test_a_connection_outlives_a_refusal_that_leaves_little_on_the_wire(
    wire: Wire, request_head: bytes, body: bytes
) -> None:
    assert await status_of(wire, request_head) == 403
    wire.writer.write(body)
    assert await status_of(wire, head("/shown", method="GET")) == 200
