"""The Responses API over every kind of provider. The openai library parses all answers."""

import json
from typing import Any

import msgspec
import pytest
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter
from tests.engine.providers.conftest import candidate, everything
from tests.engine.providers.wires import USAGE, WIRES, answering, config, streaming
from tests.support.upstream import upstream
from tests.support.vendors import azure_openai, bedrock, gemini, google_cloud, mistral

from gatehouse.engine.conversation.dialects import DIALECTS
from gatehouse.engine.conversation.sse import data_of, events
from gatehouse.engine.providers import KINDS
from gatehouse.engine.providers.authentication.google import GoogleTokens

EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
TOOL = {"type": "function", "name": "weather", "parameters": {"type": "object"}}


def call(**changes: Any):
    return DIALECTS["openai_responses"].decode(msgspec.json.encode({"model": "p/m", "input": "hello", **changes}))


def read(body: bytes) -> Response:
    return Response.model_validate_json(body)


def read_stream(raw: bytes) -> list[Any]:
    return [EVENT.validate_json(data_of(event)) for event in events(raw)]


@pytest.mark.parametrize("kind", WIRES)
async def test_a_whole_answer(ask, kind):
    _, body, _ = WIRES[kind]
    async with upstream(answering(body)) as server:
        reply = await ask(call(), candidate(kind, responses_api=False, **config(kind, server.url)))
    assert read(reply.body).output_text == "Hi ä"
    assert reply.usage()[0] == USAGE


@pytest.mark.parametrize("kind", WIRES)
async def test_a_stream(ask, kind):
    _, _, text = WIRES[kind]
    async with upstream(streaming(text)) as server:
        reply = await ask(call(stream=True), candidate(kind, responses_api=False, **config(kind, server.url)))
        response_body = read_stream(await everything(reply))
    assert response_body[-1].type == "response.completed"
    assert response_body[-1].response.output_text == "Hi ä"
    assert response_body[-1].response.usage.total_tokens == 13
    assert reply.usage() == (USAGE, False)


async def test_tokens_of_the_reasoning_are_shown(ask):
    usage = {
        "prompt_tokens": 9, "completion_tokens": 20, "total_tokens": 29,
        "completion_tokens_details": {"reasoning_tokens": 12},
    }  # fmt: skip
    message = {"role": "assistant", "content": "Hi"}
    answer = {"id": "c", "model": "m", "choices": [{"message": message, "finish_reason": "stop"}], "usage": usage}
    async with upstream(answering(json.dumps(answer).encode())) as server:
        reply = await ask(call(), candidate("openai_compatible", base_url=server.url))
    assert read(reply.body).usage.output_tokens_details.reasoning_tokens == 12
    chunks = [
        {"id": "c", "model": "m", "choices": [{"index": 0, "delta": message, "finish_reason": "stop"}]},
        {"id": "c", "model": "m", "choices": [], "usage": usage},
    ]
    pieces = [f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks] + [b"data: [DONE]\n\n"]
    async with upstream(streaming(pieces)) as server:
        reply = await ask(call(stream=True), candidate("openai_compatible", base_url=server.url))
        completed = read_stream(await everything(reply))[-1]
    assert completed.response.usage.output_tokens_details.reasoning_tokens == 12


def bedrocks():
    return upstream(
        bedrock.Bedrock({"text": "Let me see."}, {"toolUse": {**WEATHER, "toolUseId": "t"}}, stop="tool_use")
    )


def geminis():
    return upstream(gemini.Gemini({"text": "Let me see."}, {"functionCall": {"name": "weather", "args": PLACE}}))


def google_clouds():
    cloud = google_cloud.GoogleCloud({"type": "tool_use", "id": "toolu_1", **WEATHER})
    cloud.tokens.append(MACHINE_TOKEN)
    return upstream(cloud)


