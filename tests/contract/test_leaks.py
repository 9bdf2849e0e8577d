"""The suite's search for disclosed secrets finds planted secrets, and nothing else."""

import asyncio
import http.client
import json
import os
import re
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import httpx2
import pytest
import requests
from tests.support import http_observer
from tests.support.leaks import LeakDetector

SECRET = "gk_0123456789abcdefghijklmnopqrstuvwxyz"
ROOT = Path(__file__).parents[2]


@pytest.fixture
def watch() -> LeakDetector:
    return LeakDetector()


def places(watch: LeakDetector) -> list[str]:
    return [leak.place for leak in watch.leaks()]


@pytest.mark.parametrize(
    "text",
    [
        SECRET,
        f'{{"detail": "no such key: {SECRET}"}}',
        f"x{SECRET}x",
        "\u00e9\u20ac" * 100 + SECRET,
        "x" * 300_000 + SECRET + "x" * 10,
        "x" * (256 * 1024 - 10) + SECRET,
        "x" * (4 * 1024 * 1024 - 20) + SECRET,
        SECRET.encode() + b"\xff\x00",
    ],
)
def test_a_secret_is_found_in_any_text(watch: LeakDetector, text: str | bytes) -> None:
    watch.add_text("a log", "nothing here")
    watch.add_secret(SECRET, "a key")
    watch.add_text("an answer", text)
    watch.add_text("another", "nothing here either")
    assert places(watch) == ["an answer"]


def test_the_order_of_secret_and_text_does_not_matter(watch: LeakDetector) -> None:
    watch.add_text("a log", f"made {SECRET}")
    watch.add_secret(SECRET, "a key")
    assert places(watch) == ["a log"]


def test_a_secret_that_json_escapes_is_found(watch: LeakDetector) -> None:
    password = 'a "quoted" pass\\word with \u00e9'
    watch.add_secret(password, "a password")
    watch.add_text("an answer", json.dumps({"password": password}))
    watch.add_text("a log", f"password={password}")
    assert places(watch) == ["an answer", "a log"]


def test_a_report_does_not_contain_the_secret(watch: LeakDetector) -> None:
    watch.add_secret(SECRET, "a key")
    watch.add_text("a log", f"made {SECRET} for you")
    (leak,) = watch.leaks()
    assert SECRET not in str(leak)
    assert leak.around == "made <the secret> for you"


@pytest.mark.parametrize("value", ["", "short", "aaaaaaaaaaaaaaaa", "000000000000"])
def test_short_or_common_values_are_not_secrets(watch: LeakDetector, value: str) -> None:
    watch.add_secret(value, "a password")
    watch.add_text("an answer", f"{value} {value}")
    assert places(watch) == []


def test_many_secrets_and_much_text_take_seconds(watch: LeakDetector) -> None:
    for number in range(20_000):
        watch.add_secret(f"gk_{hash(number * 7919):032x}{number:08d}abc", "a key")
    for _ in range(64):
        watch.add_text("an answer", os.urandom(192 * 1024).hex())
    watch.add_text("a log", f"gk_{hash(17 * 7919):032x}{17:08d}abc")
    assert places(watch) == ["a log"]


class Telling(BaseHTTPRequestHandler):
    """A server that returns the credential of each request in the body and in a header."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._tell({"detail": f"you are {self.headers['X-API-Key']}"})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self._tell({"api_key": SECRET})

    def _tell(self, content: object) -> None:
        body = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Echo", self.headers["X-API-Key"] or "")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Write no access log."""


