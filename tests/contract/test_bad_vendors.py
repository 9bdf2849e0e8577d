"""Failures of every kind of provider: the client gets the right error or fallback, there is one record, nothing is
charged twice, and nothing is retried after the client's first byte.

Kinds with the same wire format share the code that reads answers, streams and failures. Every fault is tested with one
vendor of each wire format (`WIRES`) on each surface. The other vendors differ in address, authentication and the
reading of refusals: each of them is tested with one plain failure, one refusal, one successful retry and one
interrupted stream. The address and the headers of each kind are checked in
tests/engine/providers/scenarios/test_what_is_sent.py."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import uuid4

import aiohttp
import pytest
from tests.contract.test_bad_providers import (
    MESSAGES,
    drips,
    garbage,
    half_an_answer,
    hangs_up,
    outcomes,
    silent,
    status,
    stream_garbage,
)
from tests.engine.providers.wires import ANTHROPIC_EVENTS, ANTHROPIC_REPLY, OPENAI_REPLY
from tests.support import native_responses
from tests.support.platform import RunningPlatform, Tenant
from tests.support.upstream import Behave, Connection, upstream
from tests.support.vendors import bedrock, gemini, google_cloud

from gatehouse.engine.providers import KINDS
from gatehouse.engine.providers.authentication.google import GoogleTokens
from gatehouse.engine.providers.bedrock.machine import Machine
from gatehouse.engine.records.outcome import Outcome
from gatehouse.foundation.deadlines import Deadlines
from gatehouse.platform.live.ports import sealing_context


class Vendor(NamedTuple):
    """`config` returns the provider's configuration for the URL of its server. `answer` is a complete answer in the
    vendor's format. `begin` starts a stream, and `begins` is the beginning of a stream with the text `partly`.
    `nonsense` is an invalid event."""

    kind: str
    config: Callable[[str], dict[str, Any]]
    answer: bytes
    begins: bytes
    nonsense: bytes = b"data: {not an event\n\n"
    begin: Callable[[Connection], Awaitable[None]] = Connection.begin_stream


PARTLY = b'data: {"id":"x","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"partly"}}]}\n\n'
#: The events of a native response up to its first text.
RESPONSE_BEGINS = b"".join(native_responses.stream(native_responses.message("partly"), piece=6)[:5])
ANTHROPIC_PARTLY = b"".join(ANTHROPIC_EVENTS[:4]).replace("Hi ä".encode(), b"partly")
VENDORS: Mapping[str, Vendor] = {
    "anthropic": Vendor("anthropic", lambda url: {"base_url": url}, ANTHROPIC_REPLY, ANTHROPIC_PARTLY),
    "azure_openai": Vendor("azure_openai", lambda url: {"hosted_endpoint": url}, OPENAI_REPLY, PARTLY),
    "bedrock": Vendor(
        "bedrock",
        lambda url: {"base_url": url, "cloud_region": bedrock.REGION, "use_instance_role": True},
        bedrock.Bedrock().whole(),
        bedrock.event("messageStart", {"role": "assistant"})
        + bedrock.event("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "partly"}}),
        b"\x00\x00\x00\x20\x00\x00\x00\x00 no frame at all",
        bedrock.begin_stream,
    ),
    "byoe": Vendor("byoe", lambda url: {"base_url": f"{url}/v1", "format": "openai"}, OPENAI_REPLY, PARTLY),
    "byoe, Anthropic's": Vendor(
        "byoe", lambda url: {"base_url": url, "format": "anthropic"}, ANTHROPIC_REPLY, ANTHROPIC_PARTLY
    ),
    "gemini": Vendor(
        "gemini",
        lambda url: {"base_url": f"{url}/v1beta"},
        gemini.Gemini().whole("m"),
        b'data: {"candidates": [{"content": {"parts": [{"text": "partly"}], "role": "model"}}]}\r\n\r\n',
    ),
    "mistral": Vendor("mistral", lambda url: {"base_url": f"{url}/v1"}, OPENAI_REPLY, PARTLY),
    "ollama": Vendor("ollama", lambda url: {"local_runtime_base_url": url}, OPENAI_REPLY, PARTLY),
    "openai": Vendor("openai", lambda url: {"base_url": f"{url}/v1"}, OPENAI_REPLY, PARTLY),
    "vertex_ai": Vendor(
        "vertex_ai",
        lambda url: {"base_url": url, "use_instance_role": True, **google_cloud.CONFIG},
        gemini.Gemini().whole("m"),
        b'data: {"candidates": [{"content": {"parts": [{"text": "partly"}], "role": "model"}}]}\r\n\r\n',
    ),
    "openai_compatible": Vendor("openai_compatible", lambda url: {"base_url": f"{url}/v1"}, OPENAI_REPLY, PARTLY),
}
#: One vendor of each wire format, which is tested with every fault.
WIRES = ("anthropic", "bedrock", "gemini", "openai")
#: The other vendors, whose wire formats are those of `WIRES`.
SHARING = tuple(vendor for vendor in VENDORS if vendor not in WIRES)
BODIES: Mapping[str, Mapping[str, Any]] = {
    "/v1/chat/completions": {"messages": MESSAGES, "max_tokens": 9},
    "/v1/messages": {"messages": MESSAGES, "max_tokens": 9},
    "/v1/responses": {"input": MESSAGES, "max_output_tokens": 9},
}


async def malformed(connection: Connection) -> None:
    await connection.answer(b'{"choices": [')


async def wrong_type(connection: Connection) -> None:
    await connection.answer(b"model: not json", kind="text/plain")


async def another_answer(connection: Connection) -> None:
    await connection.answer(b'{"error": {"message": "upstream words"}}')


#: The vendor's behaviour, whether the client requests a stream, the client's status, and the reason of the attempt.
FAULTS: Sequence[tuple[Behave, bool, int, str]] = [
    (status(500), False, 502, "http_500"),
    (status(503), True, 502, "http_503"),
    (status(429), False, 502, "rate_limited"),
    (status(401), True, 502, "unauthorized"),
    (status(302), False, 502, "http_302"),
    (silent, False, 504, "timeout"),
    (silent, True, 504, "timeout"),
    (hangs_up, False, 502, "connection_closed"),
    (half_an_answer, False, 502, "connection_closed"),
    (malformed, False, 502, "bad_reply"),
    (another_answer, False, 502, "bad_reply"),
    (another_answer, True, 502, "bad_reply"),
    (wrong_type, True, 502, "bad_reply"),
    (garbage, False, 502, "bad_reply"),
    (stream_garbage, True, 502, "bad_reply"),
]


@pytest.fixture(autouse=True)
def role(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the credentials of this machine for clouds that require signatures or tokens."""

    async def metadata(method: str, url: str, headers: Mapping[str, str]) -> bytes:
        return b'{"access_token": "ya29.of-the-machine", "expires_in": 3599}'

    monkeypatch.setattr(KINDS["vertex_ai"], "_tokens", GoogleTokens({}, request=metadata))
    keys = {"AWS_ACCESS_KEY_ID": bedrock.KEY_ID, "AWS_SECRET_ACCESS_KEY": bedrock.SECRET}
    monkeypatch.setattr(KINDS["bedrock"], "_machine", Machine(keys))


