"""The client for addresses of the operator, against a real server."""

import ast
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from gatehouse.foundation.outbound.operator_client import OperatorClient, OversizedResponse, read_bounded

SOURCE = Path(__file__).parents[3] / "src" / "gatehouse"
#: Modules that open sessions. docs/security.md, "Outgoing connections", names all of them.
CLIENTS = {
    "foundation/outbound/aiohttp_client.py",
    "foundation/outbound/receivers.py",
    "foundation/outbound/operator_client.py",
}


class Recorded(NamedTuple):
    """A running server, and the requests that it received."""

    server: TestServer
    requests: list[web.Request]

    def url(self, path: str) -> str:
        return str(self.server.make_url(path))


@pytest.fixture
async def server() -> AsyncIterator[Recorded]:
    requests: list[web.Request] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        requests.append(request)
        if request.path == "/moved":
            raise web.HTTPFound("/elsewhere")
        if request.path == "/parts":
            response = web.StreamResponse()
            await response.prepare(request)
            for _ in range(10):
                await response.write(b"x" * 100)
            return response
        response = web.Response(text="here")
        response.set_cookie("session", "1")
        return response

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    async with TestServer(app) as running:
        yield Recorded(running, requests)


@pytest.fixture
async def client() -> AsyncIterator[OperatorClient]:
    opened = OperatorClient()
    yield opened
    await opened.close()


async def test_a_redirect_is_not_followed(server: Recorded, client: OperatorClient) -> None:
    async with client.request("GET", server.url("/moved"), headers={}, seconds=5) as response:
        assert response.status == 302
    assert [request.path for request in server.requests] == ["/moved"]


async def test_cookies_are_not_sent_back(server: Recorded, client: OperatorClient) -> None:
    for _ in range(2):
        async with client.request("GET", server.url("/"), headers={}, seconds=5) as response:
            assert await response.text() == "here"
    assert [request.headers.get("Cookie") for request in server.requests] == [None, None]


async def test_proxies_of_the_environment_are_not_used(
    server: Recorded, client: OperatorClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    async with client.request("GET", server.url("/"), headers={}, seconds=5) as response:
        assert response.status == 200


async def test_a_response_is_read_up_to_its_limit(server: Recorded, client: OperatorClient) -> None:
    url = server.url("/parts")
    async with client.request("GET", url, headers={}, seconds=5) as response:
        assert await read_bounded(response, 1000) == b"x" * 1000
    async with client.request("GET", url, headers={}, seconds=5) as response:
        with pytest.raises(OversizedResponse):
            await read_bounded(response, 999)


def test_every_session_belongs_to_a_client_that_the_page_names() -> None:
    opening = {
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("ClientSession")
    }
    assert opening == CLIENTS
    page = (SOURCE.parents[1] / "docs/security.md").read_text("utf-8")
    assert "`foundation/outbound/operator_client.py`" in page
    assert "`foundation/outbound/receivers.py`" in page
