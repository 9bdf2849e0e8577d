"""The sandbox's own server, called with the stock clients of OpenAI and Anthropic."""

import asyncio
import socket

import anthropic
import openai
import pytest
import uvicorn

from gatehouse.ingress.sandbox_server import sandbox_app

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
MESSAGES = [{"role": "user", "content": "hello big world"}]


@pytest.fixture(scope="module")
async def url():
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(sandbox_app, log_level="critical", lifespan="off"))
    task = asyncio.ensure_future(server.serve([listening]))
    while not server.started:
        await asyncio.sleep(0.01)
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    server.should_exit = True
    await task


@pytest.fixture(scope="module")
async def gpt(url):
    async with openai.AsyncOpenAI(base_url=url + "/v1", api_key="x", max_retries=0) as client:
        yield client


@pytest.fixture(scope="module")
async def claude(url):
    async with anthropic.AsyncAnthropic(base_url=url, api_key="x", max_retries=0) as client:
        yield client


async def test_openais_client_chats_and_streams(gpt):
    whole = await gpt.chat.completions.create(model="sandbox/echo", messages=MESSAGES)
    assert whole.choices[0].message.content == "hello big world"
    stream = await gpt.chat.completions.create(
        model="echo", messages=MESSAGES, stream=True, stream_options={"include_usage": True}
    )
    chunks = [chunk async for chunk in stream]
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == "hello big world"
    assert chunks[-1].usage.completion_tokens == 4


async def test_openais_client_gets_tool_calls_models_and_embeddings(gpt):
    tools = [{"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}]
    whole = await gpt.chat.completions.create(model="tools", messages=MESSAGES, tools=tools)
    assert whole.choices[0].message.tool_calls[0].function.arguments == '{"city":"sandbox"}'
    assert "echo" in [model.id async for model in gpt.models.list()]
    embedded = await gpt.embeddings.create(model="embed", input=["a", "b"])
    assert [len(item.embedding) for item in embedded.data] == [8, 8]


async def test_anthropics_client_chats_and_streams(claude):
    whole = await claude.messages.create(model="echo", max_tokens=99, messages=MESSAGES)
    assert whole.content[0].text == "hello big world"
    async with claude.messages.stream(model="echo", max_tokens=99, messages=MESSAGES) as stream:
        message = "".join([text async for text in stream.text_stream])
        final = await stream.get_final_message()
    assert message == "hello big world"
    assert (final.usage.input_tokens, final.usage.output_tokens, final.stop_reason) == (4, 4, "end_turn")


async def test_anthropics_client_gets_tool_calls_in_a_stream(claude):
    tools = [{"name": "weather", "input_schema": SCHEMA}]
    async with claude.messages.stream(model="tools", max_tokens=99, messages=MESSAGES, tools=tools) as stream:
        final = await stream.get_final_message()
    assert (final.content[0].name, final.content[0].input, final.stop_reason) == (
        "weather", {"city": "sandbox"}, "tool_use",
    )  # fmt: skip


async def test_errors_arrive_as_the_clients_own(gpt, claude):
    with pytest.raises(openai.RateLimitError):
        await gpt.chat.completions.create(model="status-429", messages=MESSAGES)
    with pytest.raises(openai.NotFoundError):
        await gpt.chat.completions.create(model="nope", messages=MESSAGES)
    with pytest.raises(anthropic.InternalServerError):
        await claude.messages.create(model="status-503", max_tokens=9, messages=MESSAGES)


async def test_a_cut_answer_breaks_the_connection(gpt):
    with pytest.raises(openai.APIConnectionError):
        await gpt.chat.completions.create(model="cut", messages=MESSAGES)