@pytest.fixture
def server(watch: LeakDetector, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Yield the URL of an observed server."""
    monkeypatch.setattr(http_observer, "watch", watch)
    with ThreadingHTTPServer(("127.0.0.1", 0), Telling) as running:
        url = f"http://127.0.0.1:{running.server_port}"
        http_observer.register(url)
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield url
        running.shutdown()
        http_observer.unregister(url)


ASKING = {"X-API-Key": SECRET}


async def by_httpx(url: str) -> None:
    async with httpx2.AsyncClient(headers=ASKING) as client:
        await client.get(url)


async def by_httpx_in_pieces(url: str) -> None:
    async with httpx2.AsyncClient(headers=ASKING) as client, client.stream("GET", url) as answer:
        async for _ in answer.aiter_lines():
            pass


async def by_aiohttp(url: str) -> None:
    async with aiohttp.ClientSession(headers=ASKING) as session, session.get(url) as answer:
        await answer.json(content_type=None)


async def by_aiohttp_in_pieces(url: str) -> None:
    async with aiohttp.ClientSession(headers=ASKING) as session, session.get(url) as answer:
        async for _ in answer.content.iter_any():
            pass


def by_http_client(url: str) -> None:
    connection = http.client.HTTPConnection(urlsplit(url).netloc)
    connection.request("GET", urlsplit(url).path, headers=ASKING)
    connection.getresponse().read()
    connection.close()


def by_urllib(url: str) -> None:
    with urllib.request.urlopen(urllib.request.Request(url, headers=ASKING)) as answer:
        answer.read()


async def by_hand(url: str) -> None:
    """Send raw bytes and read until the server closes the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(url).port)
    head = f"GET {urlsplit(url).path} HTTP/1.1\r\nHost: x\r\nX-API-Key: {SECRET}\r\nConnection: close\r\n\r\n"
    writer.write(head.encode())
    await reader.read()
    writer.close()


@pytest.mark.parametrize(
    "ask",
    [
        lambda url: httpx2.get(url, headers=ASKING), lambda url: requests.get(url, headers=ASKING, timeout=5),
        by_http_client, by_urllib, by_httpx, by_httpx_in_pieces, by_aiohttp, by_aiohttp_in_pieces,
        by_hand,
    ],
    ids=["httpx2", "requests", "http.client", "urllib", "AsyncClient", "AsyncClient, streamed", "aiohttp",
         "aiohttp, streamed", "raw"],
)  # fmt: skip
async def test_answers_of_a_server_to_clients_in_this_process_are_observed(
    watch: LeakDetector, server: str, ask: Callable[[str], Any]
) -> None:
    """The key is known only from the request, because the suite has not created it."""
    request = ask(f"{server}/v1/models")
    if asyncio.iscoroutine(request):
        await request
    assert {place.lower() for place in places(watch)} >= {
        "answer of get /v1/models",
        "header x-echo in the answer of get /v1/models",
    }


LOGIN: dict[str, str] = {"email": "ada@example.test", "password": SECRET}


def post_by_http_client(url: str) -> None:
    connection = http.client.HTTPConnection(urlsplit(url).netloc)
    connection.request("POST", urlsplit(url).path, json.dumps(LOGIN), {"Content-Type": "application/json"})
    connection.getresponse().read()
    connection.close()


def post_by_urllib(url: str) -> None:
    with urllib.request.urlopen(urllib.request.Request(url, json.dumps(LOGIN).encode())) as answer:
        answer.read()


async def post_by_aiohttp(url: str, **body: Any) -> None:
    async with aiohttp.ClientSession() as session, session.post(url, **body) as answer:
        await answer.read()


async def post_by_hand(url: str) -> None:
    """Send the request in pieces like a slow client, over a connection that stays open."""
    reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(url).port)
    body = json.dumps(LOGIN)
    for request in (f"POST {urlsplit(url).path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n{body}",) * 2:
        for at in range(0, len(request), 7):
            writer.write(request[at : at + 7].encode())
        await reader.readuntil(b"}")
    writer.close()


@pytest.mark.parametrize(
    "post",
    [
        lambda url: httpx2.post(url, json=LOGIN), lambda url: requests.post(url, json=LOGIN, timeout=5),
        lambda url: requests.post(url, data=LOGIN, timeout=5), post_by_http_client, post_by_urllib,
        lambda url: post_by_aiohttp(url, json=LOGIN), lambda url: post_by_aiohttp(url, data=LOGIN),
        lambda url: post_by_aiohttp(url, data=json.dumps(LOGIN).encode()), post_by_hand,
    ],
    ids=["httpx2", "requests", "requests, form", "http.client", "urllib", "aiohttp", "aiohttp, form",
         "aiohttp, bytes", "raw"],
)  # fmt: skip
async def test_a_password_in_a_body_is_a_secret(watch: LeakDetector, server: str, post: Callable[[str], Any]) -> None:
    """The password is known only from the request's body. The answer discloses it, and is searched."""
    watch.add_text("a log", f"tried {SECRET}")
    posted = post(f"{server}/api/auth/login")
    if asyncio.iscoroutine(posted):
        await posted
    assert set(places(watch)) == {"a log", "answer of POST /api/auth/login"}


