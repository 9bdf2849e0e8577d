"""A turn of Codex and of Claude Code with a tool call, streamed and not, over providers of both dialects, with DLP on.

`make agents` runs the agents themselves."""

import json
from collections.abc import AsyncIterator
from typing import Any

import anthropic
import openai
import pytest
from tests.support.coding_agents import (
    CLAUDE_ARGUMENTS,
    CLAUDE_HEADERS,
    CODEX_ARGUMENTS,
    CODEX_HEADERS,
    JsonObject,
    claude_next_request,
    claude_request,
    codex_next_request,
    codex_request,
)
from tests.support.platform import RunningPlatform, Tenant
from tests.support.upstream import Upstream, upstream
from tests.support.vendors.coding_model import REDACTED_ANSWER, CodingModel

CARD = "4111 1111 1111 1111"
PROMPT = f"Pay with {CARD}."
TOOL_RESULT = f"paid {CARD}"
FORMATS = ("openai", "anthropic")
#: The name of a model that accepts a reasoning effort.
MODEL = "gpt-5.5"
#: The patch that the model sends to Codex's custom tool, whose input is free text. For a provider without custom tools,
#: the tool is a function with one string parameter.
PATCH = "*** Begin Patch"


@pytest.fixture(scope="module")
async def url(platform: RunningPlatform) -> AsyncIterator[str]:
    async with platform.listening() as url:
        yield url


@pytest.fixture(scope="module")
async def tenant(platform: RunningPlatform) -> Tenant:
    return await platform.new_tenant()


@pytest.fixture(scope="module")
async def key(platform: RunningPlatform, tenant: Tenant) -> str:
    return await platform.new_key(tenant.user)


async def connect(platform: RunningPlatform, tenant: Tenant, provider: Upstream, wire_format: str, name: str) -> str:
    """Add the provider, and return the name of its model."""
    await platform.add_provider(
        tenant.id, name, "byoe", MODEL, base_url=f"{provider.url}/v1", format=wire_format, max_retries=0
    )
    return f"{name}/{MODEL}"


async def codex_answer(client: openai.AsyncOpenAI, request: JsonObject) -> list[JsonObject]:
    """Send a request, and return the items of its answer."""
    fields: Any = {name: request[name] for name in ("model", "input", "stream")}
    more = {name: value for name, value in request.items() if name not in fields}
    answer = await client.responses.create(**fields, extra_body=more, extra_headers=CODEX_HEADERS)
    if request["stream"]:
        (answer,) = [event.response async for event in answer if event.type == "response.completed"]
    return [item.to_dict() for item in answer.output]


def texts(items: list[JsonObject]) -> list[str]:
    return [part["text"] for item in items if item["type"] == "message" for part in item["content"]]


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("wire_format", FORMATS)
@pytest.mark.parametrize(
    ("tool", "arguments", "kind"),
    [
        ("exec_command", CODEX_ARGUMENTS, "function_call"),
        ("apply_patch", {"input": PATCH}, "custom_tool_call"),
    ],
)
async def test_a_turn_of_codex(
    platform: RunningPlatform,
    tenant: Tenant,
    url: str,
    key: str,
    tool: str,
    arguments: JsonObject,
    kind: str,
    wire_format: str,
    stream: bool,
) -> None:
    client = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0)
    async with upstream(CodingModel(tool, arguments)) as provider:
        name = f"codex-{tool.replace('_', '-')}-{wire_format}-{stream}".lower()
        model = await connect(platform, tenant, provider, wire_format, name)
        request = {**codex_request(model, PROMPT), "stream": stream}
        output = await codex_answer(client, request)
        (call,) = [item for item in output if item["type"] == kind]
        assert call["name"] == tool
        if kind == "custom_tool_call":
            assert call["input"] == PATCH
        else:
            assert json.loads(call["arguments"]) == arguments
        last = await codex_answer(client, codex_next_request(request, output, TOOL_RESULT))
        assert texts(last) == [REDACTED_ANSWER]
    sent = [json.loads(connection.body) for connection in provider.requests]
    assert [len(request["tools"]) for request in sent] == [5, 5]
    assert not any(CARD in connection.body.decode() for connection in provider.requests)


async def claude_answer(client: anthropic.AsyncAnthropic, request: JsonObject) -> list[JsonObject]:
    """Send a request, and return the blocks of its answer."""
    fields: Any = {name: request[name] for name in ("model", "max_tokens", "messages")}
    more = {name: value for name, value in request.items() if name not in fields and name != "stream"}
    if request["stream"]:
        async with client.messages.stream(**fields, extra_body=more, extra_headers=CLAUDE_HEADERS) as stream:
            message = await stream.get_final_message()
    else:
        message = await client.messages.create(**fields, extra_body=more, extra_headers=CLAUDE_HEADERS)
    return [block.to_dict() for block in message.content]


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("wire_format", FORMATS)
async def test_a_turn_of_claude_code(
    platform: RunningPlatform, tenant: Tenant, url: str, key: str, wire_format: str, stream: bool
) -> None:
    client = anthropic.AsyncAnthropic(base_url=url, auth_token=key, max_retries=0, timeout=60)
    async with upstream(CodingModel("Bash", CLAUDE_ARGUMENTS)) as provider:
        model = await connect(platform, tenant, provider, wire_format, f"claude-{wire_format}-{stream}".lower())
        request = {**claude_request(model, PROMPT), "stream": stream}
        content = await claude_answer(client, request)
        (call,) = [block for block in content if block["type"] == "tool_use"]
        assert (call["name"], call["input"]) == ("Bash", CLAUDE_ARGUMENTS)
        last = await claude_answer(client, claude_next_request(request, content, TOOL_RESULT))
        assert [block["text"] for block in last if block["type"] == "text"] == [REDACTED_ANSWER]
    assert not any(CARD in connection.body.decode() for connection in provider.requests)
    _, second = [json.loads(connection.body) for connection in provider.requests]
    if wire_format == "anthropic":
        # The provider refuses the results of a tool call whose thinking is missing or was changed.
        assert {"type": "thinking", "thinking": "A plan.", "signature": "c2ln"} in second["messages"][2]["content"]
        assert second["context_management"] == request["context_management"]
    else:
        assert second["reasoning_effort"] == "high"
