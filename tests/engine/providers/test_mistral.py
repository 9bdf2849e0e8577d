"""Mistral, checked with Mistral's own library."""

import msgspec
import pytest
from mistralai.client import Mistral
from tests.engine.providers.conftest import call, candidate, everything
from tests.engine.providers.wires import answering
from tests.support.upstream import upstream
from tests.support.vendors.mistral import KEY, mistral

from gatehouse.engine.conversation.usage import Usage
from gatehouse.engine.providers import KINDS, ProviderFailed
from gatehouse.engine.providers.mistral.request import short_id
from gatehouse.policy.catalog import ProviderConfig, ProviderRecord

SECRET = {"api_key": KEY}
REPORTED_USAGE = Usage(input_tokens=20, cached_tokens=10, output_tokens=7)
TOOLS = {
    "openai_chat": [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}],
    "anthropic_messages": [{"name": "weather", "input_schema": {"type": "object"}}],
}
CHAT = list(TOOLS)


def messages_of(words: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": words}]


def place(url: str, model: str = "mistral-large-latest"):
    return candidate("mistral", model, base_url=url + "/v1")


@pytest.fixture
async def server():
    async with mistral() as local:
        yield local


async def test_the_library_reads_the_answers_of_the_fake_mistral(server):
    async with Mistral(api_key=KEY, server_url=server.url) as client:
        answer = await client.chat.complete_async(model="m", messages=messages_of("think"))
        assert [chunk.type for chunk in answer.choices[0].message.content] == ["thinking", "text"]
        stream = await client.chat.stream_async(model="m", messages=messages_of("use tools"))
        chunks = [event.data async for event in stream]
        assert [call.id for call in chunks[-1].choices[0].delta.tool_calls] == ["abcdefghi", "jklmnopqr"]
        assert chunks[-1].usage.prompt_tokens == 30
        vectors = await client.embeddings.create_async(model="mistral-embed", inputs=["a"])
        assert len(vectors.data) == 1
        assert {model.id for model in (await client.models.list_async()).data} == {
            "mistral-large-latest",
            "mistral-embed",
        }


@pytest.mark.parametrize("dialect", CHAT)
@pytest.mark.parametrize("words", ["hi", "think"])
async def test_an_answer_with_its_thoughts(ask, server, dialect, words):
    reply = await ask(call(dialect, messages=messages_of(words), input=None), place(server.url), secret=SECRET)
    assert "Bonjour à tous" in reply.body.decode()
    # A client of messages that requests no thinking takes the first block for the answer.
    assert ("secret thought" in reply.body.decode()) is (words == "think" and dialect == "openai_chat")
    assert reply.usage()[0] == REPORTED_USAGE


@pytest.mark.parametrize("dialect", CHAT)
@pytest.mark.parametrize("words", ["hi", "think"])
async def test_a_stream_with_its_thoughts(ask, server, dialect, words):
    request = call(dialect, messages=messages_of(words), stream=True, stream_options={"include_usage": True})
    reply = await ask(request, place(server.url), secret=SECRET)
    got = (await everything(reply)).decode()
    assert "Bonjour" in got
    assert ("secret thought" in got) is (words == "think" and dialect == "openai_chat")
    assert reply.usage() == (REPORTED_USAGE, False)


@pytest.mark.parametrize("dialect", CHAT)
@pytest.mark.parametrize("stream", [False, True])
async def test_parallel_tool_calls(ask, server, dialect, stream):
    request = call(dialect, messages=messages_of("use tools"), tools=TOOLS[dialect], stream=stream)
    reply = await ask(request, place(server.url), secret=SECRET)
    text = (await everything(reply) if stream else reply.body).decode()
    for expected in ("abcdefghi", "jklmnopqr", "Oslo", "Bergen"):
        assert expected in text
    if stream and dialect == "openai_chat":
        assert '"index":1' in text


async def test_a_conversation_of_another_provider_is_continued(ask, server):
    calls = [
        {"id": "call_QvRx7", "type": "function", "function": {"name": "weather", "arguments": '{"place": "Oslo"}'}},
        {"id": "abcdefghi", "type": "function", "function": {"name": "weather", "arguments": ""}},
    ]
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk=", "detail": "low"}}
    messages = [
        {"role": "developer", "content": "Be kind."},
        {"role": "user", "content": [{"type": "text", "text": "What is this?"}, image]},
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "call_QvRx7", "content": "Rain"},
        {"role": "tool", "tool_call_id": "abcdefghi", "content": "Sun"},
        {"role": "assistant", "content": "It is"},
    ]
    changes = {
        "messages": messages,
        "tools": TOOLS["openai_chat"],
        "tool_choice": "required",
        "parallel_tool_calls": False,
        "max_tokens": None,
        "max_completion_tokens": 5,
        "temperature": 2,
        "seed": 7,
        "stop": ["x"],
        "user": "somebody",
        "n": 1,
        "logit_bias": {},
        "safe_prompt": True,
        "reasoning_effort": "low",
        "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}},
    }
    await ask(call(**changes), place(server.url), secret=SECRET)
    body = msgspec.json.decode(server.requests[0].body)
    system, user, assistant, first, second, prefix = body.pop("messages")
    assert system == {"role": "system", "content": "Be kind."}
    assert user["content"][1] == {"type": "image_url", "image_url": "data:image/png;base64,aGk="}
    made_up = short_id("call_QvRx7")
    assert [call["id"] for call in assistant["tool_calls"]] == [made_up, "abcdefghi"]
    assert assistant["tool_calls"][1]["function"]["arguments"] == "{}"
    assert [first["tool_call_id"], second["tool_call_id"]] == [made_up, "abcdefghi"]
    assert prefix == {"role": "assistant", "content": "It is", "prefix": True}
    assert body.pop("tools")[0]["function"]["parameters"] == {"type": "object"}
    assert body.pop("response_format")["json_schema"]["schema"] == {"type": "object"}
    assert body == {
        "model": "mistral-large-latest",
        "max_tokens": 5,
        "temperature": 1.5,
        "random_seed": 7,
        "stop": ["x"],
        "tool_choice": "any",
        "parallel_tool_calls": False,
        "safe_prompt": True,
        "reasoning_effort": "low",
    }