#: The token of this machine at Google Cloud.
MACHINE_TOKEN = "ya29.of-the-machine"
PLACE = {"place": "Oslo"}
WEATHER = {"name": "weather", "input": PLACE}
#: for each vendor: the function that starts its server, its key, a model, a text for which it calls a tool, and the
#: cached and all input tokens that it reports
VENDORS = {
    "bedrock": (bedrocks, bedrock.SECRET, "m", "Weather?", (8, 23)),
    "gemini": (geminis, gemini.KEY, "m", "Weather?", (8, 20)),
    "azure_openai": (azure_openai.azure, azure_openai.KEY, "our-gpt", "use a tool", (10, 30)),
    "vertex_ai": (google_clouds, "", google_cloud.CLAUDE, "Weather?", (0, 9)),
    "mistral": (mistral.mistral, mistral.KEY, "mistral-large-latest", "use tools", (10, 30)),
}


def place(kind: str, url: str, model: str):
    body = {
        "azure_openai": {"hosted_endpoint": url, "hosted_api_version": "2024-10-21", "responses_api": False},
        "bedrock": {"base_url": url, "cloud_region": bedrock.REGION, "cloud_access_key_id": bedrock.KEY_ID},
        "gemini": {"base_url": f"{url}/v1beta"},
        "mistral": {"base_url": f"{url}/v1"},
        "vertex_ai": {"base_url": url, "use_instance_role": True, **google_cloud.CONFIG},
    }
    return candidate(kind, model, **body[kind])


def secret(kind: str, key: str) -> dict[str, str]:
    return {"cloud_secret_access_key" if kind == "bedrock" else "api_key": key}


@pytest.fixture(autouse=True)
def machine(monkeypatch):
    async def metadata(method, url, headers):
        return json.dumps({"access_token": MACHINE_TOKEN, "expires_in": 3599}).encode()

    monkeypatch.setattr(KINDS["vertex_ai"], "_tokens", GoogleTokens({}, request=metadata))


def test_every_kind_of_provider_is_tested_with_responses():
    assert {*WIRES, *VENDORS} == KINDS.keys() - {"sandbox"}


@pytest.mark.parametrize("kind", VENDORS)
@pytest.mark.parametrize("stream", [False, True])
async def test_tools_at_a_vendor(ask, kind, stream):
    """The conversation began at another provider, and contains reasoning that only that provider can decrypt."""
    vendor, key, model, words, (cached, expected_text) = VENDORS[kind]
    before = [
        {"role": "user", "content": "Weather?"},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAAA"},
        {"type": "function_call", "call_id": "functions.weather:0", "name": "weather", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "functions.weather:0", "output": "Sun"},
        {"role": "user", "content": words},
    ]
    async with vendor() as server:
        request = call(input=before, tools=[TOOL], tool_choice="required", max_output_tokens=9, stream=stream)
        reply = await ask(request, place(kind, server.url, model), secret=secret(kind, key))
        answer = read_stream(await everything(reply))[-1].response if stream else read(reply.body)
    calls = [item for item in answer.output if item.type == "function_call"]
    assert {call.name for call in calls} == {"weather"}
    assert json.loads(calls[0].arguments) == PLACE
    assert answer.usage.input_tokens_details.cached_tokens == cached
    assert answer.usage.input_tokens == expected_text


async def test_a_filtered_answer_is_incomplete(ask):
    async with azure_openai.azure() as server:
        reply = await ask(
            call(input="filter the answer"),
            place("azure_openai", server.url, "our-gpt"),
            secret={"api_key": azure_openai.KEY},
        )
    answer = read(reply.body)
    assert (answer.status, answer.incomplete_details.reason) == ("incomplete", "content_filter")


async def test_reasoning_and_own_fields_reach_only_providers_that_support_them(ask):
    async with mistral.mistral() as server:
        request = call(reasoning={"effort": "high"}, safe_prompt=True)
        await ask(request, place("mistral", server.url, "mistral-large-latest"), secret={"api_key": mistral.KEY})
        body = msgspec.json.decode(server.requests[0].body)
    assert (body["reasoning_effort"], body["safe_prompt"]) == ("high", True)