@pytest.fixture(scope="module")
async def url(platform: RunningPlatform) -> AsyncIterator[str]:
    async with platform.listening() as url:
        yield url


def test_every_kind_of_provider_is_tested() -> None:
    assert {vendor.kind for vendor in VENDORS.values()} == KINDS.keys() - {"sandbox"}


@pytest.mark.usefixtures("carrier")
@pytest.mark.parametrize(
    ("vendor", "behave", "stream", "code", "reason"),
    [
        *((vendor, *fault) for vendor in WIRES for fault in FAULTS),
        *((vendor, *FAULTS[0]) for vendor in SHARING),
    ],
)
async def test_a_failing_vendor_is_a_clear_error_and_only_its_fallback_is_charged(
    platform: RunningPlatform,
    tenant: Tenant,
    url: str,
    vendor: str,
    behave: Behave,
    stream: bool,
    code: int,
    reason: str,
) -> None:
    await platform.add_provider(tenant.id, "sandbox", "sandbox", "tokens-1000-200")
    async with upstream(behave) as provider:
        timeout = {"timeout_ms": 100} if behave is silent else {}
        ask = await asking(platform, tenant, url, vendor, provider.url, **timeout)
        answer, body, _ = await ask(stream=stream)
        assert answer == code, body
        assert [attempt["reason"] for attempt in json.loads(body)["error"]["attempts"]] == [reason]
        assert "upstream words" not in body
        answer, body, headers = await ask(stream=stream, fallbacks=["sandbox/tokens-1000-200"])
    assert answer == 200, body
    assert (headers["X-Gateway-Provider"], headers["X-Gateway-Fallbacks"]) == ("sandbox", "1")
    failed, answered = await records(platform, tenant, 2)
    assert (failed.status, failed.outcome) == (code, "error")
    # The vendor may bill a call that it did not answer in time. A refused call costs nothing.
    assert (failed.cost_usd is not None) == (code == 504)
    assert (answered.provider, answered.input_tokens, answered.output_tokens) == ("sandbox", 1000, 200)
    assert float(answered.cost_usd or 0) == pytest.approx(0.0014)


