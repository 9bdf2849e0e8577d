"""Every kind of provider over a real socket: the request, the answer, and the end of the call if a client leaves."""

import asyncio
import base64

import msgspec
import pytest
from tests.engine.providers.conftest import call, candidate, everything
from tests.engine.providers.wires import (
    ANTHROPIC_EVENTS,
    ANTHROPIC_REPLY,
    CHAT,
    OPENAI_EVENTS,
    OPENAI_REPLY,
    USAGE,
    WIRES,
    answering,
    config,
    streaming,
)
from tests.support.upstream import Connection, upstream

from gatehouse.engine.conversation.dialects import DIALECTS
from gatehouse.engine.conversation.usage import Usage
from gatehouse.engine.providers import KINDS, ProviderFailed
from gatehouse.engine.providers.streams import Converting, Passing
from gatehouse.policy.catalog import ProviderConfig, ProviderRecord


@pytest.mark.parametrize("dialect", CHAT)
@pytest.mark.parametrize("kind", WIRES)
async def test_any_dialect_reaches_any_kind(ask, dialect, kind):
    wire, body, _ = WIRES[kind]
    async with upstream(answering(body)) as server:
        reply = await ask(call(dialect), candidate(kind, **config(kind, server.url)))
    assert reply.usage()[0] == USAGE
    assert reply.headers["content-type"] == "application/json"
    if wire == dialect:
        assert reply.body == body.replace(b'"model":"m-1"', b'"model":"p/the-model"')
    else:
        shown = msgspec.json.decode(reply.body)
        text = (
            shown["content"][0]["text"]
            if dialect == "anthropic_messages"
            else shown["choices"][0]["message"]["content"]
        )
        assert (shown["model"], text) == ("p/the-model", "Hi ä")


@pytest.mark.parametrize("dialect", CHAT)
@pytest.mark.parametrize("kind", WIRES)
async def test_any_dialect_streams_from_any_kind(ask, dialect, kind):
    wire, _, events = WIRES[kind]
    async with upstream(streaming(events)) as server:
        reply = await ask(call(dialect, stream=True), candidate(kind, **config(kind, server.url)))
        got = await everything(reply)
        await reply.close()
    assert reply.usage()[0] == USAGE
    assert "Hi ä" in got.decode()
    if wire == dialect:
        # Usage that only the gateway requested, and comments before the first event, are not passed on.
        own = b'"choices":[],'
        passing = b"".join(event for event in events if own not in event and not event.startswith(b":"))
        assert got == passing.replace(b'"model":"m-1"', b'"model":"p/the-model"')
    assert got.endswith(b"data: [DONE]\n\n" if dialect == "openai_chat" else b'{"type":"message_stop"}\n\n')


@pytest.mark.parametrize("dialect", CHAT)
@pytest.mark.parametrize("kind", ["openai_compatible", "anthropic"])
@pytest.mark.parametrize("crlf", [False, True])
def test_a_stream_gives_the_same_result_however_it_is_split(monkeypatch, dialect, kind, crlf):
    monkeypatch.setattr("time.time", lambda: 1.0)
    wire, _, events = WIRES[kind]
    whole = b"".join(events).replace(b"\n", b"\r\n") if crlf else b"".join(events)
    expected = call(dialect, stream=True)

    def through(parts: list[bytes]) -> tuple[bytes, Usage | None]:
        client, spoken = DIALECTS[dialect], DIALECTS[wire]
        writer = client.stream_writer(expected)
        stream = Passing(client.tap(expected, "m")) if client is spoken else Converting(spoken.stream_reader(), writer)
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


async def test_byoe_uses_the_configured_format(ask):
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
    assert (reply.body, reply.usage()[0]) == (body, Usage(input_tokens=3))


async def test_embeddings_are_a_clear_error_if_unsupported(ask):
    with pytest.raises(ProviderFailed) as failed:
        await ask(call("openai_embeddings"), candidate("anthropic"))
    assert (failed.value.client_error.status, failed.value.client_error.code) == (400, "embeddings_not_supported")


