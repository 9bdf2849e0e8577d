"""Every kind over a real socket: what is sent, what comes back, and how a provider may fail."""

import asyncio

import msgspec
import pytest
from tests.engine.providers.conftest import call, candidate, everything
from tests.support.upstream import Connection, upstream

from gatehouse.engine.conversation.dialects import DIALECTS
from gatehouse.engine.conversation.errors import ContextTooLong, RefusedUpstream
from gatehouse.engine.conversation.sse import frame
from gatehouse.engine.conversation.usage import Usage
from gatehouse.engine.providers import KINDS, ProviderFailed
from gatehouse.engine.providers.streams import Converting, Passing
from gatehouse.foundation.errors import PayloadTooLarge
from gatehouse.policy.records import ProviderConfig, ProviderRecord

CHAT = ["openai_chat", "anthropic_messages"]
OPENAI_REPLY = (
    b'{"id":"x","created":1,"model":"m-1","choices":[{"index":0,"message":{"role":"assistant","content":"Hi \xc3\xa4"},'
    b'"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":4},"x_new": 1}'
)
ANTHROPIC_REPLY = (
    b'{"id":"x","type":"message","model":"m-1","content":[{"type":"text","text":"Hi \xc3\xa4"}],'
    b'"stop_reason":"end_turn","usage":{"input_tokens":9,"output_tokens":4},"x_new": 1}'
)
OPENAI_EVENTS = [
    b": ping\n\n",
    frame(b'{"id":"x","created":1,"model":"m-1","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}'),
    frame(b'{"id":"x","created":1,"model":"m-1","choices":[{"index":0,"delta":{"content":"Hi \xc3\xa4"}}]}'),
    frame(b'{"id":"x","created":1,"model":"m-1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}'),
    frame(b'{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":4}}'),
    frame(b"[DONE]"),
]
ANTHROPIC_EVENTS = [
    frame(b'{"type":"message_start","message":{"id":"x","model":"m-1","usage":{"input_tokens":9}}}', "message_start"),
    frame(b'{"type":"ping"}', "ping"),
    frame(b'{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}', "content_block_start"),
    frame(
        b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi \xc3\xa4"}}',
        "content_block_delta",
    ),
    frame(b'{"type":"content_block_stop","index":0}', "content_block_stop"),
    frame(b'{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":4}}', "message_delta"),
    frame(b'{"type":"message_stop"}', "message_stop"),
]
WIRES = {
    "openai": ("openai_chat", OPENAI_REPLY, OPENAI_EVENTS),
    "openai_compatible": ("openai_chat", OPENAI_REPLY, OPENAI_EVENTS),
    "ollama": ("openai_chat", OPENAI_REPLY, OPENAI_EVENTS),
    "byoe": ("openai_chat", OPENAI_REPLY, OPENAI_EVENTS),
    "anthropic": ("anthropic_messages", ANTHROPIC_REPLY, ANTHROPIC_EVENTS),
}
USAGE = Usage(input_tokens=9, output_tokens=4)


def config(kind: str, url: str) -> dict[str, str]:
    named = {"ollama": {"local_runtime_base_url": url}, "anthropic": {"base_url": url}}
    return named.get(kind, {"base_url": url + "/v1"})


def streaming(events: list[bytes]):
    async def behave(connection: Connection) -> None:
        await connection.begin_stream()
        for event in events:
            await connection.chunk(event)
        await connection.end_stream()

    return behave


def answering(body: bytes, status: int = 200, more: str = ""):
    async def behave(connection: Connection) -> None:
        await connection.answer(body, status=status, more=more)

    return behave


@pytest.mark.parametrize("dialect", CHAT)
@pytest.mark.parametrize("kind", WIRES)
async def test_any_dialect_reaches_any_kind(ask, dialect, kind):
    wire, body, _ = WIRES[kind]
    async with upstream(answering(body)) as server:
        reply = await ask(call(dialect), candidate(kind, **config(kind, server.url)))
    assert reply.usage == USAGE
    assert reply.headers["content-type"] == "application/json"
    if wire == dialect:
        assert reply.body == body
    else:
        shown = msgspec.json.decode(reply.body)
        said = (
            shown["content"][0]["text"]
            if dialect == "anthropic_messages"
            else shown["choices"][0]["message"]["content"]
        )
        assert (shown["model"], said) == ("m-1", "Hi ä")


@pytest.mark.parametrize("dialect", CHAT)
@pytest.mark.parametrize("kind", WIRES)
async def test_any_dialect_streams_from_any_kind(ask, dialect, kind):
    wire, _, events = WIRES[kind]
    async with upstream(streaming(events)) as server:
        reply = await ask(call(dialect, stream=True), candidate(kind, **config(kind, server.url)))
        got = await everything(reply)
        await reply.close()
    assert reply.usage == USAGE
    assert "Hi ä" in got.decode()
    if wire == dialect:
        # All but the usage that only the gateway asked for.
        assert got == b"".join(event for event in events if b'"choices":[],' not in event)
    assert got.endswith(b"data: [DONE]\n\n" if dialect == "openai_chat" else b'{"type":"message_stop"}\n\n')


