import msgspec
import pytest
from tests.engine.providers.conftest import call, candidate, everything

from gatehouse.engine.conversation.errors import RefusedUpstream
from gatehouse.engine.conversation.usage import Usage
from gatehouse.engine.providers import KINDS, ProviderFailed
from gatehouse.engine.providers.sandbox.answering import answer
from gatehouse.policy.catalog import ProviderRecord

CHAT = ["openai_chat", "anthropic_messages"]
TOOLS = {
    "openai_chat": [
        {"type": "function", "function": {"name": "f", "parameters": {"required": ["x"], "properties": {}}}}
    ],
    "anthropic_messages": [{"name": "f", "input_schema": {"required": ["x"], "properties": {}}}],
}


@pytest.mark.parametrize("dialect", CHAT)
@pytest.mark.parametrize("stream", [False, True])
async def test_echo_returns_the_text_with_its_usage(ask, dialect, stream):
    reply = await ask(call(dialect, stream=stream), candidate("sandbox", "echo"))
    text = await everything(reply) if stream else reply.body
    assert b"hello" in text
    assert b"world" in text
    assert reply.usage()[0] == Usage(input_tokens=4, output_tokens=4)
    await reply.close()


async def test_the_same_request_gets_the_same_answer(ask):
    answers = [(await ask(call(), candidate("sandbox", "echo"))).body for _ in range(2)]
    assert answers[0] == answers[1]


@pytest.mark.parametrize("dialect", CHAT)
@pytest.mark.parametrize("stream", [False, True])
async def test_the_model_tools_calls_the_requested_tool(ask, dialect, stream):
    reply = await ask(call(dialect, stream=stream, tools=TOOLS[dialect]), candidate("sandbox", "tools"))
    text = await everything(reply) if stream else reply.body
    assert b'"f"' in text
    assert (b"tool_calls" if dialect == "openai_chat" else b"tool_use") in text


async def test_the_models_name_sets_the_usage(ask):
    reply = await ask(call(), candidate("sandbox", "tokens-1000-200"))
    assert reply.usage()[0] == Usage(input_tokens=1000, output_tokens=200)


async def test_the_models_name_sets_the_number_of_chunks(ask):
    reply = await ask(call(stream=True), candidate("sandbox", "stream-50"))
    assert (await everything(reply)).count(b"chunk-") == 50


async def test_a_limit_cuts_the_answer(ask):
    reply = await ask(call(max_tokens=1), candidate("sandbox", "echo"))
    choice = msgspec.json.decode(reply.body)["choices"][0]
    assert (choice["message"]["content"], choice["finish_reason"]) == ("hello", "length")


async def test_embeddings_are_unit_vectors_of_the_requested_length(ask):
    expected = call("openai_embeddings", input=["a", "b", "a"], dimensions=16)
    reply = await ask(expected, candidate("sandbox", "embed"))
    vectors = [item["embedding"] for item in msgspec.json.decode(reply.body)["data"]]
    assert vectors[0] == vectors[2] != vectors[1]
    assert all(abs(sum(value * value for value in vector) - 1) < 1e-9 for vector in vectors)
    assert reply.usage()[0] == Usage(input_tokens=3)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("dialect", CHAT)
@pytest.mark.parametrize(
    ("model", "reason", "status", "flag"),
    [
        ("garbage", "bad_reply", 200, "move_on"),
        ("status-500", "http_500", 500, "retryable"),
        ("status-503", "http_503", 503, "retryable"),
        ("status-429", "rate_limited", 429, "move_on"),
        ("status-401", "unauthorized", 401, "move_on"),
        ("status-400", "refused", 400, "client_error"),
        ("unknown", "model_not_found", 404, "move_on"),
    ],
)
async def test_a_failure_is_raised_before_the_answer_begins(ask, dialect, stream, model, reason, status, flag):
    with pytest.raises(ProviderFailed) as failed:
        await ask(call(dialect, stream=stream), candidate("sandbox", model))
    error = failed.value
    assert (error.reason, error.status) == (reason, status)
    assert [name for name in ("retryable", "move_on", "client_error") if getattr(error, name)] == [flag]


async def test_a_refused_request_has_the_providers_message(ask):
    with pytest.raises(ProviderFailed) as failed:
        await ask(call(), candidate("sandbox", "status-400"))
    assert isinstance(failed.value.client_error, RefusedUpstream)
    assert failed.value.client_error.text == "The sandbox answers 400 as asked."
    with pytest.raises(ProviderFailed) as failed:
        await ask(call(), candidate("sandbox", "nope"))
    assert failed.value.reason == "model_not_found"


@pytest.mark.parametrize("dialect", CHAT)
async def test_a_cut_stream_breaks_after_its_first_events(ask, dialect):
    reply = await ask(call(dialect, stream=True), candidate("sandbox", "cut"))
    got = b""
    with pytest.raises(ProviderFailed) as failed:
        async for block in reply.events:
            got += block
    assert failed.value.reason == "connection_closed"
    assert b"hello" in got


async def test_a_truncated_answer_is_a_failure_of_the_provider(ask):
    with pytest.raises(ProviderFailed, match="connection_closed"):
        await ask(call(), candidate("sandbox", "cut"))


async def test_a_slow_model_runs_into_the_providers_timeout(ask):
    with pytest.raises(ProviderFailed, match="timeout"):
        await ask(call(), candidate("sandbox", "slow-2000ms", timeout_ms=100))
    await ask(call(), candidate("sandbox", "slow-20ms", timeout_ms=2000))


async def test_the_models_are_listed():
    record = ProviderRecord(id="sandbox", name="Sandbox", kind="sandbox")
    models = await KINDS["sandbox"].list_models(None, record, {})
    assert {"echo", "embed", "tools"} <= {model.model_id for model in models}


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/v1/models", 200), ("GET", "/v1/nothing", 404), ("GET", "/v1/chat/completions", 404), ("POST", "/", 404)],
)
async def test_the_server_answers_only_its_paths(method, path, status):
    assert (await answer(method, path, b"")).status == status


async def test_the_server_refuses_bad_bodies():
    assert (await answer("POST", "/v1/chat/completions", b"{")).status == 400