@pytest.mark.parametrize("vendor", VENDORS)
async def test_an_invalid_request_is_reported_without_a_fallback(
    platform: RunningPlatform, tenant: Tenant, url: str, vendor: str
) -> None:
    await platform.add_provider(tenant.id, "sandbox", "sandbox", "echo")
    async with upstream(status(400)) as provider:
        ask = await asking(platform, tenant, url, vendor, provider.url, max_retries=2)
        answer, body, _ = await ask(fallbacks=["sandbox/echo"])
        assert len(provider.requests) == 1
    assert (answer, json.loads(body)["error"]["code"]) == (400, "provider_refused_request")
    assert "sk-abcdefghijklmnop" not in body
    (record,) = await records(platform, tenant)
    assert (record.status, record.outcome, record.cost_usd) == (400, "refused", None)


@pytest.mark.parametrize("vendor", VENDORS)
async def test_a_successful_retry_is_charged_once(
    platform: RunningPlatform, tenant: Tenant, url: str, vendor: str
) -> None:
    async def fails_once(connection: Connection) -> None:
        if len(provider.requests) == 1:
            await status(503)(connection)
        else:
            await connection.answer(VENDORS[vendor].answer)

    async with upstream(fails_once) as provider:
        ask = await asking(platform, tenant, url, vendor, provider.url, max_retries=1)
        answer, body, _ = await ask()
        assert len(provider.requests) == 2
    assert answer == 200, body
    (record,) = await records(platform, tenant)
    assert (record.outcome, [attempt.reason for attempt in record.attempts]) == ("success", ["http_503"])
    assert record.output_tokens in {4, 5, 12}, "the usage of one answer"


async def cut(connection: Connection, vendor: Vendor) -> None:
    await asyncio.sleep(0.05)
    connection.writer.transport.abort()


async def talks_nonsense(connection: Connection, vendor: Vendor) -> None:
    await connection.chunk(vendor.nonsense)
    await connection.end_stream()


async def falls_silent(connection: Connection, vendor: Vendor) -> None:
    await connection.reader.read(1)


