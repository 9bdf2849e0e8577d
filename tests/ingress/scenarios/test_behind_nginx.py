"""The smuggling requests are sent to nginx alone for comparison, and to nginx in front of the gateway: no client gets
the answer to another's request."""

import asyncio
import re
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support import required_programs
from tests.support.engine import completion
from tests.support.platform import RunningPlatform
from tests.support.ports import free_port
from tests.support.smuggling import CHUNKED, HIDDEN, LENGTH, LINE, TABLE, answer_to, raw
from tests.support.upstream import Connection, Upstream, upstream
from tests.support.wire import connected

NGINX = required_programs.find("nginx")
VERSION = re.findall(r"nginx/(\d+\.\d+)", subprocess.getoutput(f"{NGINX} -v"))[0] if NGINX else ""
PATH = "/v1/chat/completions"
#: The faults that nginx 1.22 accepts (19 of 81) and the gateway refuses. nginx writes the head and the framing again,
#: so a server behind it does not get the fault.
NGINX_TAKES = {
    "chunks: a bare LF at the end",
    "chunks: a bare LF behind a chunk",
    "chunks: a size with a bare LF",
    "chunks: a space behind a size",
    "chunks: a trailer",
    "chunks: an endless size",
    "chunks: an extension",
    "chunks: an extension of the last",
    "chunks: an extension that hides a line",
    "head: HTTP/1.2",
    "head: a bare LF at the end",
    "head: a bare LF behind the request line",
    "head: a bare LF in front",
    "head: a letter beyond ASCII in a name",
    "head: a space behind the version",
    "head: another control character",
    "head: no colon",
    "head: two spaces behind the method",
    "head: two spaces behind the target",
}
#: nginx's answers to the other faults, if they are not 400. An answer to HTTP/0.9 has no status.
NGINX_SAYS: dict[str, list[int]] = {
    "chunks twice in a line": [501],
    "another coding first": [501],
    "another coding last": [501],
    "an empty coding first": [501],
    "an empty coding last": [501],
    "no coding": [501],
    "nearly chunked": [501],
    "chunked in quotes": [501],
    "chunked with a parameter": [501],
    "chunked behind a vertical tab": [501],
    "head: a tunnel": [405],
    "head: HTTP/2.0": [505],
    "head: no version": [],
    "size: a long target": [414],
}
CONFIGURATION = """
daemon off; master_process off; worker_processes 1; pid {folder}/pid; error_log {folder}/log;
events {{ worker_connections 256; }}
http {{
  access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  upstream behind {{ server {server}; keepalive 1; }}
  server {{
    listen 127.0.0.1:{port};
    location / {{ proxy_pass http://behind; proxy_http_version 1.1; proxy_set_header Connection ""; }}
  }}
}}
"""

pytestmark = required_programs.needs("nginx")


class Front:
    """nginx in front of one server, with one kept connection: a desynchronised connection would affect the next
    caller."""

    def __init__(self, folder: Path, server: str) -> None:
        self._folder, self._server = folder, server.removeprefix("http://")
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        folder.mkdir()
        configuration = folder / "nginx.conf"
        configuration.write_text(CONFIGURATION.format(folder=folder, server=self._server, port=port))
        assert NGINX is not None
        command = [NGINX, "-p", str(folder), "-c", str(configuration), "-e", str(folder / "log")]
        self._process = subprocess.Popen(command)

    async def ready(self) -> None:
        async with asyncio.timeout(60):
            while True:
                try:
                    async with connected(self.url):
                        return
                except OSError:
                    await asyncio.sleep(0.02)

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()

    async def answers(self, sent: bytes) -> list[int]:
        """Return the statuses of all answers until the connection ends. The last request asks to close it."""
        sent = sent.replace(b"Host: x\r\nAuthorization", b"Host: x\r\nConnection: close\r\nAuthorization")
        return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", await answer_to(self.url, sent))]


@pytest.fixture(autouse=True)
def ingress(platform: RunningPlatform, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "ingress", "lean")


@pytest.fixture
async def provider() -> AsyncIterator[Upstream]:
    async def behave(connection: Connection) -> None:
        await connection.answer(completion("Hello"))

    async with upstream(behave) as provider:
        yield provider


@pytest.fixture
async def key(platform: RunningPlatform, provider: Upstream) -> str:
    tenant = await platform.new_tenant()
    await platform.add_provider(tenant.id, "sandbox", "openai_compatible", "echo", base_url=f"{provider.url}/v1")
    return await platform.new_key(tenant.user)


@pytest.fixture
async def control(provider: Upstream, tmp_path: Path) -> AsyncIterator[Front]:
    front = Front(tmp_path / "control", provider.url)
    try:
        await front.ready()
        yield front
    finally:
        front.stop()


@pytest.fixture
async def front(platform: RunningPlatform, tmp_path: Path) -> AsyncIterator[Front]:
    async with platform.listening() as url:
        front = Front(tmp_path / "front", url)
        try:
            await front.ready()
            yield front
        finally:
            front.stop()


async def test_nginx_alone_refuses_the_same_requests_except_those_it_rewrites(
    control: Front, provider: Upstream
) -> None:
    async def answers_to(fault: tuple[bytes, bytes, bytes]) -> tuple[list[int], int]:
        """Return nginx's answers, and the number of requests that it passed on."""
        before = len(provider.requests)
        return await control.answers(raw(PATH, "k", *fault)), len(provider.requests) - before

    for good in ((LINE, LENGTH, b"hello"), (LINE, CHUNKED, b"5\r\nhello\r\n0\r\n\r\n")):
        assert await answers_to(good) == ([200, 200], 2)
    text = {name: await answers_to(fault) for name, fault in TABLE.items()}
    accepted_faults = {name for name, (_, passed) in text.items() if passed}
    # Other versions accept fewer of these faults.
    assert accepted_faults == NGINX_TAKES if VERSION == "1.22" else accepted_faults <= NGINX_TAKES
    for name in TABLE.keys() - accepted_faults:
        assert text[name] == (NGINX_SAYS.get(name, [400]), 0), name


async def test_behind_nginx_no_client_gets_the_answer_to_anothers_request(
    front: Front, key: str, provider: Upstream
) -> None:
    good = HIDDEN.replace(b"KEY", key.encode())
    unknown = HIDDEN.replace(b"KEY", b"gk_unknown")
    for name, fault in TABLE.items():
        before = len(provider.requests)
        answers = await front.answers(raw(PATH, key, *fault))
        served = len(provider.requests) - before
        assert served <= answers.count(200), name
        # The next requests use the connection that nginx has kept.
        assert await front.answers(unknown) == [401], name
        assert await front.answers(good) == [200], name
