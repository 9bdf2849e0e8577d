"""The Responses API of the stock OpenAI client with a running server, over providers that do not have this API."""

from collections.abc import AsyncIterator
from typing import Any

import openai
import pytest
from pydantic import BaseModel
from tests.engine.providers.wires import ANTHROPIC_EVENTS, ANTHROPIC_REPLY, answering, streaming
from tests.support.platform import RunningPlatform, Tenant
from tests.support.upstream import upstream

TOOLS: Any = [
    {
        "type": "function",
        "name": "weather",
        "description": "Weather of a place",
        "parameters": {
            "type": "object",
            "properties": {"place": {"type": "string"}},
            "required": ["place"],
            "additionalProperties": False,
        },
        "strict": True,
    }
]
MODELS = ["echo", "stream-50", "tools", "tokens-1000-200", "status-503", "cut"]


@pytest.fixture(scope="module")
async def url(platform: RunningPlatform) -> AsyncIterator[str]:
    async with platform.listening() as url:
        yield url


@pytest.fixture(scope="module")
async def caller(platform: RunningPlatform) -> Tenant:
    tenant = await platform.new_tenant()
    await platform.add_provider(tenant.id, "sandbox", "sandbox", *MODELS, max_retries=0)
    return tenant


@pytest.fixture(scope="module")
async def key(platform: RunningPlatform, caller: Tenant) -> str:
    return await platform.new_key(caller.user)


@pytest.fixture
def client(url: str, key: str) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0)


async def test_a_response(client: openai.AsyncOpenAI) -> None:
    answer = await client.responses.create(model="sandbox/echo", input="Hello there", instructions="Be kind.")
    assert "Hello there" in answer.output_text
    assert (answer.status, answer.object, answer.error, answer.store) == ("completed", "response", None, False)
    assert answer.id.startswith("resp_")
    assert answer.created_at >= 1_700_000_000


async def test_usage_is_reported(client: openai.AsyncOpenAI) -> None:
    answer = await client.responses.create(model="sandbox/tokens-1000-200", input="x")
    assert answer.usage is not None
    assert (answer.usage.input_tokens, answer.usage.output_tokens, answer.usage.total_tokens) == (1000, 200, 1200)
    assert answer.usage.input_tokens_details.cached_tokens == 0