@pytest.mark.parametrize(
    ("kind", "settings"),
    [("byoe", {}), ("ollama", {}), ("openai_compatible", {}), ("byoe", {"format": "soap"}), ("no-such-kind", {})],
)
async def test_a_provider_without_its_settings_is_skipped(ask, kind, settings):
    with pytest.raises(ProviderFailed) as failed:
        await ask(call(), candidate(kind, **settings))
    assert (failed.value.reason, failed.value.move_on) == ("not_configured", True)


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
    # The provider has not reported any usage, but bills the call. So the usage is estimated and marked as estimated.
    assert reply.usage()[1]
    assert reply.usage()[0] == Usage(input_tokens=sent // 4, output_tokens=1)


async def test_usage_before_an_aborted_stream_counts(ask):
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
    assert reply.usage()[0] == Usage(input_tokens=9, output_tokens=4)


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
@pytest.mark.parametrize("dialect", CHAT)
async def test_the_usage_of_a_stream_is_known_with_its_last_event(ask, kind, dialect):
    wire, _, events = WIRES[kind]
    # There are more events than tokens. The reported usage counts, and not the number of events.
    pings = [b"data: " + events[1][events[1].index(b"{") :]] * 9 if wire == "openai_chat" else [events[1]] * 9
    async with upstream(streaming([b"".join([*events[:-3], *pings, *events[-3:]])])) as server:
        reply = await ask(call(dialect, stream=True), candidate(kind, **config(kind, server.url)))
        async for _ in reply.events:
            if reply.finished:
                assert reply.usage() == (USAGE, False)
        await reply.close()


async def test_a_stream_without_usage_has_an_estimate(ask):
    silent = [event for event in OPENAI_EVENTS if b"usage" not in event]
    async with upstream(streaming(silent)) as server:
        reply = await ask(call(stream=True), candidate("openai", base_url=server.url + "/v1"))
        await everything(reply)
        sent = len(server.requests[0].body)
    assert reply.usage()[1]
    assert reply.usage()[0] == Usage(input_tokens=sent // 4, output_tokens=len(silent))


@pytest.mark.parametrize(
    "usage", [b"", b',"usage":null', b',"usage":{}', b',"usage":{"prompt_tokens":0,"completion_tokens":0}']
)
@pytest.mark.parametrize("dialect", [*CHAT, "openai_responses"])
async def test_an_answer_without_usage_has_an_estimate(ask, dialect, usage):
    text = "twelve words " * 40
    message = {"role": "assistant", "content": text}
    body = msgspec.json.encode({"id": "x", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
    async with upstream(answering(body[:-1] + usage + b"}")) as server:
        reply = await ask(call(dialect), candidate("openai_compatible", base_url=server.url + "/v1"))
        sent = len(server.requests[0].body)
    assert reply.usage()[1]
    assert reply.usage()[0].input_tokens == sent // 4
    assert 0 <= reply.usage()[0].output_tokens - len(text) // 4 < 30


async def test_embeddings_without_usage_are_charged_by_their_input(ask):
    body = b'{"object":"list","data":[{"embedding":[0.1]}]}'
    async with upstream(answering(body)) as server:
        place = candidate("openai_compatible", base_url=server.url + "/v1")
        reply = await ask(call("openai_embeddings", input="many words " * 40), place)
        sent = len(server.requests[0].body)
    assert reply.usage()[0] == Usage(input_tokens=sent // 4)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_picture_is_not_estimated_as_if_it_were_text(ask, stream):
    picture = base64.b64encode(bytes(range(256)) * 1000).decode()
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{picture}"}}
    text = (
        streaming([event for event in OPENAI_EVENTS if b"usage" not in event])
        if stream
        else answering(b'{"choices":[]}')
    )
    async with upstream(text) as server:
        request = call(messages=[{"role": "user", "content": [image]}], stream=stream)
        reply = await ask(request, candidate("openai", base_url=server.url + "/v1"))
        if stream:
            await everything(reply)
    assert 1000 <= reply.usage()[0].input_tokens < 1200


async def test_a_clients_beta_header_reaches_a_provider_of_its_dialect_and_nothing_else_does(ask):
    body = msgspec.json.encode({**call("anthropic_messages").body})
    headers = {"anthropic-beta": "new-thing", "x-api-key": "the client's", "authorization": "Bearer the client's"}
    request = DIALECTS["anthropic_messages"].decode(body, headers)
    async with upstream(answering(ANTHROPIC_REPLY)) as server:
        await ask(request, candidate("anthropic", base_url=server.url))
        sent = server.requests[0].headers
    assert (sent["anthropic-beta"], sent["x-api-key"]) == ("new-thing", "sk-very-secret-key")
    assert "authorization" not in sent
    async with upstream(answering(OPENAI_REPLY)) as server:
        await ask(request, candidate("openai", base_url=server.url))
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


async def test_data_after_the_end_of_an_answer_delays_nobody(ask):
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
    ("kind", "body", "expected"),
    [
        ("openai", b'{"data":[{"id":"a"},{"id":"b","context_length":9}]}', [("a", None), ("b", 9)]),
        ("anthropic", b'{"data":[{"id":"c","display_name":"C","max_input_tokens":9}]}', [("c", 9)]),
    ],
)
async def test_models_are_listed(outbound, kind, body, expected):
    async with upstream(answering(body)) as server:
        record = ProviderRecord(id="p", name="P", kind=kind, config=ProviderConfig(base_url=server.url))
        models = await KINDS[kind].list_models(outbound, record, {"api_key": "k"})
        assert server.requests[0].head.split()[0] == "GET"
    assert [(model.model_id, model.context_window) for model in models] == expected


@pytest.mark.parametrize(("status", "body", "reason"), [(401, b"", "unauthorized"), (200, b"<html>", "bad_reply")])
async def test_a_list_that_cannot_be_read_is_a_failure(outbound, status, body, reason):
    async with upstream(answering(body, status)) as server:
        record = ProviderRecord(id="p", name="P", kind="openai", config=ProviderConfig(base_url=server.url))
        with pytest.raises(ProviderFailed, match=reason):
            await KINDS["openai"].list_models(outbound, record, {})
