"""The wire formats of Vertex AI, compared with those of Anthropic's and Google's own clients."""

import json
from typing import Any

import msgspec
import pytest
from anthropic import AsyncAnthropicVertex
from google.genai import Client
from google.genai.types import HttpOptions
from google.oauth2.credentials import Credentials
from tests.engine.providers.conftest import call, candidate, everything
from tests.support.upstream import upstream
from tests.support.vendors.google_cloud import CLAUDE, CLAUDE_CALL, CLAUDE_TEXT, CONFIG, LOCATION, PROJECT, GoogleCloud
from tests.support.vendors.google_cloud import SECRET as KEY_SECRET

from gatehouse.engine.conversation.dialects import DIALECTS
from gatehouse.engine.conversation.usage import Usage
from gatehouse.engine.providers import KINDS, ProviderFailed, ProviderModel, count_tokens
from gatehouse.engine.providers.authentication.google import GoogleTokens
from gatehouse.engine.providers.kind import ProviderNotConfigured, ProviderTarget
from gatehouse.engine.providers.vertex_ai import ANTHROPIC_VERSION
from gatehouse.policy.catalog import ProviderConfig, ProviderRecord

GEMINI = "gemini-2.5-flash"
PATH = f"/v1/projects/{PROJECT}/locations/{LOCATION}/publishers"
TOOLS = [{"name": "weather", "input_schema": {"type": "object"}}]


@pytest.fixture
async def served(monkeypatch):
    """Google Cloud, and the configuration of a provider there."""
    cloud = GoogleCloud()
    async with upstream(cloud) as server:
        cloud.url = server.url
        monkeypatch.setattr(KINDS["vertex_ai"], "_tokens", GoogleTokens({}, token_url=f"{server.url}/token"))
        yield cloud


def place(cloud: Any, model: str = CLAUDE):
    return candidate("vertex_ai", model, base_url=cloud.url, **CONFIG)


async def answered(ask, cloud: Any, request, model: str = CLAUDE) -> bytes:
    reply = await ask(request, place(cloud, model), secret=KEY_SECRET)
    body: bytes = await everything(reply) if request.stream else reply.body
    assert cloud.faults == []
    return body


@pytest.mark.parametrize("stream", [False, True])
async def test_claude_is_called_as_by_anthropics_own_client(ask, served, stream) -> None:
    request = call("anthropic_messages", tools=TOOLS, stream=stream, messages=[{"role": "user", "content": "hi"}])
    await answered(ask, served, request)
    token = served.tokens[0]
    client = AsyncAnthropicVertex(
        region=LOCATION, project_id=PROJECT, access_token=token, base_url=f"{served.url}/v1", max_retries=0
    )
    fields: dict[str, Any] = {**request.body, "model": CLAUDE}
    fields.pop("input")
    # The client would send the version of Anthropic's own API.
    answer = await client.messages.create(**fields, extra_body={"anthropic_version": ANTHROPIC_VERSION})
    if stream:
        async for _ in answer:
            pass
    await client.close()
    (path, body), (own_path, own_body) = served.calls
    method = "streamRawPredict" if stream else "rawPredict"
    assert path == f"{PATH}/anthropic/models/{CLAUDE}:{method}"
    assert path.replace("@", "%40") == own_path.replace("@", "%40")
    assert {name: value for name, value in body.items() if name != "input"} == own_body


@pytest.mark.parametrize("dialect", ["openai_chat", "anthropic_messages"])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("model", [CLAUDE, GEMINI])
async def test_both_families_answer_clients_of_both_dialects(ask, served, dialect, stream, model) -> None:
    body = await answered(ask, served, call(dialect, stream=stream), model)
    assert b"Hi " in body


@pytest.mark.parametrize("stream", [False, True])
async def test_a_tool_call_of_claude_reaches_a_client_of_another_dialect(ask, served, stream) -> None:
    served.claude = (*CLAUDE_TEXT, CLAUDE_CALL)
    tool = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
    body = await answered(ask, served, call(tools=[tool], stream=stream))
    assert served.calls[0][1]["tools"] == [{"name": "weather", "input_schema": {"type": "object"}}]
    assert b'"name":"weather"' in body
    assert b'"finish_reason":"tool_calls"' in body


async def test_the_usage_of_a_call_is_read(ask, served) -> None:
    reply = await ask(call(), place(served), secret=KEY_SECRET)
    assert reply.usage()[0] == Usage(input_tokens=9, output_tokens=4)


@pytest.mark.parametrize("stream", [False, True])
async def test_gemini_is_called_as_by_googles_own_client(ask, served, stream) -> None:
    await answered(ask, served, call(stream=stream), GEMINI)
    client = Client(
        vertexai=True,
        project=PROJECT,
        location=LOCATION,
        credentials=Credentials(served.tokens[0]),
        http_options=HttpOptions(base_url=served.url, api_version="v1"),
    )
    contents = "hello big world"
    if stream:
        async for _ in await client.aio.models.generate_content_stream(model=GEMINI, contents=contents):
            pass
    else:
        await client.aio.models.generate_content(model=GEMINI, contents=contents)
    (path, body), (own_path, own_body) = served.calls
    assert path == own_path
    assert body["contents"] == own_body["contents"]