@pytest.mark.parametrize("dialect", CHAT)
@pytest.mark.parametrize("kind", ["openai_compatible", "anthropic"])
@pytest.mark.parametrize("crlf", [False, True])
def test_split_at_every_byte_a_stream_says_the_same(monkeypatch, dialect, kind, crlf):
    monkeypatch.setattr("time.time", lambda: 1.0)
    wire, _, events = WIRES[kind]
    whole = b"".join(events).replace(b"\n", b"\r\n") if crlf else b"".join(events)
    wanted = call(dialect, stream=True)

    def through(parts: list[bytes]) -> tuple[bytes, Usage | None]:
        client, spoken = DIALECTS[dialect], DIALECTS[wire]
        writer = client.stream_writer(wanted)
        stream = (
            Passing(client.forward(wanted, "m")[1]) if client is spoken else Converting(spoken.stream_reader(), writer)
        )
        out = b"".join(map(stream.push, parts)) + stream.end()
        return out, stream.usage

    once = through([whole])
    assert once[1] == USAGE
    for cut in range(1, len(whole)):
        assert through([whole[:cut], whole[cut:]]) == once
    assert through([whole[at : at + 1] for at in range(len(whole))]) == once


async def test_the_request_carries_key_model_and_unknown_fields(ask):
    async with upstream(answering(OPENAI_REPLY)) as server:
        await ask(call(x_new=[1]), candidate("openai_compatible", "org/model:7b", base_url=server.url + "/v1/"))
        sent = server.requests[0]
    assert sent.head.startswith("POST /v1/chat/completions ")
    assert sent.headers["authorization"] == "Bearer sk-very-secret-key"
    assert sent.headers["content-type"] == "application/json"
    body = msgspec.json.decode(sent.body)
    assert (body["model"], body["x_new"]) == ("org/model:7b", [1])


async def test_anthropic_gets_its_own_headers_and_path(ask):
    async with upstream(answering(ANTHROPIC_REPLY)) as server:
        await ask(call(), candidate("anthropic", base_url=server.url + "/v1"))
        sent = server.requests[0]
    assert sent.head.startswith("POST /v1/messages ")
    assert (sent.headers["x-api-key"], sent.headers["anthropic-version"]) == ("sk-very-secret-key", "2023-06-01")
    assert "authorization" not in sent.headers


async def test_byoe_speaks_the_format_it_is_given(ask):
    async with upstream(answering(ANTHROPIC_REPLY)) as server:
        reply = await ask(call(), candidate("byoe", base_url=server.url, format="anthropic"), secret={})
        assert server.requests[0].head.startswith("POST /v1/messages ")
        assert "x-api-key" not in server.requests[0].headers
    assert b"Hi" in reply.body


async def test_a_local_runtime_is_called_without_a_key(ask):
    async with upstream(answering(OPENAI_REPLY)) as server:
        await ask(call(), candidate("ollama", local_runtime_base_url=server.url + "/"), secret={})
        assert server.requests[0].head.startswith("POST /v1/chat/completions ")
        assert "authorization" not in server.requests[0].headers


async def test_openai_gets_the_newer_name_of_the_limit_after_a_conversion(ask):
    async with upstream(answering(OPENAI_REPLY)) as server:
        await ask(call("anthropic_messages"), candidate("openai", base_url=server.url + "/v1"))
        body = msgspec.json.decode(server.requests[0].body)
    assert body["max_completion_tokens"] == 500
    assert "max_tokens" not in body


async def test_embeddings_pass_where_the_kind_has_them(ask):
    body = b'{"object":"list","data":[{"embedding":[0.1]}],"usage":{"prompt_tokens":3,"total_tokens":3}}'
    async with upstream(answering(body)) as server:
        reply = await ask(call("openai_embeddings"), candidate("openai", base_url=server.url + "/v1"))
        assert server.requests[0].head.startswith("POST /v1/embeddings ")
    assert (reply.body, reply.usage) == (body, Usage(input_tokens=3))


async def test_embeddings_are_a_clear_error_where_there_are_none(ask):
    with pytest.raises(ProviderFailed) as failed:
        await ask(call("openai_embeddings"), candidate("anthropic"))
    assert (failed.value.client_error.status, failed.value.client_error.code) == (400, "embeddings_not_supported")


@pytest.mark.parametrize(
    ("kind", "settings"),
    [("byoe", {}), ("ollama", {}), ("openai_compatible", {}), ("byoe", {"format": "soap"}), ("no-such-kind", {})],
)
async def test_a_provider_without_its_settings_is_passed_over(ask, kind, settings):
    with pytest.raises(ProviderFailed) as failed:
        await ask(call(), candidate(kind, **settings))
    assert (failed.value.reason, failed.value.move_on) == ("not_configured", True)


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
        (404, "refused", "client_error"),
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
        assert error.client_error.status in {400, 404, 413}


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
async def test_what_a_client_reads_of_a_refusal_is_clean(ask, body, leaf, text):
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