@pytest.mark.parametrize(
    ("vendor", "path", "breaks"),
    [
        *((vendor, path, breaks) for vendor in WIRES for path in BODIES for breaks in (cut, talks_nonsense)),
        *((vendor, "/v1/messages", falls_silent) for vendor in WIRES),
        *((vendor, "/v1/chat/completions", cut) for vendor in SHARING),
    ],
)
async def test_an_interrupted_stream_ends_with_an_error_and_is_not_retried(
    platform: RunningPlatform, tenant: Tenant, url: str, vendor: str, path: str, breaks: Any
) -> None:
    async def behave(connection: Connection) -> None:
        await VENDORS[vendor].begin(connection)
        is_native = connection.head.startswith("POST /v1/responses ")
        await connection.chunk(RESPONSE_BEGINS if is_native else VENDORS[vendor].begins)
        await breaks(connection, VENDORS[vendor])

    await platform.add_provider(tenant.id, "sandbox", "sandbox", "echo")
    async with upstream(behave) as provider:
        ask = await asking(platform, tenant, url, vendor, provider.url, max_retries=2)
        answer, body, _ = await ask(stream=True, fallbacks=["sandbox/echo"], path=path)
        assert len(provider.requests) == 1
        if breaks is falls_silent:
            await asyncio.wait_for(provider.closed_by_client.wait(), 5)
    assert answer == 200
    assert body.count("partly") == 1
    last = body.strip().split("\n\n")[-1]
    error = json.loads(last[last.index("{") :])["error"]
    assert (error["type"], "incomplete" in error["message"]) == ("provider_error", True)
    (record,) = await records(platform, tenant)
    assert (record.outcome, record.fallbacks) == ("error", 0)
    assert record.output_tokens, "generated output is charged even if the vendor reports no usage"


@pytest.mark.parametrize("vendor", WIRES)
async def test_a_slow_vendor_is_abandoned_at_the_deadline(
    platform: RunningPlatform, tenant: Tenant, url: str, vendor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform.host.engine._attempts, "_deadlines", Deadlines(0.5))
    async with upstream(drips) as provider:
        ask = await asking(platform, tenant, url, vendor, provider.url, timeout_ms=30_000)
        answer, body, _ = await ask()
        await asyncio.wait_for(provider.closed_by_client.wait(), 5)
    assert (answer, json.loads(body)["error"]["code"]) == (504, "provider_timeout"), body
    (record,) = await records(platform, tenant)
    assert (record.status, record.outcome) == (504, "error")
    assert float(record.cost_usd or 0) > 0


async def records(platform: RunningPlatform, tenant: Tenant, number: int = 1) -> list[Outcome]:
    """Return the records after checking that there are exactly this many."""
    for _ in range(100):
        if len(result := outcomes(platform.installed.home, tenant)) >= number:
            break
        await asyncio.sleep(0.01)
    assert len(result) == number
    return sorted(result, key=lambda item: item.timestamp)


async def asking(
    platform: RunningPlatform, tenant: Tenant, url: str, vendor: str, base: str, **settings: Any
) -> Callable[..., Awaitable[tuple[int, str, Mapping[str, str]]]]:
    """Create a provider of the vendor's kind at `base`, and return what a call of it needs."""
    name = f"p-{uuid4().hex[:8]}"
    kind, config = VENDORS[vendor].kind, VENDORS[vendor].config(base)
    await platform.add_provider(
        tenant.id, name, kind, "m", **config, **{"max_retries": 0, "timeout_ms": 500, **settings}
    )
    if vendor == "azure_openai":
        # Without a key, the provider would not be called.
        context = sealing_context(tenant.id, name)
        sealed = platform.host.sealer.seal(b'{"api_key": "key-of-the-vendor"}', context=context)
        platform.sql("UPDATE providers SET sealed_credentials = %s WHERE id = %s", [sealed, name])
        platform.touch("policy", tenant.id)
        await platform.refresh()
    key = await platform.new_key(tenant.user)

    async def ask(path: str = "/v1/chat/completions", **fields: Any) -> tuple[int, str, Mapping[str, str]]:
        body = {"model": f"{name}/m", **BODIES[path], **fields}
        async with (
            aiohttp.ClientSession(headers={"Authorization": f"Bearer {key}"}) as session,
            session.post(url + path, json=body) as answer,
        ):
            return answer.status, await answer.text(), answer.headers

    return ask
