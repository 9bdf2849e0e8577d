"""Each kind of provider with a wire of its own, failing in every way: the right error, the right fallback, one record,
nothing charged twice, and no second try once the client has its first byte."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, NamedTuple
from uuid import uuid4

import aiohttp
import pytest
from tests.contract.test_bad_providers import (
    MESSAGES,
    garbage,
    half_an_answer,
    hangs_up,
    outcomes,
    silent,
    status,
    stream_garbage,
)
from tests.support.platform import RunningPlatform, Tenant
from tests.support.upstream import Behave, Connection, upstream
from tests.support.vendors import bedrock

from gatehouse.engine.outcome import Outcome
from gatehouse.engine.providers import KINDS
from gatehouse.engine.providers.bedrock.machine import Machine


class Vendor(NamedTuple):
    """`config` by the URL of its server; `begins`, how a stream of it begins that says `partly`, once `begin` has said
    that a stream follows."""

    config: Callable[[str], dict[str, Any]]
    begins: bytes
    begin: Callable[[Connection], Awaitable[None]] = Connection.begin_stream


OPENAI_LIKE = (
    b'data: {"id":"x","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"partly"}}]}\n\n'
)
VENDORS: Mapping[str, Vendor] = {
    "bedrock": Vendor(
        lambda url: {"base_url": url, "cloud_region": bedrock.REGION, "use_instance_role": True},
        bedrock.event("messageStart", {"role": "assistant"})
        + bedrock.event("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "partly"}}),
        bedrock.begin_stream,
    ),
    "gemini": Vendor(
        lambda url: {"base_url": f"{url}/v1beta"},
        b'data: {"candidates": [{"content": {"parts": [{"text": "partly"}], "role": "model"}}]}\r\n\r\n',
    ),
    "azure_openai": Vendor(lambda url: {"hosted_endpoint": url}, OPENAI_LIKE),
    "mistral": Vendor(lambda url: {"base_url": f"{url}/v1"}, OPENAI_LIKE),
}
PATHS = {"chat": "/v1/chat/completions", "messages": "/v1/messages"}


async def malformed(connection: Connection) -> None:
    await connection.answer(b'{"choices": [')


async def wrong_type(connection: Connection) -> None:
    await connection.answer(b"model: not json", kind="text/plain")


@pytest.fixture(autouse=True)
def role(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who this machine is to a cloud that asks for signatures."""
    keys = {"AWS_ACCESS_KEY_ID": bedrock.KEY_ID, "AWS_SECRET_ACCESS_KEY": bedrock.SECRET}
    monkeypatch.setattr(KINDS["bedrock"], "_machine", Machine(keys))


@pytest.fixture(scope="module")
async def url(platform: RunningPlatform) -> AsyncIterator[str]:
    async with platform.listening() as url:
        yield url


BROKEN: list[tuple[Behave, bool, int, str]] = [
    (status(500), False, 502, "http_500"),
    (status(503), True, 502, "http_503"),
    (status(429), False, 502, "rate_limited"),
    (status(401), True, 502, "unauthorized"),
    (silent, False, 504, "timeout"),
    (silent, True, 504, "timeout"),
    (hangs_up, False, 502, "connection_closed"),
    (half_an_answer, False, 502, "connection_closed"),
    (malformed, False, 502, "bad_reply"),
    (wrong_type, True, 502, "bad_reply"),
    (garbage, False, 502, "bad_reply"),
    (stream_garbage, True, 502, "bad_reply"),
]


@pytest.mark.parametrize("kind", VENDORS)
@pytest.mark.parametrize(("behave", "stream", "code", "reason"), BROKEN)
async def test_a_failing_vendor_is_a_clear_error_and_one_record(
    platform: RunningPlatform, tenant: Tenant, url: str, kind: str, behave: Behave, stream: bool, code: int, reason: str
) -> None:
    async with upstream(behave) as provider:
        answer, told, _ = await ask(platform, tenant, url, kind, provider.url, stream=stream)
    assert answer == code, told
    error = json.loads(told)["error"]
    assert [attempt["reason"] for attempt in error["attempts"]] == [reason]
    assert "upstream words" not in told
    (outcome,) = outcomes(platform.installed.home, tenant)
    assert (outcome.status, outcome.outcome, outcome.cost_usd) == (code, "error", None)