async def test_a_stream_has_every_event_in_order(client: openai.AsyncOpenAI) -> None:
    stream = await client.responses.create(model="sandbox/stream-50", input="x", stream=True)
    results = [event async for event in stream]
    kinds = [event.type for event in results]
    assert kinds[:4] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
    ]
    assert set(kinds[4:-4]) == {"response.output_text.delta"}
    assert kinds[-4:] == [
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert [event.sequence_number for event in results] == list(range(len(results)))
    last: Any = results[-1]
    pieces = "".join(event.delta for event in results if event.type == "response.output_text.delta")
    assert last.response.output_text == pieces
    assert last.response.usage.output_tokens > 50


async def test_the_clients_own_accumulation_of_a_stream(client: openai.AsyncOpenAI) -> None:
    async with client.responses.stream(model="sandbox/tools", input="x", tools=TOOLS) as stream:
        kinds = [event.type async for event in stream]
        answer = await stream.get_final_response()
    assert "response.function_call_arguments.delta" in kinds
    (call,) = answer.output
    assert call.type == "function_call"
    assert call.name == "weather"


async def test_tools_and_their_results(client: openai.AsyncOpenAI) -> None:
    messages: Any = [{"role": "user", "content": "What is the weather?"}]
    answer = await client.responses.create(model="sandbox/tools", input=messages, tools=TOOLS, tool_choice="required")
    (call,) = answer.output
    assert call.type == "function_call"
    follow_up = [
        *messages,
        *answer.output,
        {"type": "function_call_output", "call_id": call.call_id, "output": "Sunny"},
    ]
    again = await client.responses.create(model="sandbox/echo", input=follow_up, tools=TOOLS)
    assert "Sunny" in again.output_text


PATCH_TOOLS: Any = [
    {
        "type": "custom",
        "name": "apply_patch",
        "description": "Edits files.",
        "format": {"type": "grammar", "syntax": "lark", "definition": "start: /.+/"},
    },
    {"type": "web_search"},
]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_turn_of_a_coding_agent(client: openai.AsyncOpenAI, *, stream: bool) -> None:
    """A custom tool, a tool that the gateway leaves out, and a second step with the result."""
    messages: Any = [{"role": "user", "content": "Add a file."}]
    create: Any = {"model": "sandbox/tools", "input": messages, "tools": PATCH_TOOLS, "store": False}
    if stream:
        async with client.responses.stream(**create) as events:
            kinds = [event.type async for event in events]
            answer = await events.get_final_response()
        assert "response.custom_tool_call_input.delta" in kinds
        assert kinds[-1] == "response.completed"
    else:
        raw = await client.responses.with_raw_response.create(**create)
        assert raw.headers["x-gateway-dropped"] == "tools.web_search"
        answer = raw.parse()
    (call,) = answer.output
    assert call.type == "custom_tool_call"
    assert (call.name, call.input) == ("apply_patch", "sandbox")
    result = {"type": "custom_tool_call_output", "call_id": call.call_id, "output": "Done"}
    sent_back = {"type": "custom_tool_call", "call_id": call.call_id, "name": call.name, "input": call.input}
    again = await client.responses.create(
        model="sandbox/tools", input=[*messages, sent_back, result], tools=PATCH_TOOLS, store=False
    )
    assert "Done" in again.output_text


async def test_the_tokens_of_an_input_are_estimated(client: openai.AsyncOpenAI) -> None:
    raw = await client.responses.input_tokens.with_raw_response.count(model="sandbox/echo", input="Hello there")
    assert raw.headers["x-gateway-token-count"] == "estimate"
    assert 0 < raw.parse().input_tokens < 50


async def test_messages_with_parts_and_images(client: openai.AsyncOpenAI) -> None:
    content: Any = [
        {"type": "input_text", "text": "What is this?"},
        {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo=", "detail": "low"},
    ]
    messages: Any = [{"type": "message", "role": "user", "content": content}]
    answer = await client.responses.create(model="sandbox/echo", input=messages)
    assert "What is this?" in answer.output_text


class Place(BaseModel):
    city: str


async def test_parsing_an_answer_into_the_callers_model(
    platform: RunningPlatform, caller: Tenant, client: openai.AsyncOpenAI
) -> None:
    body = ANTHROPIC_REPLY.replace(b"Hi \xc3\xa4", b'{\\"city\\": \\"Bonn\\"}')
    async with upstream(answering(body)) as server:
        await platform.add_provider(caller.id, "claude-parsing", "anthropic", "m", base_url=server.url)
        answer = await client.responses.parse(model="claude-parsing/m", input="Where?", text_format=Place)
        request_body = server.requests[0].body
    assert answer.output_parsed == Place(city="Bonn")
    assert b'"json_schema"' in request_body


async def test_a_stream_over_a_provider_of_another_dialect(
    platform: RunningPlatform, caller: Tenant, client: openai.AsyncOpenAI
) -> None:
    async with upstream(streaming(ANTHROPIC_EVENTS)) as server:
        await platform.add_provider(caller.id, "claude-streaming", "anthropic", "m", base_url=server.url)
        stream = await client.responses.create(model="claude-streaming/m", input="x", stream=True)
        last: Any = [event async for event in stream][-1]
    assert last.type == "response.completed"
    assert last.response.output_text == "Hi ä"
    assert (last.response.usage.input_tokens, last.response.usage.output_tokens) == (9, 4)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("store", True),
        ("previous_response_id", "resp_1"),
        ("conversation", "conv_1"),
        ("background", True),
        ("prompt", {"id": "pmpt_1"}),
        ("top_logprobs", 3),
        ("include", ["message.output_text.logprobs"]),
        ("tools", [{"type": "file_search", "vector_store_ids": ["vs_1"]}]),
        ("tools", [{"type": "mcp", "server_label": "x"}]),
        ("input", [{"type": "item_reference", "id": "msg_1"}]),
        ("input", [{"role": "user", "content": [{"type": "input_file", "file_id": "file_1"}]}]),
        ("input", [{"role": "user", "content": [{"type": "input_image", "file_id": "file_1"}]}]),
        ("input", []),
        ("text", {"format": {"type": "grammar"}}),
        ("tool_choice", {"type": "web_search"}),
        ("max_output_tokens", 0),
    ],
)
async def test_unsupported_features_are_refused_by_name(client: openai.AsyncOpenAI, field: str, value: Any) -> None:
    with pytest.raises(openai.BadRequestError) as raised:
        await client.responses.create(**{"model": "sandbox/echo", "input": "x", field: value})
    assert raised.value.param is not None
    assert raised.value.param.startswith(field)


@pytest.mark.parametrize(
    "changes", [{"store": False}, {"truncation": "disabled"}, {"truncation": "auto"}, {"metadata": {"a": "b"}}]
)
async def test_fields_without_effect_are_accepted(client: openai.AsyncOpenAI, changes: Any) -> None:
    assert (await client.responses.create(model="sandbox/echo", input="x", **changes)).output


async def test_an_unknown_model_and_a_dead_provider(client: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as unknown:
        await client.responses.create(model="sandbox/nothing", input="x")
    assert unknown.value.code == "model_not_found"
    with pytest.raises(openai.InternalServerError) as dead:
        await client.responses.create(model="sandbox/status-503", input="x")
    assert dead.value.code == "all_providers_failed"


async def test_a_bad_key(url: str) -> None:
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="gk_wrong", max_retries=0) as stranger:
        with pytest.raises(openai.AuthenticationError) as raised:
            await stranger.responses.create(model="sandbox/echo", input="x")
    assert raised.value.code == "invalid_api_key"


async def test_a_stream_that_breaks_raises_and_keeps_what_was_sent(client: openai.AsyncOpenAI) -> None:
    event_count = 0
    with pytest.raises(openai.APIError):
        async for _ in await client.responses.create(model="sandbox/cut", input="x", stream=True):
            event_count += 1
    assert event_count > 0


async def test_fallbacks(client: openai.AsyncOpenAI) -> None:
    extra = {"fallbacks": ["sandbox/echo"]}
    answer = await client.responses.create(model="sandbox/status-503", input="Hello", extra_body=extra)
    assert "Hello" in answer.output_text
