"""The provider receives the client's own bytes, unless a stage has changed the body."""

import json
from collections.abc import Callable

import msgspec
import pytest
from tests.engine.providers.conftest import candidate, everything
from tests.engine.providers.wires import ANTHROPIC_REPLY, OPENAI_EVENTS, OPENAI_REPLY, answering, streaming
from tests.support.upstream import upstream

from gatehouse.engine.conversation.call import ModelCall
from gatehouse.engine.conversation.dialects import DIALECTS

#: A body with spaces and escapes that no encoder of Gatehouse writes.
UNUSUAL = rb""" { "model" : "m-1",
  "messages": [{"role": "user", "content": "a \"model\": \u00e9 \/ \\"}, {"role": "user", "content": "\ud83d\ude00"}],
  "max_tokens" : 50, "seed": 123456789012345678901234567890, "temperature": 0.1, "x_new": [1.0, {"role": 1}] } """
VECTORS = b'{"input" : "hello",\t"model": "m-1"}'


async def sent(
    ask, call: ModelCall, kind: str = "openai_compatible", reply: bytes = OPENAI_REPLY, output_limit: int | None = None
) -> bytes:
    async with upstream(streaming(OPENAI_EVENTS) if call.stream else answering(reply)) as server:
        answer = await ask(call, candidate(kind, "m-1", base_url=server.url + "/v1"), output_limit=output_limit)
        await answer.close()
        return server.requests[0].body


def decode(body: bytes, dialect: str = "openai_chat") -> ModelCall:
    return DIALECTS[dialect].decode(body)


@pytest.mark.parametrize(
    ("dialect", "kind", "body", "reply"),
    [
        ("openai_chat", "openai_compatible", UNUSUAL, OPENAI_REPLY),
        ("openai_chat", "openai", UNUSUAL, OPENAI_REPLY),
        ("openai_chat", "byoe", UNUSUAL, OPENAI_REPLY),
        ("anthropic_messages", "anthropic", UNUSUAL, ANTHROPIC_REPLY),
        ("openai_embeddings", "openai", VECTORS, b'{"data":[{"embedding":[0.1]}]}'),
    ],
)
async def test_an_unchanged_body_is_sent_byte_for_byte(ask, dialect, kind, body, reply):
    assert await sent(ask, decode(body, dialect), kind, reply) == body


async def test_a_stream_with_usage_is_passed_unchanged(ask):
    body = UNUSUAL.replace(b"{", b'{"stream":true,  "stream_options":{"include_usage":true},', 1)
    assert await sent(ask, decode(body)) == body


def redacted(call: ModelCall) -> None:
    call.body["messages"][0]["content"] = "[EMAIL_1]"


def instructed(call: ModelCall) -> None:
    DIALECTS[call.dialect].prepend_instructions(call.body, "Be brief.")


def deep(call: ModelCall) -> None:
    call.body["x_new"][1]["role"] = 2


def removed(call: ModelCall) -> None:
    del call.body["x_new"]


def limited(call: ModelCall) -> None:
    del call.body["max_tokens"]


@pytest.mark.parametrize("change", [redacted, instructed, deep, removed, limited])
async def test_a_change_of_the_body_in_place_is_detected(ask, change: Callable[[ModelCall], None]):
    call = decode(UNUSUAL)
    change(call)
    body = await sent(ask, call, output_limit=7 if change is limited else None)
    expected = {**call.body, "max_tokens": 7} if change is limited else call.body
    assert msgspec.json.decode(body) == expected
    assert b"  " not in body


@pytest.mark.parametrize(
    ("client_body", "sent_body"),
    [
        (b'{"model":"p/m-1",  "messages":[{"role":"user"}]}', {"model": "m-1", "messages": [{"role": "user"}]}),
        (
            b'{"model":"m-1",  "messages":[{"role":"user"}], "fallbacks":["o"]}',
            {"model": "m-1", "messages": [{"role": "user"}]},
        ),
        (
            b'{"model":"m-1",  "messages":[{"role":"user"}], "stream":true}',
            {"model": "m-1", "messages": [{"role": "user"}], "stream": True, "stream_options": {"include_usage": True}},
        ),
    ],
)
async def test_a_changed_body_is_encoded_again(ask, client_body, sent_body):
    body = await sent(ask, decode(client_body))
    assert msgspec.json.decode(body) == sent_body
    assert b"  " not in body


@pytest.mark.parametrize(
    "number",
    [b"0.50000000000000000000000004111111111111111", b"4111111111111111111.0", b"5e-1", b"0.50", b"1E+2", b"-0"],
)
async def test_a_number_keeps_its_spelling(ask, number):
    body = UNUSUAL.replace(b'"temperature": 0.1', b'"temperature": %b, "x_deep": [{"a": %b}]' % (number, number))
    assert await sent(ask, decode(body)) == body


async def test_a_large_body_is_sent_unchanged(ask):
    body = UNUSUAL.replace(b'"x_new":', b'"x_long": [' + b"0.50, " * 100_000 + b'2], "x_new":')
    assert await sent(ask, decode(body)) == body


@pytest.mark.parametrize("stream", [False, True])
async def test_spaces_and_escapes_are_not_paid_for(ask, stream):
    """The provider reports no usage. The estimate of the usage depends only on the text, like the reservation."""
    body = {"model": "m-1", "stream": stream, "messages": [{"role": "user", "content": "\u0434\u043e\u043c " * 500}]}
    if stream:
        body["stream_options"] = {"include_usage": True}
    plain = msgspec.json.encode(body)
    answer = streaming([b'data: {"id":"x","choices":[{"index":0,"delta":{"content":"a"}}]}\n\n', b"data: [DONE]\n\n"])
    for spelled in (plain, json.dumps(body, indent=8).encode()):
        async with upstream(answer if stream else answering(b'{"choices":[]}')) as server:
            reply = await ask(decode(spelled), candidate("openai_compatible", "m-1", base_url=server.url))
            if stream:
                await everything(reply)
            assert server.requests[0].body == spelled
        assert reply.usage()[1]
        assert reply.usage()[0].input_tokens == len(plain) // 4
