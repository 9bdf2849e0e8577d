"""Azure OpenAI, checked with the library that Azure's customers use."""

import json
from contextlib import asynccontextmanager

import msgspec
import pytest
from openai import AsyncAzureOpenAI
from tests.engine.providers.conftest import call, candidate, everything
from tests.support.vendors.azure_openai import DEPLOYMENTS, KEY, azure

from gatehouse.engine.conversation.usage import Usage
from gatehouse.engine.providers import KINDS, ProviderFailed
from gatehouse.engine.providers.credentials import InvalidCredentials, MissingCredentials, read_credentials
from gatehouse.policy.catalog import ProviderConfig, ProviderRecord

OLD, NEW = "2024-02-01", "2024-10-21"
REPORTED_USAGE = Usage(input_tokens=20, cached_tokens=10, output_tokens=7)
TOOLS = {
    "openai_chat": [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}],
    "anthropic_messages": [{"name": "weather", "input_schema": {"type": "object"}}],
}
CHAT = list(TOOLS)


def messages_of(words: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": words}]


def place(url: str, model: str = "our-gpt", version: str | None = NEW):
    return candidate("azure_openai", model, hosted_endpoint=url, hosted_api_version=version)


SECRET = {"api_key": KEY}


@asynccontextmanager
async def client(url: str, version: str = NEW):
    async with AsyncAzureOpenAI(azure_endpoint=url, api_key=KEY, api_version=version, max_retries=0) as azures:
        yield azures


async def test_the_library_reads_the_answers_of_the_fake_azure():
    async with azure() as server, client(server.url) as azures:
        answer = await azures.chat.completions.create(model="our-gpt", messages=messages_of("hi"))
        assert (answer.choices[0].message.content, answer.usage.completion_tokens) == ("Grüße aus Azure", 7)
        stream = await azures.chat.completions.create(model="our-gpt", messages=messages_of("use a tool"), stream=True)
        chunks = [chunk async for chunk in stream]
        assert chunks[0].choices == []
        assert chunks[-1].choices[0].finish_reason == "tool_calls"
        vectors = await azures.embeddings.create(model="our-vectors", input=["a", "b"])
        assert len(vectors.data) == 2


@pytest.mark.parametrize("version", [OLD, NEW])
async def test_the_gateway_sends_the_same_requests_as_the_library(ask, version):
    async with azure() as server, client(server.url, version) as azures:
        await azures.chat.completions.create(model="our-gpt", messages=messages_of("hi"), max_tokens=5)
        request = call(messages=messages_of("hi"), max_tokens=5, input=None)
        await ask(request, place(server.url + "/", version=version), secret=SECRET)
        theirs, ours = server.requests
    assert ours.head.split("\r\n")[0] == theirs.head.split("\r\n")[0]
    assert ours.headers["api-key"] == theirs.headers["api-key"] == KEY
    assert "authorization" not in ours.headers
    sent = json.loads(ours.body)
    assert {name: sent[name] for name in json.loads(theirs.body)} == json.loads(theirs.body)


@pytest.mark.parametrize("dialect", CHAT)
@pytest.mark.parametrize("version", [None, OLD, NEW])
async def test_an_answer_in_any_dialect_and_version(ask, dialect, version):
    async with azure() as server:
        reply = await ask(call(dialect), place(server.url, version=version), secret=SECRET)
        line = server.requests[0].head.split("\r\n")[0]
    assert f"api-version={version or OLD} " in line
    assert "Grüße aus Azure" in reply.body.decode()
    assert reply.usage()[0] == REPORTED_USAGE


@pytest.mark.parametrize("dialect", CHAT)
async def test_a_stream_begins_after_the_chunk_without_an_id(ask, dialect):
    async with azure() as server:
        reply = await ask(call(dialect, stream=True), place(server.url), secret=SECRET)
        got = (await everything(reply)).decode()
    assert "Grüße" in got
    assert reply.usage() == (REPORTED_USAGE, False)
    if dialect == "anthropic_messages":
        start = msgspec.json.decode(got.split("\n")[1].removeprefix("data: "))
        assert (start["message"]["id"], start["message"]["model"]) == ("chatcmpl-az1", "p/the-model")


@pytest.mark.parametrize("dialect", CHAT)
async def test_a_version_without_usage_in_streams_has_an_estimate(ask, dialect):
    async with azure() as server:
        reply = await ask(call(dialect, stream=True), place(server.url, version=OLD), secret=SECRET)
        assert "Azure" in (await everything(reply)).decode()
        sent = server.requests[0].body
    assert b"stream_options" not in sent
    assert reply.usage()[1]
    assert reply.usage()[0] == Usage(input_tokens=len(sent) // 4, output_tokens=7)


@pytest.mark.parametrize(("version", "name"), [(OLD, "max_tokens"), (NEW, "max_completion_tokens")])
async def test_the_api_version_selects_the_name_of_the_token_limit(ask, version, name):
    async with azure() as server:
        await ask(call("anthropic_messages"), place(server.url, version=version), secret=SECRET)
        body = json.loads(server.requests[0].body)
    assert body[name] == 500
    assert len({"max_tokens", "max_completion_tokens"} & body.keys()) == 1


@pytest.mark.parametrize("dialect", CHAT)
@pytest.mark.parametrize("stream", [False, True])
async def test_tools(ask, dialect, stream):
    async with azure() as server:
        request = call(dialect, messages=messages_of("use a tool"), tools=TOOLS[dialect], stream=stream)
        reply = await ask(request, place(server.url), secret=SECRET)
        text = (await everything(reply) if stream else reply.body).decode()
    assert '"weather"' in text
    assert "Oslo" in text
    assert ("tool_calls" if dialect == "openai_chat" else "tool_use") in text


@pytest.mark.parametrize("dialect", CHAT)
@pytest.mark.parametrize("stream", [False, True])
async def test_a_filtered_answer_ends_with_content_filter(ask, dialect, stream):
    async with azure() as server:
        request = call(dialect, messages=messages_of("filter the answer"), stream=stream)
        reply = await ask(request, place(server.url), secret=SECRET)
        text = (await everything(reply) if stream else reply.body).decode()
    assert ('"content_filter"' if dialect == "openai_chat" else '"refusal"') in text


@pytest.mark.parametrize("dialect", CHAT)
async def test_a_filtered_prompt_is_the_requests_own_error(ask, dialect):
    async with azure() as server:
        with pytest.raises(ProviderFailed) as failed:
            await ask(call(dialect, messages=messages_of("filter this prompt")), place(server.url), secret=SECRET)
    error = failed.value.client_error
    assert (error.status, error.code, error.extra) == (400, "content_filter", {"filters": ["hate", "jailbreak"]})
    assert error.text == "The provider's content filter does not permit this request: hate, jailbreak."


async def test_a_busy_deployment_is_left_at_once_with_its_wait(ask):
    async with azure() as server:
        with pytest.raises(ProviderFailed) as failed:
            await ask(call(messages=messages_of("be busy")), place(server.url), secret=SECRET)
    assert (failed.value.reason, failed.value.move_on, failed.value.retry_after) == ("rate_limited", True, 7)


@pytest.mark.parametrize(
    ("model", "secret", "reason", "status"),
    [("our-gpt", {"api_key": "wrong"}, "unauthorized", 401), ("nobodys", SECRET, "model_not_found", 404)],
)
async def test_wrong_keys_and_deployments(ask, model, secret, reason, status):
    async with azure() as server:
        with pytest.raises(ProviderFailed) as failed:
            await ask(call(), place(server.url, model), secret=secret)
    assert (failed.value.reason, failed.value.status) == (reason, status)


@pytest.mark.parametrize(
    ("endpoint", "base"),
    [
        ("https://ours.openai.azure.com", "https://ours.openai.azure.com/openai"),
        ("https://ours.openai.azure.com/", "https://ours.openai.azure.com/openai"),
        ("https://ours.openai.azure.com/openai/", "https://ours.openai.azure.com/openai"),
        ("https://ours.openai.azure.com/openai/v1/", "https://ours.openai.azure.com/openai"),
        (
            "https://ours.openai.azure.com/openai/deployments/our-gpt/chat/completions",
            "https://ours.openai.azure.com/openai",
        ),
        ("https://gate.example/openai-prod/", "https://gate.example/openai-prod/openai"),
        ("https://openai/team/openai", "https://openai/team/openai"),
    ],
)
def test_an_address_copied_from_azures_pages_is_accepted(endpoint, base):
    assert KINDS["azure_openai"].base_url(ProviderConfig(hosted_endpoint=endpoint)) == base


async def test_a_deployments_name_is_quoted(ask):
    async with azure() as server:
        with pytest.raises(ProviderFailed):
            await ask(call(), place(server.url, "../x?y"), secret=SECRET)
        assert server.requests[0].head.startswith("POST /openai/deployments/..%2Fx%3Fy/chat/completions?")


async def test_embeddings(ask):
    async with azure() as server:
        request = call("openai_embeddings", input=["a", "b"], max_tokens=None, messages=None)
        reply = await ask(request, place(server.url, "our-vectors"), secret=SECRET)
    assert len(msgspec.json.decode(reply.body)["data"]) == 2
    assert reply.usage()[0] == Usage(input_tokens=3)


async def test_deployments_are_found(outbound):
    async with azure() as server:
        config = ProviderConfig(hosted_endpoint=server.url, hosted_api_version=NEW)
        record = ProviderRecord(id="p", name="P", kind="azure_openai", config=config)
        models = await KINDS["azure_openai"].list_models(outbound, record, SECRET)
    assert {item.model_id: item.display_name for item in models} == {
        name: f"{name} ({model})" for name, model in DEPLOYMENTS.items()
    }


def test_the_version_has_a_default_and_the_other_fields_are_required():
    kind = KINDS["azure_openai"]
    credentials = {"api_key": KEY, "hosted_endpoint": "https://x.openai.azure.com"}
    read = read_credentials(kind, credentials)
    assert read.secret == {"api_key": KEY}
    others = {"entra_tenant_id": None, "entra_client_id": None, "use_instance_role": False}
    assert read.config == {"hosted_endpoint": "https://x.openai.azure.com", "hosted_api_version": OLD, **others}
    with pytest.raises(MissingCredentials) as missing:
        read_credentials(kind, {"api_key": KEY})
    assert missing.value.extra == {"missing": ["hosted_endpoint"]}
    with pytest.raises(InvalidCredentials) as invalid:
        read_credentials(kind, {**credentials, "hosted_api_version": "latest&x=y"})
    assert [fault.field for fault in invalid.value.faults] == ["hosted_api_version"]
