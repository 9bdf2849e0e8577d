"""The stock Anthropic client against a running server, in front of a provider that speaks another dialect."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import anthropic
import pytest
from tests.engine.providers.wires import answering
from tests.support.platform import RunningPlatform, Tenant
from tests.support.upstream import upstream

MESSAGES: Any = [{"role": "user", "content": "Hello there"}]
TOOLS: Any = [
    {
        "name": "weather",
        "description": "Weather of a place",
        "input_schema": {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
    }
]


@pytest.fixture(scope="module")
async def url(platform: RunningPlatform) -> AsyncIterator[str]:
    async with platform.listening() as url:
        yield url


@pytest.fixture(scope="module")
async def caller(platform: RunningPlatform) -> Tenant:
    tenant = await platform.new_tenant()
    models = ["echo", "stream-50", "tools", "status-503", "cut"]
    await platform.add_provider(tenant.id, "sandbox", "sandbox", *models, max_retries=0)
    return tenant


@pytest.fixture(scope="module")
async def key(platform: RunningPlatform, caller: Tenant) -> str:
    return await platform.new_key(caller.user)


@pytest.fixture
def client(url: str, key: str) -> anthropic.AsyncAnthropic:
    return anthropic.AsyncAnthropic(base_url=url, api_key=key, max_retries=0)


async def test_a_message(client: anthropic.AsyncAnthropic) -> None:
    answer = await client.messages.create(model="sandbox/echo", max_tokens=100, messages=MESSAGES)
    assert answer.content[0].type == "text"
    assert "Hello there" in answer.content[0].text
    assert answer.usage.input_tokens > 0
    assert answer.stop_reason == "end_turn"


async def test_the_tokens_of_a_message_are_counted(
    platform: RunningPlatform, url: str, client: anthropic.AsyncAnthropic
) -> None:
    raw = await client.messages.with_raw_response.count_tokens(
        model="sandbox/echo", messages=MESSAGES, system="Be kind.", tools=TOOLS
    )
    assert raw.headers["x-gateway-token-count"] == "estimate"
    assert (await raw.parse()).input_tokens > 10
    other = await platform.new_tenant()
    key = await platform.new_key(other.user)
    async with (
        upstream(answering(b'{"input_tokens":42}')) as server,
        anthropic.AsyncAnthropic(base_url=url, api_key=key, max_retries=0) as others_client,
    ):
        await platform.add_provider(other.id, "claude", "anthropic", "m", base_url=server.url)
        count = await others_client.messages.count_tokens(model="claude/m", messages=MESSAGES)
        assert server.requests[0].head.startswith("POST /v1/messages/count_tokens ")
    assert count.input_tokens == 42


async def test_a_message_by_the_synchronous_client(url: str, key: str) -> None:
    def work() -> Any:
        with anthropic.Anthropic(base_url=url, api_key=key) as client:
            return client.messages.create(model="sandbox/echo", max_tokens=100, messages=MESSAGES)

    assert "Hello there" in (await asyncio.to_thread(work)).content[0].text


async def test_a_bearer_token_is_accepted_too(url: str, key: str) -> None:
    async with anthropic.AsyncAnthropic(base_url=url, auth_token=key, api_key=None) as client:
        assert (await client.messages.create(model="sandbox/echo", max_tokens=9, messages=MESSAGES)).content


async def test_a_stream(client: anthropic.AsyncAnthropic) -> None:
    async with client.messages.stream(model="sandbox/echo", max_tokens=100, messages=MESSAGES) as stream:
        text = "".join([piece async for piece in stream.text_stream])
        final = await stream.get_final_message()
    assert "Hello there" in text
    assert final.usage.output_tokens > 0
    assert final.stop_reason == "end_turn"


async def test_a_stream_by_the_synchronous_client(url: str, key: str) -> None:
    def work() -> str:
        with (
            anthropic.Anthropic(base_url=url, api_key=key) as client,
            client.messages.stream(model="sandbox/stream-50", max_tokens=100, messages=MESSAGES) as stream,
        ):
            return "".join(stream.text_stream)

    assert await asyncio.to_thread(work)


async def test_models(client: anthropic.AsyncAnthropic) -> None:
    models = {model.id: model async for model in client.models.list(limit=1)}
    assert set(models) == {f"sandbox/{model}" for model in ["echo", "stream-50", "tools", "status-503", "cut"]}
    assert models["sandbox/echo"].display_name
    assert models["sandbox/echo"].created_at.tzinfo is not None
    one = await client.models.retrieve("sandbox/echo")
    assert (one.id, one.type, one.lifecycle) == ("sandbox/echo", "model", "active")
    with pytest.raises(anthropic.NotFoundError) as refused:
        await client.models.retrieve("sandbox/none")
    assert refused.value.body["type"] == "error"  # type: ignore[index]


@pytest.mark.parametrize("stream", [True, False])
async def test_tools(client: anthropic.AsyncAnthropic, stream: bool) -> None:
    if stream:
        async with client.messages.stream(
            model="sandbox/tools", max_tokens=100, messages=MESSAGES, tools=TOOLS
        ) as events:
            answer = await events.get_final_message()
    else:
        answer = await client.messages.create(model="sandbox/tools", max_tokens=100, messages=MESSAGES, tools=TOOLS)
    (use,) = [block for block in answer.content if block.type == "tool_use"]
    assert use.name == "weather"
    assert isinstance(use.input, dict)
    assert answer.stop_reason == "tool_use"
    follow_up: Any = [
        *MESSAGES,
        {"role": "assistant", "content": [block.model_dump() for block in answer.content]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": use.id, "content": "Sunny"}]},
    ]
    assert (await client.messages.create(model="sandbox/echo", max_tokens=9, messages=follow_up, tools=TOOLS)).content


@pytest.mark.parametrize(
    ("model", "error"),
    [
        ("sandbox/nothing", anthropic.NotFoundError),
        ("sandbox/status-503", anthropic.InternalServerError),
    ],
)
async def test_errors_are_the_clients_own(
    client: anthropic.AsyncAnthropic, model: str, error: type[anthropic.APIStatusError]
) -> None:
    with pytest.raises(error) as raised:
        await client.messages.create(model=model, max_tokens=9, messages=MESSAGES)
    body: Any = raised.value.body
    assert body["type"] == "error"


async def test_a_bad_key_is_an_authentication_error(url: str) -> None:
    async with anthropic.AsyncAnthropic(base_url=url, api_key="gk_wrong", max_retries=0) as client:
        with pytest.raises(anthropic.AuthenticationError):
            await client.messages.create(model="sandbox/echo", max_tokens=9, messages=MESSAGES)


async def test_a_bad_body_is_a_bad_request(client: anthropic.AsyncAnthropic) -> None:
    with pytest.raises(anthropic.BadRequestError):
        await client.post("/v1/messages", body={"model": "sandbox/echo", "max_tokens": 5}, cast_to=object)


async def test_a_stream_that_breaks_raises(client: anthropic.AsyncAnthropic) -> None:
    with pytest.raises(anthropic.APIError):
        async with client.messages.stream(model="sandbox/cut", max_tokens=100, messages=MESSAGES) as stream:
            async for _ in stream.text_stream:
                pass