async def test_nobody_there_and_nobody_answering(ask):
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
async def test_a_stream_that_breaks_gives_what_came_and_then_fails(ask, dialect, kind, end):
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


async def test_closing_a_stream_cancels_the_call_upstream(ask):
    async def behave(connection: Connection) -> None:
        await connection.begin_stream()
        await connection.chunk(OPENAI_EVENTS[1])
        await connection.reader.read()
        raise ConnectionError

    async with upstream(behave) as server:
        reply = await ask(call(stream=True), candidate("openai", base_url=server.url))
        async for _ in reply.events:
            break
        await reply.close()
        await asyncio.wait_for(server.closed_by_client.wait(), 1)
        sent = len(server.requests[0].body)
    # Nothing was told yet, and yet the provider bills: an estimate, marked as one.
    assert reply.usage_estimated
    assert reply.usage == Usage(input_tokens=sent // 4, output_tokens=1)


async def test_what_was_told_before_a_stream_is_left_counts(ask):
    async def behave(connection: Connection) -> None:
        await connection.begin_stream()
        await connection.chunk(b"".join(ANTHROPIC_EVENTS[:4]))
        await connection.reader.read()
        raise ConnectionError

    async with upstream(behave) as server:
        reply = await ask(call("anthropic_messages", stream=True), candidate("anthropic", base_url=server.url))
        async for _ in reply.events:
            break
        await reply.close()
    assert reply.usage == Usage(input_tokens=9, output_tokens=4)


async def test_a_clients_beta_header_reaches_a_provider_of_its_dialect_and_nothing_else_does(ask):
    body = msgspec.json.encode({**call("anthropic_messages").body})
    headers = {"anthropic-beta": "new-thing", "x-api-key": "the client's", "authorization": "Bearer the client's"}
    asked = DIALECTS["anthropic_messages"].decode(body, headers)
    async with upstream(answering(ANTHROPIC_REPLY)) as server:
        await ask(asked, candidate("anthropic", base_url=server.url))
        sent = server.requests[0].headers
    assert (sent["anthropic-beta"], sent["x-api-key"]) == ("new-thing", "sk-very-secret-key")
    assert "authorization" not in sent
    async with upstream(answering(OPENAI_REPLY)) as server:
        await ask(asked, candidate("openai", base_url=server.url))
        assert "anthropic-beta" not in server.requests[0].headers


async def test_cancelling_the_wait_for_an_answer_cancels_the_call_upstream(ask):
    async def behave(connection: Connection) -> None:
        await connection.reader.read()
        raise ConnectionError

    async with upstream(behave) as server:
        waiting = asyncio.ensure_future(ask(call(), candidate("openai", base_url=server.url)))
        while not server.requests:
            await asyncio.sleep(0.01)
        waiting.cancel()
        await asyncio.wait_for(server.closed_by_client.wait(), 1)


async def test_a_server_that_keeps_talking_after_the_end_holds_nobody_up(ask):
    async def behave(connection: Connection) -> None:
        await connection.begin_stream()
        await connection.chunk(b"".join(OPENAI_EVENTS))
        await asyncio.sleep(5)

    async with upstream(behave) as server:
        reply = await ask(call(stream=True), candidate("openai", base_url=server.url))
        async with asyncio.timeout(2):
            got = await everything(reply)
        await reply.close()
    assert got.endswith(b"[DONE]\n\n")


async def test_streams_use_their_connection_again(ask):
    async with upstream(streaming(OPENAI_EVENTS)) as server:
        for _ in range(3):
            reply = await ask(call(stream=True), candidate("openai", base_url=server.url))
            await everything(reply)
            await reply.close()
        assert server.connections == 1


@pytest.mark.parametrize(
    ("kind", "body", "wanted"),
    [
        ("openai", b'{"data":[{"id":"a"},{"id":"b","context_length":9}]}', [("a", None), ("b", 9)]),
        ("anthropic", b'{"data":[{"id":"c","display_name":"C","max_input_tokens":9}]}', [("c", 9)]),
    ],
)
async def test_models_are_listed(outbound, kind, body, wanted):
    async with upstream(answering(body)) as server:
        record = ProviderRecord(id="p", name="P", kind=kind, config=ProviderConfig(base_url=server.url))
        found = await KINDS[kind].list_models(outbound, record, {"api_key": "k"})
        assert server.requests[0].head.split()[0] == "GET"
    assert [(model.model_id, model.context_window) for model in found] == wanted


@pytest.mark.parametrize(("status", "body", "reason"), [(401, b"", "unauthorized"), (200, b"<html>", "bad_reply")])
async def test_a_list_that_cannot_be_had_is_a_failure(outbound, status, body, reason):
    async with upstream(answering(body, status)) as server:
        record = ProviderRecord(id="p", name="P", kind="openai", config=ProviderConfig(base_url=server.url))
        with pytest.raises(ProviderFailed, match=reason):
            await KINDS["openai"].list_models(outbound, record, {})