@pytest.mark.parametrize("model", ["gemini-embedding-001", "text-embedding-005"])
async def test_embeddings_are_requested_as_by_googles_own_client(ask, served, model) -> None:
    texts = ["one", "three"]
    request = call("openai_embeddings", input=texts, dimensions=2)
    body = json.loads(await answered(ask, served, request, model))
    assert [one["embedding"][0] for one in body["data"]] == [3, 5]
    assert body["usage"]["prompt_tokens"] == 4
    options = HttpOptions(base_url=served.url)
    credentials = Credentials(served.tokens[0])
    client = Client(vertexai=True, project=PROJECT, location=LOCATION, credentials=credentials, http_options=options)
    await client.aio.models.embed_content(model=model, contents=texts, config={"output_dimensionality": 2})
    (path, sent), (own_path, own_sent) = served.calls
    assert path.partition("/projects")[2] == own_path.partition("/projects")[2]
    assert sent == own_sent


async def test_a_model_of_claude_makes_no_embeddings(ask, served) -> None:
    with pytest.raises(ProviderFailed, match="refused") as failed:
        await ask(call("openai_embeddings"), place(served), secret=KEY_SECRET)
    assert failed.value.client_error.code == "embeddings_not_supported"
    assert served.calls == []


async def test_tokens_are_counted_by_the_vendor(outbound, served) -> None:
    async def count(model: str):
        body = {"model": "p/m", "messages": [{"role": "user", "content": "hi"}]}
        request = DIALECTS["anthropic_token_count"].decode(msgspec.json.encode(body))
        reply = await count_tokens(
            request, place(served, model), secret=KEY_SECRET, outbound=outbound, max_response_bytes=1_000_000
        )
        return json.loads(reply.body), reply.headers["X-Gateway-Token-Count"]

    assert await count(CLAUDE) == ({"input_tokens": 21}, "provider")
    ((path, body),) = served.calls
    assert path == f"{PATH}/anthropic/models/count-tokens:rawPredict"
    assert body["model"] == CLAUDE
    assert await count(GEMINI) == ({"input_tokens": 22}, "provider")
    path, body = served.calls[-1]
    assert (path, body) == (
        f"{PATH}/google/models/{GEMINI}:countTokens", {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]},
    )  # fmt: skip
    _, counted_by = await count("gemma-3")
    assert (counted_by, len(served.calls)) == ("estimate", 2)


@pytest.mark.parametrize(
    ("location", "host"),
    [
        ("europe-west4", "europe-west4-aiplatform.googleapis.com"),
        ("global", "aiplatform.googleapis.com"),
        ("us", "aiplatform.us.rep.googleapis.com"),
        ("eu", "aiplatform.eu.rep.googleapis.com"),
    ],
)
def test_the_location_selects_the_host(location, host) -> None:
    config = ProviderConfig(cloud_project=PROJECT, cloud_location=location)
    url = KINDS["vertex_ai"].endpoint(ProviderTarget("chat", GEMINI), config, {}).url
    assert url == (
        f"https://{host}/v1/projects/{PROJECT}/locations/{location}/publishers/google/models/{GEMINI}:generateContent"
    )
    own = Client(vertexai=True, project=PROJECT, location=location, credentials=Credentials("x"))
    assert own._api_client._http_options.base_url == f"https://{host}/"


@pytest.mark.parametrize(
    ("model", "path"),
    [
        ("endpoints/123", "endpoints/123"),
        ("../../x", "publishers/google/models/..%2F..%2Fx"),
        ("a?b#c", "publishers/google/models/a%3Fb%23c"),
    ],
)
def test_the_path_contains_the_model(model, path) -> None:
    url = KINDS["vertex_ai"].endpoint(ProviderTarget("chat", model), ProviderConfig(**CONFIG), {}).url
    assert url.endswith(f"/locations/{LOCATION}/{path}:generateContent")


@pytest.mark.parametrize("missing", ["cloud_project", "cloud_location"])
def test_a_missing_setting_is_reported(missing) -> None:
    config = ProviderConfig(**{name: value for name, value in CONFIG.items() if name != missing})
    with pytest.raises(ProviderNotConfigured):
        KINDS["vertex_ai"].endpoint(ProviderTarget("chat", GEMINI), config, {})


async def test_models_of_both_publishers_are_listed(outbound, served) -> None:
    served.models = {"google": [GEMINI, "imagen-4", "text-embedding-005"], "anthropic": ["claude-x"]}
    record = ProviderRecord(id="v", name="V", kind="vertex_ai", config=ProviderConfig(base_url=served.url, **CONFIG))
    assert await KINDS["vertex_ai"].list_models(outbound, record, KEY_SECRET) == [
        ProviderModel(model_id=GEMINI, supports_streaming=True),
        ProviderModel(model_id="text-embedding-005"),
        ProviderModel(model_id="claude-x", supports_streaming=True),
    ]


async def test_a_token_in_an_error_is_redacted(ask, served) -> None:
    served.repeats_token = True
    with pytest.raises(ProviderFailed) as failed:
        await ask(call(), place(served), secret=KEY_SECRET)
    assert str(failed.value.client_error) == "No [redacted]"
