"""Any invalid request is answered with a 4xx in the right envelope and a clear message, never with a 5xx."""

import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from tests.support.platform import RunningPlatform, Tenant
from tests.support.smuggling import answer_to

USER = {"role": "user", "content": "hi"}
GOOD: dict[str, Any] = {"model": "sandbox/echo", "messages": [USER]}
PATHS = ["/v1/chat/completions", "/api/chat/completions", "/v1/messages", "/v1/responses", "/v1/embeddings"]


@pytest.fixture(scope="module")
async def url(platform: RunningPlatform) -> AsyncIterator[str]:
    async with platform.listening() as url:
        yield url


@pytest.fixture(scope="module")
async def caller(platform: RunningPlatform) -> Tenant:
    tenant = await platform.new_tenant()
    await platform.add_provider(tenant.id, "sandbox", "sandbox", "echo", "embed")
    return tenant


@pytest.fixture(scope="module")
async def session(platform: RunningPlatform, caller: Tenant) -> AsyncIterator[aiohttp.ClientSession]:
    key = await platform.new_key(caller.admin)
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {key}"}) as session:
        yield session


def deep(levels: int) -> bytes:
    return b'{"model": "sandbox/echo", "messages": ' + b"[" * levels + b"]" * levels + b"}"


BODIES: dict[str, bytes] = {
    "nothing": b"",
    "no JSON": b"{",
    "text": b"hello",
    "null": b"null",
    "list": b"[]",
    "number": b"5",
    "NUL bytes": b"\x00\x01\x02",
    "not UTF-8": b'{"model": "\xff\xfe"}',
    "lone surrogate": b'{"model": "\\ud800", "messages": [{"role": "user", "content": "x"}]}',
    "NaN": b'{"model": "sandbox/echo", "messages": [{"role": "user", "content": "x"}], "temperature": NaN}',
    "huge number": b'{"model": "sandbox/echo", "messages": [], "max_tokens": 1' + b"0" * 5000 + b"}",
    "deep": deep(100_000),
    "model is a number": json.dumps({**GOOD, "model": 5}).encode(),
    "model is missing": json.dumps({"messages": [USER]}).encode(),
    "model is unknown": json.dumps({**GOOD, "model": "nobody/nothing", "max_tokens": 5, "input": "x"}).encode(),
    "messages is text": json.dumps({**GOOD, "messages": "hi"}).encode(),
    "a message is text": json.dumps({**GOOD, "messages": ["hi"]}).encode(),
    "no messages": json.dumps({**GOOD, "messages": []}).encode(),
    "stream is text": json.dumps({**GOOD, "stream": "yes"}).encode(),
    "fallbacks is text": json.dumps({**GOOD, "fallbacks": "x"}).encode(),
    "NUL in the text": json.dumps({**GOOD, "messages": [{"role": "user", "content": "a\x00b"}]}).encode(),
}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
async def test_a_bad_body_is_refused_in_the_paths_envelope(
    url: str, session: aiohttp.ClientSession, path: str, body: bytes
) -> None:
    async with session.post(url + path, data=body, headers={"content-type": "application/json"}) as answer:
        response_body = await answer.json()
    assert 400 <= answer.status < 500, response_body
    if path == "/v1/messages":
        assert response_body["type"] == "error"
    assert response_body["error"]["message"]
    assert response_body["error"]["type"]


@pytest.mark.parametrize("chunked", [True, False])
@pytest.mark.parametrize("path", [*PATHS, "/api/auth/api-keys", "/api/auth/login"])
async def test_twenty_megabytes_are_413(url: str, session: aiohttp.ClientSession, path: str, chunked: bool) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(20):
            yield b"x" * 1024 * 1024

    data: Any = pieces() if chunked else b"x" * 20 * 1024 * 1024
    try:
        async with session.post(url + path, data=data) as answer:
            assert answer.status == 413
    except aiohttp.ClientConnectionError:
        # The answer was sent while the client was still sending, and then the connection was closed.
        pass
    async with session.get(url + "/v1/models") as after:
        assert after.status == 200


@pytest.mark.parametrize("path", PATHS)
async def test_chunks_beyond_the_limit_are_refused_with_413(
    platform: RunningPlatform, caller: Tenant, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """The test uses Gatehouse's own protocol, and a client that reads the answer before the connection ends."""
    monkeypatch.setattr(platform, "ingress", "lean")
    key = await platform.new_key(caller.admin)
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunk = b"100000\r\n" + b"x" * 1024 * 1024 + b"\r\n"
    async with platform.listening() as url:
        text = await answer_to(url, head.encode(), *[chunk] * 20, b"0\r\n\r\n")
    head, _, body = text.decode().partition("\r\n\r\n")
    assert head.startswith("HTTP/1.1 413 "), text
    assert "connection: close" in head.lower()
    assert "bytes at most" in json.loads(body)["error"]["message"]


async def test_without_a_credential_only_smaller_bodies_are_read(url: str) -> None:
    two = b'"' + b"x" * 2 * 1024 * 1024 + b'"'
    async with aiohttp.ClientSession() as stranger:
        for path in ("/api/auth/register", "/api/admin/users"):
            try:
                async with stranger.post(url + path, data=two) as answer:
                    assert answer.status == 413
            except aiohttp.ClientConnectionError:
                # The connection was closed while the client was still sending.
                pass


@pytest.mark.parametrize("body", [b"", b"{", b"null", b"[]", b'"x"', b"\x00", deep(50_000), b"\xff\xfe"])
async def test_administration_refuses_a_bad_body_too(url: str, session: aiohttp.ClientSession, body: bytes) -> None:
    for path in ("/api/auth/login", "/api/auth/api-keys", "/api/auth/register"):
        async with session.post(url + path, data=body, headers={"content-type": "application/json"}) as answer:
            assert 400 <= answer.status < 500, (path, await answer.text())


@pytest.mark.parametrize(
    "path",
    [
        "/api/auth/api-keys/not-a-uuid",
        "/api/admin/api-keys/%00",
        "/api/admin/users?page=x",
        "/v1/models/%ff",
        "//x",
        "/%2e%2e/x",
    ],
)
async def test_a_malformed_path_is_answered_with_a_4xx(url: str, session: aiohttp.ClientSession, path: str) -> None:
    async with session.get(url + path) as answer:
        assert 400 <= answer.status < 500, await answer.text()


@pytest.mark.parametrize(
    "header",
    [
        {"Authorization": "Bearer "},
        {"Authorization": "Basic x"},
        {"Authorization": "Bearer " + "a.b.c"},
        {"Authorization": "Bearer gk_" + "\u00e9" * 10},
        {"Authorization": "Bearer " + "x" * 8000},
        {"X-API-Key": "gk_"},
    ],
)
async def test_a_bad_credential_is_401(url: str, header: dict[str, str]) -> None:
    async with aiohttp.ClientSession() as session:
        for path in ("/v1/models", "/api/admin/api-keys"):
            async with session.get(url + path, headers=header) as answer:
                assert answer.status == 401
                assert "www-authenticate" in answer.headers


async def test_answers_of_administration_must_not_be_cached(url: str, session: aiohttp.ClientSession) -> None:
    async with session.get(url + "/api/admin/api-keys") as answer:
        assert answer.headers["cache-control"] == "no-store"
    async with session.get(url + "/.well-known/jwks.json") as answer:
        assert "max-age" in answer.headers["cache-control"]