@pytest.mark.parametrize("dialect", CHAT)
async def test_a_user_may_go_on_after_a_tools_result(ask, server, dialect):
    """Mistral requires an assistant message between a tool's result and a user's message, so one is inserted."""
    if dialect == "openai_chat":
        tool = {"id": "abcdefghi", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
        turns = [
            {"role": "assistant", "content": None, "tool_calls": [tool]},
            {"role": "tool", "tool_call_id": "abcdefghi", "content": "Sun"},
            {"role": "user", "content": "And tomorrow?"},
        ]
    else:
        result = {"type": "tool_result", "tool_use_id": "abcdefghi", "content": "Sun"}
        turns = [
            {"role": "assistant", "content": [{"type": "tool_use", "id": "abcdefghi", "name": "weather", "input": {}}]},
            {"role": "user", "content": [result, {"type": "text", "text": "And tomorrow?"}]},
        ]
    request = call(dialect, messages=[*messages_of("Weather?"), *turns], tools=TOOLS[dialect])
    reply = await ask(request, place(server.url), secret=SECRET)
    assert b"Bonjour" in reply.body
    sent = msgspec.json.decode(server.requests[0].body)["messages"]
    assert [sent_request["role"] for sent_request in sent] == ["user", "assistant", "tool", "assistant", "user"]


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ("auto", "auto"),
        ("none", "none"),
        ("required", "any"),
        ({"type": "function", "function": {"name": "weather"}}, {"type": "function", "function": {"name": "weather"}}),
    ],
)
async def test_the_choice_of_tools(ask, server, choice, sent):
    request = call(tools=[{"type": "function", "function": {"name": "weather"}}], tool_choice=choice)
    await ask(request, place(server.url), secret=SECRET)
    body = msgspec.json.decode(server.requests[0].body)
    assert body["tool_choice"] == sent
    assert body["tools"][0]["function"]["parameters"] == {"type": "object", "properties": {}}


