"""Failures of a provider over a real socket, and their effects on the request."""

import asyncio

import pytest
from tests.engine.providers.conftest import call, candidate
from tests.engine.providers.wires import (
    CHAT,
    OPENAI_REPLY,
    WIRES,
    answering,
)
from tests.support.upstream import Connection, upstream

from gatehouse.engine.conversation.errors import ContextTooLong, RefusedUpstream
from gatehouse.engine.conversation.sse import frame
from gatehouse.engine.providers import ProviderFailed
from gatehouse.foundation.errors import PayloadTooLarge


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("status", "reason", "flag"),
    [
        (500, "http_500", "retryable"),
        (502, "http_502", "retryable"),
        (529, "http_529", "retryable"),
        (408, "http_408", "retryable"),
        (429, "rate_limited", "move_on"),
        (401, "unauthorized", "move_on"),
        (403, "unauthorized", "move_on"),
        (402, "http_402", "move_on"),
        (302, "http_302", "move_on"),
        (400, "refused", "client_error"),
        (404, "model_not_found", "move_on"),
        (413, "refused", "client_error"),
        (422, "refused", "client_error"),
    ],
)
async def test_a_status_means_retry_move_on_or_the_clients_error(ask, stream, status, reason, flag):
    async with upstream(answering(b'{"error":{"message":"no"}}', status)) as server:
        with pytest.raises(ProviderFailed) as failed:
            await ask(call(stream=stream), candidate("openai", base_url=server.url))
    error = failed.value
    assert (error.reason, error.status) == (reason, status)
    assert [name for name in ("retryable", "move_on", "client_error") if getattr(error, name)] == [flag]
    if error.client_error is not None:
        assert error.client_error.status in {400, 413}


@pytest.mark.parametrize(
    ("body", "leaf", "text"),
    [
        (b'{"error":{"message":"bad tool"}}', RefusedUpstream, "bad tool"),
        (b'{"error":"bad tool"}', RefusedUpstream, "bad tool"),
        (b'{"message":"bad tool"}', RefusedUpstream, "bad tool"),
        (b'{"error":{"message":"x","code":"context_length_exceeded"}}', ContextTooLong, "x"),
        (b'{"error":{"message":"prompt is too long: 9 > 8"}}', ContextTooLong, "prompt is too long: 9 > 8"),
        (b"<html>", RefusedUpstream, RefusedUpstream.message),
        (b"", RefusedUpstream, RefusedUpstream.message),
        (b"\xff\x00", RefusedUpstream, RefusedUpstream.message),
        (
            b'{"error":{"message":"key sk-very-secret-key and sk-proj-abcdefghij\\n\\u0007"}}',
            RefusedUpstream,
            "key [redacted] and [redacted]",
        ),
    ],
)
async def test_the_message_of_a_refusal_is_cleaned(ask, body, leaf, text):
    async with upstream(answering(body, 400)) as server:
        with pytest.raises(ProviderFailed) as failed:
            await ask(call(), candidate("openai", base_url=server.url))
    assert type(failed.value.client_error) is leaf
    assert failed.value.client_error.text == text


async def test_a_huge_error_counts_by_its_status(ask):
    async with upstream(answering(b"x" * 5_000_000, 413)) as server:
        with pytest.raises(ProviderFailed) as failed:
            await ask(call(), candidate("openai", base_url=server.url))
    assert isinstance(failed.value.client_error, PayloadTooLarge)


@pytest.mark.parametrize(("value", "seconds"), [("7", 7.0), ("0.5", 0.5), ("soon", None), ("-1", None), ("nan", None)])
async def test_retry_after_is_read_in_seconds(ask, value, seconds):
    async with upstream(answering(b"", 429, f"Retry-After: {value}\r\n")) as server:
        with pytest.raises(ProviderFailed) as failed:
            await ask(call(), candidate("openai", base_url=server.url))
    assert failed.value.retry_after == seconds


@pytest.mark.parametrize(
    ("retry_after", "seconds"), [("", 20.0), ("Retry-After: soon\r\n", 20.0), ("Retry-After: 7\r\n", 7.0)]
)
async def test_a_429_without_retry_after_waits_until_the_exhausted_limit_resets(ask, retry_after, seconds):
    limits = "x-ratelimit-remaining-tokens: 0\r\nx-ratelimit-reset-tokens: 20s\r\n"
    async with upstream(answering(b"", 429, f"{retry_after}{limits}")) as server:
        with pytest.raises(ProviderFailed) as failed:
            await ask(call(), candidate("openai", base_url=server.url))
    assert failed.value.retry_after == seconds


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("body", [b"<html>oops</html>", b"", b"{}", b"\x00\xff" * 50, b"data: nonsense\n\n"])
async def test_garbage_is_a_bad_reply_before_anything_is_sent(ask, stream, body):
    async with upstream(answering(body)) as server:
        with pytest.raises(ProviderFailed) as failed:
            await ask(call(stream=stream), candidate("openai", base_url=server.url))
    assert failed.value.reason in ({"bad_reply", "connection_closed"} if stream else {"bad_reply"})


async def test_an_answer_over_the_limit_is_refused(ask):
    async with upstream(answering(OPENAI_REPLY + b" " * 2000)) as server:
        with pytest.raises(ProviderFailed, match="reply_too_large") as failed:
            await ask(call(), candidate("openai", base_url=server.url), limit=1000)
    assert failed.value.move_on


async def test_an_unreachable_and_a_silent_provider(ask):
    async def silent(_connection: Connection) -> None:
        await asyncio.sleep(5)

    async with upstream(silent) as server:
        with pytest.raises(ProviderFailed, match="timeout") as failed:
            await ask(call(), candidate("openai", base_url=server.url, timeout_ms=100))
        assert failed.value.retryable
        url = server.url
    with pytest.raises(ProviderFailed, match="connect_failed") as failed:
        await ask(call(), candidate("openai", base_url=url))
    assert failed.value.retryable


@pytest.mark.parametrize("dialect", CHAT)
@pytest.mark.parametrize("kind", ["openai", "anthropic"])
@pytest.mark.parametrize("end", ["closed", "ended", "silent", "fault"])
async def test_a_broken_stream_passes_its_events_on_and_then_fails(ask, dialect, kind, end):
    events = WIRES[kind][2][:4]
    if kind == "openai":
        events = events[:3]

    async def behave(connection: Connection) -> None:
        await connection.begin_stream()
        for event in events:
            await connection.chunk(event)
        match end:
            case "closed":
                raise ConnectionError
            case "ended":
                await connection.end_stream()
            case "silent":
                await asyncio.sleep(5)
            case "fault":
                named = "error" if kind == "anthropic" else None
                await connection.chunk(frame(b'{"error":{"message":"overloaded"},"type":"error"}', named))
                await connection.end_stream()

    async with upstream(behave) as server:
        reply = await ask(call(dialect, stream=True), candidate(kind, base_url=server.url, timeout_ms=300))
        got = b""
        with pytest.raises(ProviderFailed) as failed:
            async for block in reply.events:
                got += block
        await reply.close()
    assert "Hi ä" in got.decode()
    reasons = {"silent": "timeout", "fault": "stream_error"}
    assert failed.value.reason == reasons.get(end, "connection_closed")
    assert b"overloaded" not in got