@pytest.mark.parametrize("kind", VENDORS)
@pytest.mark.parametrize(("behave", "stream"), [(case[0], case[1]) for case in BROKEN])
async def test_the_fallback_answers_and_alone_is_charged(
    platform: RunningPlatform, tenant: Tenant, url: str, kind: str, behave: Behave, stream: bool
) -> None:
    await platform.add_provider(tenant.id, "sandbox", "sandbox", "tokens-1000-200")
    async with upstream(behave) as provider:
        answer, told, headers = await ask(
            platform, tenant, url, kind, provider.url, stream=stream, fallbacks=["sandbox/tokens-1000-200"]
        )
    assert answer == 200, told
    assert (headers["X-Gateway-Provider"], headers["X-Gateway-Fallbacks"]) == ("sandbox", "1")
    outcome = await the_record(platform, tenant)
    assert (outcome.provider, outcome.input_tokens, outcome.output_tokens) == ("sandbox", 1000, 200)
    assert float(outcome.cost_usd) == pytest.approx(0.0014)


@pytest.mark.parametrize("kind", VENDORS)
@pytest.mark.parametrize("path", PATHS)
async def test_a_stream_that_breaks_is_not_tried_again(
    platform: RunningPlatform, tenant: Tenant, url: str, kind: str, path: str
) -> None:
    async def breaks(connection: Connection) -> None:
        await VENDORS[kind].begin(connection)
        await connection.chunk(VENDORS[kind].begins)
        await asyncio.sleep(0.05)
        connection.writer.transport.abort()

    await platform.add_provider(tenant.id, "sandbox", "sandbox", "echo")
    async with upstream(breaks) as provider:
        answer, told, _ = await ask(
            platform, tenant, url, kind, provider.url,
            stream=True, fallbacks=["sandbox/echo"], max_retries=2, path=path,
        )  # fmt: skip
        assert len(provider.requests) == 1
    assert answer == 200
    assert told.count("partly") == 1
    last = told.strip().split("\n\n")[-1]
    assert json.loads(last[last.index("{") :])["error"]["type"] == "provider_error"
    outcome = await the_record(platform, tenant)
    assert (outcome.outcome, outcome.fallbacks) == ("error", 0)
    assert outcome.output_tokens, "what was made is paid for, told or not"


@pytest.mark.parametrize("kind", VENDORS)
async def test_a_vendor_that_drips_is_left(platform: RunningPlatform, tenant: Tenant, url: str, kind: str) -> None:
    async def drips_a_stream(connection: Connection) -> None:
        await VENDORS[kind].begin(connection)
        await connection.chunk(VENDORS[kind].begins)
        await connection.reader.read(1)

    async with upstream(drips_a_stream) as provider:
        answer, told, _ = await ask(platform, tenant, url, kind, provider.url, stream=True)
        await asyncio.wait_for(provider.closed_by_client.wait(), 5)
    assert answer == 200
    assert "stopped sending" in told
    assert (await the_record(platform, tenant)).outcome == "error"


async def the_record(platform: RunningPlatform, tenant: Tenant) -> Outcome:
    for _ in range(100):
        if found := outcomes(platform.installed.home, tenant):
            (outcome,) = found
            return outcome
        await asyncio.sleep(0.01)
    raise AssertionError("nothing was recorded")


async def ask(
    platform: RunningPlatform,
    tenant: Tenant,
    url: str,
    kind: str,
    base: str,
    *,
    stream: bool = False,
    fallbacks: list[str] | None = None,
    max_retries: int = 0,
    path: str = "chat",
) -> tuple[int, str, Mapping[str, str]]:
    name = f"p-{uuid4().hex[:8]}"
    config = {**VENDORS[kind].config(base), "max_retries": max_retries, "timeout_ms": 500}
    await platform.add_provider(tenant.id, name, kind, "m", **config)
    key = await platform.new_key(tenant.user)
    body = {"model": f"{name}/m", "messages": MESSAGES, "max_tokens": 9, "stream": stream}
    if fallbacks:
        body["fallbacks"] = fallbacks
    async with (
        aiohttp.ClientSession(headers={"Authorization": f"Bearer {key}"}) as session,
        session.post(url + PATHS[path], json=body) as answer,
    ):
        return answer.status, await answer.text(), answer.headers