def test_ids_are_nine_letters_and_digits_and_stay_apart():
    ids = [short_id(f"call_{number}") for number in range(2000)]
    assert all(len(id_) == 9 and id_.isalnum() and id_.isascii() for id_ in ids)
    assert len(set(ids)) == 2000
    assert short_id("") == short_id("")


@pytest.mark.parametrize(
    ("model", "secret", "changes", "reason", "status"),
    [
        ("m", {"api_key": "wrong"}, {}, "unauthorized", 401),
        ("m", SECRET, {"messages": messages_of("be busy")}, "rate_limited", 429),
        ("m", SECRET, {"messages": messages_of("break down")}, "bad_reply", 200),
    ],
)
async def test_failures(ask, server, model, secret, changes, reason, status):
    with pytest.raises(ProviderFailed) as failed:
        await ask(call(**changes), place(server.url, model), secret=secret)
    assert (failed.value.reason, failed.value.status) == (reason, status)
    assert failed.value.retry_after == (3 if status == 429 else None)


async def test_a_stream_that_breaks_down_is_no_answer(ask, server):
    reply = await ask(call(messages=messages_of("break down"), stream=True), place(server.url), secret=SECRET)
    with pytest.raises(ProviderFailed) as failed:
        await everything(reply)
    assert failed.value.reason == "stream_error"


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (b'{"object":"error","message":"Bad order","type":"x","code":"3230"}', "Bad order"),
        (b'{"message":{"detail":[{"loc":["body","n"],"msg":"Too many","input":"4111"}]}}', "n: Too many"),
        (b'{"detail":[{"loc":["body","messages",0],"msg":"Missing"}]}', "messages.0: Missing"),
        (b'{"detail":"No such model"}', "No such model"),
        (b"<html>", "The provider does not accept this request."),
    ],
)
def test_the_message_of_an_error(body, shown):
    failed = KINDS["mistral"].failure(400, {}, body, ())
    assert failed.client_error.text == shown


def test_a_prompt_that_is_too_long():
    text = b'{"message":"Prompt contains 34110 tokens, too large for model with 32768 maximum context length"}'
    assert KINDS["mistral"].failure(400, {}, text, ()).client_error.code == "context_length_exceeded"


@pytest.mark.parametrize("encoding", [None, "float", "base64"])
async def test_embeddings(ask, server, encoding):
    request = call("openai_embeddings", input=["a", "b"], encoding_format=encoding, dimensions=2, user="u")
    reply = await ask(request, place(server.url, "mistral-embed"), secret=SECRET)
    body = msgspec.json.decode(server.requests[0].body)
    assert body == {"model": "mistral-embed", "input": ["a", "b"], "output_dimension": 2}
    vectors = [item["embedding"] for item in msgspec.json.decode(reply.body)["data"]]
    assert vectors == ["zczMPc3MTD4="] * 2 if encoding == "base64" else [[0.1, 0.2]] * 2
    assert reply.usage()[0] == Usage(input_tokens=3)


async def test_what_the_list_does_not_say_about_a_model_is_unknown(outbound):
    listed = b'{"data": [{"id": "a"}, {"id": "b", "capabilities": {}}, {"id": "c", "capabilities": {"vision": false}}]}'
    async with upstream(answering(listed)) as server:
        config = ProviderConfig(base_url=server.url + "/v1")
        record = ProviderRecord(id="p", name="P", kind="mistral", config=config)
        models = await KINDS["mistral"].list_models(outbound, record, SECRET)
    capabilities = [(item.supports_vision, item.supports_streaming) for item in models]
    assert capabilities == [(None, None), (None, None), (False, None)]


async def test_models_are_found(outbound, server):
    config = ProviderConfig(base_url=server.url + "/v1")
    record = ProviderRecord(id="p", name="P", kind="mistral", config=config)
    models = await KINDS["mistral"].list_models(outbound, record, SECRET)
    assert [(item.model_id, item.context_window, item.supports_vision) for item in models] == [
        ("mistral-large-latest", 131072, True),
        ("mistral-embed", 8192, None),
    ]
