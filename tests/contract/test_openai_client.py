"""The stock OpenAI client with a running server: only base URL and key are changed."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import openai
import pytest
from tests.support.platform import RunningPlatform, Tenant

MESSAGES: Any = [{"role": "user", "content": "Hello there"}]
TOOLS: Any = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "description": "Weather of a place",
            "parameters": {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
        },
    }
]
MODELS = ["echo", "stream-50", "tools", "embed", "status-503", "cut", "slow-5000ms"]


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


async def in_thread(work: Any) -> Any:
    return await asyncio.to_thread(work)


async def test_a_completion(client: openai.AsyncOpenAI) -> None:
    answer = await client.chat.completions.create(model="sandbox/echo", messages=MESSAGES)
    assert "Hello there" in (answer.choices[0].message.content or "")
    assert answer.usage is not None
    assert answer.usage.prompt_tokens > 0


async def test_a_completion_by_the_synchronous_client(url: str, key: str) -> None:
    def work() -> Any:
        with openai.OpenAI(base_url=f"{url}/v1", api_key=key) as client:
            return client.chat.completions.create(model="sandbox/echo", messages=MESSAGES)

    assert "Hello there" in (await in_thread(work)).choices[0].message.content


@pytest.mark.parametrize("include_usage", [True, False])
async def test_a_stream(client: openai.AsyncOpenAI, include_usage: bool) -> None:
    extra: Any = {"stream_options": {"include_usage": True}} if include_usage else {}
    stream = await client.chat.completions.create(model="sandbox/stream-50", messages=MESSAGES, stream=True, **extra)
    chunks = [chunk async for chunk in stream]
    assert len([chunk for chunk in chunks if chunk.choices and chunk.choices[0].delta.content]) >= 50
    assert [chunk for chunk in chunks if chunk.usage is not None and not chunk.choices] == (
        [chunks[-1]] if include_usage else []
    )


async def test_a_stream_by_the_synchronous_client(url: str, key: str) -> None:
    def work() -> str:
        with openai.OpenAI(base_url=f"{url}/v1", api_key=key) as client:
            stream = client.chat.completions.create(model="sandbox/echo", messages=MESSAGES, stream=True)
            return "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)

    assert "Hello there" in await in_thread(work)


@pytest.mark.parametrize("stream", [True, False])
async def test_tools(client: openai.AsyncOpenAI, stream: bool) -> None:
    if not stream:
        answer = await client.chat.completions.create(model="sandbox/tools", messages=MESSAGES, tools=TOOLS)
        assert answer.choices[0].finish_reason == "tool_calls"
        (call,) = answer.choices[0].message.tool_calls or []
        assert call.type == "function"
        assert call.function.name == "weather"
        follow_up: Any = [
            *MESSAGES,
            answer.choices[0].message,
            {"role": "tool", "tool_call_id": call.id, "content": "Sunny"},
        ]
        again = await client.chat.completions.create(model="sandbox/echo", messages=follow_up, tools=TOOLS)
        assert again.choices[0].message.content
        return
    chunks = [
        chunk
        async for chunk in await client.chat.completions.create(
            model="sandbox/tools", messages=MESSAGES, tools=TOOLS, stream=True
        )
    ]
    names = [
        call.function.name for chunk in chunks for call in chunk.choices[0].delta.tool_calls or [] if call.function
    ]
    assert "weather" in names


async def test_vision_parts_and_response_format_pass(client: openai.AsyncOpenAI) -> None:
    messages: Any = [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is this?"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
            ],
        }
    ]
    answer = await client.chat.completions.create(
        model="sandbox/echo", messages=messages, response_format={"type": "json_object"}
    )
    assert answer.choices


async def test_embeddings(client: openai.AsyncOpenAI) -> None:
    answer = await client.embeddings.create(model="sandbox/embed", input=["one", "two"])
    assert len(answer.data) == 2
    assert answer.data[0].embedding


async def test_models(client: openai.AsyncOpenAI) -> None:
    ids = {model.id async for model in client.models.list()}
    assert ids == {f"sandbox/{model}" for model in MODELS}
    assert (await client.models.retrieve("sandbox/echo")).id == "sandbox/echo"


async def test_the_older_path_is_the_same_call(url: str, key: str) -> None:
    async with openai.AsyncOpenAI(base_url=f"{url}/api", api_key=key) as client:
        assert (await client.chat.completions.create(model="sandbox/echo", messages=MESSAGES)).choices


async def test_a_bad_key_is_an_authentication_error(url: str) -> None:
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="gk_wrong", max_retries=0) as client:
        with pytest.raises(openai.AuthenticationError) as raised:
            await client.chat.completions.create(model="sandbox/echo", messages=MESSAGES)
    assert raised.value.code == "invalid_api_key"


async def test_an_unknown_model_is_not_found(client: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as raised:
        await client.chat.completions.create(model="sandbox/nothing", messages=MESSAGES)
    assert raised.value.code == "model_not_found"


async def test_a_missing_field_is_a_bad_request(client: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as raised:
        await client.post("/chat/completions", body={"model": "sandbox/echo"}, cast_to=object)
    assert "messages" in str(raised.value)


async def test_a_missing_scope_is_permission_denied(platform: RunningPlatform, caller: Tenant, url: str) -> None:
    machine = await platform.new_m2m(caller.id, "api:read")
    token = machine.headers["authorization"].removeprefix("Bearer ")
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=token, max_retries=0) as client:
        with pytest.raises(openai.PermissionDeniedError):
            await client.chat.completions.create(model="sandbox/echo", messages=MESSAGES)


async def test_a_limit_reached_is_a_rate_limit_error(platform: RunningPlatform, url: str) -> None:
    tenant = await platform.new_tenant()
    key = await platform.new_key(tenant.user)
    platform.sql("UPDATE tenants SET custom_rate_limit_rpm = 2 WHERE id = %s", [tenant.id])
    platform.touch("tenant", tenant.id)
    await platform.add_provider(tenant.id, "sandbox", "sandbox", "echo")
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0) as client:
        with pytest.raises(openai.RateLimitError) as raised:
            for _ in range(4):
                await client.chat.completions.create(model="sandbox/echo", messages=MESSAGES)
    assert raised.value.code == "quota_exceeded"
    assert int(raised.value.response.headers["retry-after"]) > 0


async def test_a_dead_provider_is_an_internal_server_error(client: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.InternalServerError) as raised:
        await client.chat.completions.create(model="sandbox/status-503", messages=MESSAGES)
    assert raised.value.status_code == 502


async def test_a_stream_that_breaks_raises_and_keeps_what_was_sent(client: openai.AsyncOpenAI) -> None:
    chunk_count = 0
    with pytest.raises(openai.APIError):
        async for _ in await client.chat.completions.create(model="sandbox/cut", messages=MESSAGES, stream=True):
            chunk_count += 1
    assert chunk_count > 0


async def test_a_disconnected_client_is_recorded_as_cancelled(
    platform: RunningPlatform, caller: Tenant, client: openai.AsyncOpenAI
) -> None:
    with pytest.raises(openai.APITimeoutError):
        await client.with_options(timeout=0.3).chat.completions.create(model="sandbox/slow-5000ms", messages=MESSAGES)
    for _ in range(100):
        journal = b"".join(path.read_bytes() for path in (platform.installed.home / "journal").rglob("*.log"))
        lines = [line for line in journal.split(b"\n") if str(caller.id).encode() in line and b"slow-5000ms" in line]
        if lines:
            break
        await asyncio.sleep(0.01)
    (line,) = lines
    assert b'"cancelled"' in line