async def spoken(server: str, talk: bytes, answered: bytes) -> None:
    """Send raw bytes to a server that returns a fixed answer."""

    async def answers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(answered)
        await writer.drain()
        writer.close()

    running = await asyncio.start_server(answers, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{running.sockets[0].getsockname()[1]}"
    http_observer.register(url)
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(url).port)
        writer.write(talk)
        await reader.read()
        writer.close()
    finally:
        http_observer.unregister(url)
        running.close()


@pytest.mark.parametrize(
    "answered",
    [
        b"HTTP/1.1 400 Bad Request\r\nContent-Length: 100\r\n\r\nwhat is " + SECRET.encode(),
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"14\r\n" + SECRET[:20].encode() + b"\r\n13\r\n" + SECRET[20:].encode() + b"\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX-Echo: " + SECRET.encode() + b"\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 39\r\n\r\n" + SECRET.encode(),
        b"no HTTP at all: " + SECRET.encode(),
    ],
    ids=["cut off", "in chunks", "in a header", "after a 100", "no HTTP"],
)
@pytest.mark.parametrize("talk", [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03nonsense\r\n\r\n"])
async def test_raw_answers_of_a_server_are_observed(
    watch: LeakDetector, server: str, talk: bytes, answered: bytes
) -> None:
    watch.add_secret(SECRET, "a key")
    await spoken(server, talk, answered)
    assert len(places(watch)) == 1


#: Other uses of sockets, which are not observed.
_UNHEARD = re.compile(r"\bsocket\.create_connection|\.sendall\(|\.sock_connect\(|\btelnetlib\b|\.create_connection\(")
_NOT_TO_A_SERVER_OF_OURS = {
    # Uses TLS. This module reports the answers itself.
    "platform/operations/scenarios/test_listener.py",
    # A provider that the test simulates.
    "foundation/outbound/lean/test_liveness.py",
    # The private socket of the owner of stdio servers.
    "engine/mcp/stdio/test_servers.py",
    # Accepts connections and never answers.
    "platform/worker/test_connection_sharing.py",
}


def test_no_test_uses_unobserved_connections() -> None:
    tests = ROOT / "tests"
    match = {str(path.relative_to(tests)) for path in tests.rglob("test_*.py") if _UNHEARD.search(path.read_text())}
    assert match - {"contract/test_leaks.py"} <= _NOT_TO_A_SERVER_OF_OURS


async def test_a_server_may_return_a_secret_at_its_creation(watch: LeakDetector, server: str) -> None:
    async with httpx2.AsyncClient() as client:
        await client.post(f"{server}/api/auth/api-keys/", json={})
        assert places(watch) == []
        await client.post(f"{server}/api/admin/groups", json={})
    assert places(watch) == ["answer of POST /api/admin/groups"]


async def test_other_servers_are_not_observed(watch: LeakDetector, server: str) -> None:
    http_observer.unregister(server)
    watch.add_secret(SECRET, "a key")
    await by_httpx(server)
    await by_aiohttp(server)
    by_urllib(server)
    assert places(watch) == []


#: A separate suite with the real platform, in which an administrator stores a new key in a field that everybody can
#: read.
LEAKING = """
from tests.conftest import home, platform, settings, suite_home, tenant

async def test_a_key_goes_where_it_should_not(platform, tenant):
    key = await platform.new_key(tenant.user)
    made = await tenant.admin.client.post("/api/admin/groups", json={"name": "x", "description": f"use {key}"})
    assert made.status_code == 201
    print("made", key)
"""


@pytest.mark.timeout(300)
async def test_a_suite_that_discloses_a_secret_fails_and_names_the_place(tmp_path: Path) -> None:
    test = tmp_path / "test_leaking.py"
    test.write_text(LEAKING)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "pytest", "-c", ROOT / "pyproject.toml", "--rootdir", ROOT,
        "-p", "tests.support.leak_plugin", test,
        cwd=ROOT, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    output, _ = await process.communicate()
    text = output.decode()
    # The test itself passes, and the suite fails.
    assert (process.returncode, "1 failed" in text) == (1, False), text
    summary = text.partition("secrets that were told")[2]
    for place in ("answer of POST /api/admin/groups", "table groups", "Captured stdout call"):
        assert place in summary
    # The reported text does not contain the key. The answer to its creation is not reported as a leak.
    assert "gk_" not in summary.replace("a minted gk_", "")
    assert "answer of POST /api/auth/api-keys" not in summary
