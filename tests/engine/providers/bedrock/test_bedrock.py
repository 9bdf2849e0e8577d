"""Bedrock over a real socket. Requests are signed and match botocore's model of the service. Answers are converted to
any dialect."""

import asyncio
import json
import re
from typing import Any

import botocore.session
import pytest
from botocore.config import Config
from tests.engine.providers.conftest import call, candidate, everything
from tests.engine.providers.wires import CHAT, answering
from tests.support.upstream import Connection, upstream
from tests.support.vendors.bedrock import (
    CALL,
    KEY_ID,
    REGION,
    SECRET,
    Bedrock,
    begin_stream,
    event,
    exception,
    fault_in,
    frame,
)

from gatehouse.engine.conversation.dialects import DIALECTS
from gatehouse.engine.conversation.errors import ContextTooLong, RefusedUpstream
from gatehouse.engine.conversation.usage import Usage
from gatehouse.engine.providers import KINDS, ProviderFailed, ProviderModel
from gatehouse.policy.catalog import ProviderConfig, ProviderRecord

MODEL = "eu.anthropic.claude-haiku-4-5-v1:0"
USAGE = Usage(input_tokens=12, cached_tokens=8, cache_write_tokens=3, output_tokens=5)
PIXEL = "iVBORw0KGgo="
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "description": "Tells it.",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
            "strict": True,
        },
    },
    {"type": "function", "function": {"name": "now"}},
]
ANTHROPIC_TOOLS = [{"name": "weather", "input_schema": {"type": "object", "properties": {}}}]
SECRETS = {"cloud_secret_access_key": SECRET}


def config(url: str, **more: Any) -> dict[str, Any]:
    return {"base_url": url, "cloud_region": REGION, "cloud_access_key_id": KEY_ID, **more}


@pytest.fixture
def ask_bedrock(ask):
    """Return a function that calls a fake Bedrock and asserts that it accepted the request:
    `await ask_bedrock(vendor, call(...))`."""

    async def through(vendor: Any, request: Any, *, model: str = MODEL, **more: Any) -> Any:
        async with upstream(vendor) as server:
            reply = await ask(request, candidate("bedrock", model, **config(server.url, **more)), secret=SECRETS)
            if reply.body is None:
                blocks = []
                try:
                    async for block in reply.events:
                        blocks.append(block)
                except ProviderFailed as failed:
                    failed.came = b"".join(blocks)
                    raise
                finally:
                    await reply.close()
                reply.events = __iterate(blocks)
        assert getattr(vendor, "faults", []) == []
        return reply

    return through


async def __iterate(blocks: list[bytes]) -> Any:
    for block in blocks:
        yield block


def sending(*pieces: bytes) -> Any:
    """Return a behaviour that sends these bytes as a stream, valid or not."""

    async def behave(connection: Connection) -> None:
        await begin_stream(connection)
        for piece in pieces:
            await connection.chunk(piece)
        await connection.end_stream()

    return behave


async def test_the_vendors_own_client_reads_the_answers_of_the_fake_vendor() -> None:
    def work(url: str) -> tuple[Any, list[Any], Any, Any]:
        def client(service: str) -> Any:
            return botocore.session.get_session().create_client(
                service,
                region_name=REGION,
                endpoint_url=url,
                aws_access_key_id=KEY_ID,
                aws_secret_access_key=SECRET,
                config=Config(retries={"max_attempts": 0}),
            )

        body = {"modelId": MODEL, "messages": [{"role": "user", "content": [{"text": "hi"}]}]}
        runtime, control = client("bedrock-runtime"), client("bedrock")
        return (
            runtime.converse(**body),
            list(runtime.converse_stream(**body)["stream"]),
            control.list_foundation_models(),
            control.list_inference_profiles(),
        )

    vendor = Bedrock({"text": "Hi ä"}, CALL, models=[{"modelArn": "arn:m", "modelId": "m"}])
    async with upstream(vendor) as server:
        whole, stream, models, profiles = await asyncio.to_thread(work, server.url)
    assert vendor.faults == []
    assert whole["output"]["message"]["content"] == [{"text": "Hi ä"}, CALL]
    assert whole["usage"]["cacheReadInputTokens"] == 8
    texts = [one["contentBlockDelta"]["delta"].get("text", "") for one in stream if "contentBlockDelta" in one]
    assert "".join(texts) == "Hi ä"
    assert stream[-2]["messageStop"]["stopReason"] == "end_turn"
    assert stream[-1]["metadata"]["usage"]["outputTokens"] == 5
    assert [one["modelId"] for one in models["modelSummaries"]] == ["m"]
    assert profiles["inferenceProfileSummaries"] == []


@pytest.mark.parametrize("dialect", CHAT)
async def test_an_answer_in_any_dialect(ask_bedrock, dialect) -> None:
    reply = await ask_bedrock(Bedrock(), call(dialect))
    assert reply.usage()[0] == USAGE
    body = json.loads(reply.body)
    assert body["model"] == "p/the-model"
    assert body["id"]
    if dialect == "openai_chat":
        (choice,) = body["choices"]
        assert (choice["message"]["content"], choice["finish_reason"]) == ("Hi ä", "stop")
    else:
        assert (body["content"], body["stop_reason"]) == ([{"type": "text", "text": "Hi ä"}], "end_turn")


@pytest.mark.parametrize("dialect", CHAT)
async def test_a_stream_in_any_dialect(ask_bedrock, dialect) -> None:
    reply = await ask_bedrock(Bedrock(), call(dialect, stream=True))
    got = (await everything(reply)).decode()
    assert reply.usage() == (USAGE, False)
    assert "p/the-model" in got
    assert ("Thinking" in got) is (dialect == "openai_chat")
    assert got.count("Hi") == got.count(" ä") == 1
    assert got.endswith("data: [DONE]\n\n" if dialect == "openai_chat" else '{"type":"message_stop"}\n\n')


@pytest.mark.parametrize("dialect", CHAT)
async def test_a_stream_is_the_same_however_the_network_cuts_it(ask_bedrock, dialect) -> None:
    whole = b"".join(Bedrock({"text": "Hi ä"}, CALL).frames())
    messages = []
    for size in (1, 7, 100, len(whole)):
        pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
        reply = await ask_bedrock(sending(*pieces), call(dialect, stream=True, tools=None))
        assert reply.usage()[0] == USAGE
        lines = (await everything(reply)).decode().splitlines()
        data = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
        messages.append(
            [{key: value for key, value in one.items() if key not in {"id", "created", "message"}} for one in data]
        )
    assert messages[0] == messages[1] == messages[2] == messages[3]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_call_of_the_responses_api_is_converted(ask_bedrock, stream) -> None:
    vendor = Bedrock({"text": "Let me see."}, CALL)
    tool = {"type": "function", "name": "weather", "parameters": {"type": "object", "properties": {}}}
    body = {"model": "p/m", "input": "Weather?", "instructions": "Be short.", "tools": [tool], "stream": stream}
    reply = await ask_bedrock(vendor, DIALECTS["openai_responses"].decode(json.dumps(body).encode()))
    response_body = await everything(reply) if stream else reply.body
    assert b"Let me" in response_body
    assert b"K\xc3\xb6ln" in response_body or b"K\\\\u00f6ln" in response_body
    assert reply.usage()[0] == USAGE


async def test_a_request_with_everything(ask_bedrock) -> None:
    vendor = Bedrock()
    request = call(
        messages=[
            {"role": "system", "content": "Be short."},
            {"role": "developer", "content": "Be kind."},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "What is this?"},
                    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
                ],
            },
            {"role": "user", "content": "Say."},
        ],
        tools=TOOLS,
        tool_choice={"type": "function", "function": {"name": "weather"}},
        response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}},
        temperature=0.5,
        top_p=0.9,
        top_k=40,
        seed=7,
        stop=["END"],
        user="somebody",
    )
    await ask_bedrock(vendor, request)
    parameters = TOOLS[0]["function"]["parameters"]
    schema = {"schema": '{"type":"object"}', "name": "x"}
    spec = {"name": "weather", "description": "Tells it.", "inputSchema": {"json": parameters}, "strict": True}
    bare = {"name": "now", "inputSchema": {"json": {"type": "object", "properties": {}}}}
    assert vendor.received_calls == [
        (
            MODEL,
            {
                "messages": [
                    {
                        "role": "user",
                        "content": [
                            {"text": "What is this?"},
                            {"image": {"format": "png", "source": {"bytes": PIXEL}}},
                            {"text": "Say."},
                        ],
                    }
                ],
                "system": [{"text": "Be short."}, {"text": "Be kind."}],
                "inferenceConfig": {"maxTokens": 500, "temperature": 0.5, "topP": 0.9, "stopSequences": ["END"]},
                "toolConfig": {
                    "tools": [{"toolSpec": spec}, {"toolSpec": bare}],
                    "toolChoice": {"tool": {"name": "weather"}},
                },
                "outputConfig": {"textFormat": {"type": "json_schema", "structure": {"jsonSchema": schema}}},
                "additionalModelRequestFields": {"top_k": 40},
            },
        )
    ]


@pytest.mark.parametrize(
    ("model", "more"),
    [("amazon.nova-lite-v1:0", {"inferenceConfig": {"topK": 3}}), ("meta.llama4-scout-17b-instruct-v1:0", None)],
)
async def test_model_specific_parameters_are_translated(ask_bedrock, model, more) -> None:
    vendor = Bedrock()
    await ask_bedrock(vendor, call(top_k=3), model=model)
    assert vendor.received_calls[0][1].get("additionalModelRequestFields") == more


@pytest.mark.parametrize(
    ("choice", "expected"),
    [("auto", None), ("required", {"any": {}}), (None, None)],
)
async def test_choices_of_tools(ask_bedrock, choice, expected) -> None:
    vendor = Bedrock()
    await ask_bedrock(vendor, call(tools=TOOLS, tool_choice=choice))
    assert vendor.received_calls[0][1]["toolConfig"].get("toolChoice") == expected
    assert len(vendor.received_calls[0][1]["toolConfig"]["tools"]) == 2


async def test_no_choice_of_tools_is_no_tools(ask_bedrock) -> None:
    vendor = Bedrock()
    await ask_bedrock(vendor, call(tools=TOOLS, tool_choice="none"))
    assert "toolConfig" not in vendor.received_calls[0][1]


async def test_json_mode_is_an_instruction(ask_bedrock) -> None:
    vendor = Bedrock()
    await ask_bedrock(vendor, call(response_format={"type": "json_object"}))
    assert "JSON object" in vendor.received_calls[0][1]["system"][0]["text"]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("dialect", CHAT)
async def test_parallel_tool_calls(ask_bedrock, dialect, stream) -> None:
    second = {"toolUse": {"toolUseId": "tooluse_2", "name": "now", "input": {}}}
    tools = ANTHROPIC_TOOLS if dialect == "anthropic_messages" else TOOLS
    reply = await ask_bedrock(
        Bedrock({"text": "Let me see."}, CALL, second, stop="tool_use"), call(dialect, tools=tools, stream=stream)
    )
    calls, why = calls_in(await everything(reply) if stream else reply.body, dialect, stream=stream)
    assert calls == [("tooluse_1", "weather", {"city": "Köln"}), ("tooluse_2", "now", {})]
    assert why == ("tool_calls" if dialect == "openai_chat" else "tool_use")


def calls_in(reply_body: bytes, dialect: str, *, stream: bool) -> tuple[list[tuple[str, str, Any]], str]:
    """Return the id, name and arguments of each tool call of an answer, and the stop reason."""
    if not stream:
        body = json.loads(reply_body)
        if dialect == "anthropic_messages":
            blocks = [block for block in body["content"] if block["type"] == "tool_use"]
            return [(block["id"], block["name"], block["input"]) for block in blocks], body["stop_reason"]
        (choice,) = body["choices"]
        return [
            (one["id"], one["function"]["name"], json.loads(one["function"]["arguments"]))
            for one in choice["message"]["tool_calls"]
        ], choice["finish_reason"]
    started: dict[int, tuple[str, str]] = {}
    arguments: dict[int, str] = {}
    why = ""
    for data in [json.loads(line[6:]) for line in reply_body.decode().splitlines() if line.startswith("data: {")]:
        if dialect == "anthropic_messages":
            block, delta = data.get("content_block", {}), data.get("delta", {})
            if block.get("type") == "tool_use":
                started[data["index"]] = (block["id"], block["name"])
            if "partial_json" in delta:
                arguments[data["index"]] = arguments.get(data["index"], "") + delta["partial_json"]
            why = delta.get("stop_reason") or why
            continue
        for choice in data["choices"]:
            why = choice["finish_reason"] or why
            for one in choice["delta"].get("tool_calls", []):
                if "id" in one:
                    started[one["index"]] = (one["id"], one["function"]["name"])
                arguments[one["index"]] = arguments.get(one["index"], "") + one["function"]["arguments"]
    return [(*started[index], json.loads(arguments[index])) for index in started], why


async def test_results_of_tools_go_back(ask_bedrock) -> None:
    vendor = Bedrock()
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": PIXEL}}
    messages = [
        {"role": "user", "content": "Weather?"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "x"},
                {"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "Köln"}},
                {"type": "tool_use", "id": "t2", "name": "lost", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": "no such city", "is_error": True},
                {"type": "tool_result", "tool_use_id": "t2", "content": [{"type": "text", "text": "9"}, picture]},
            ],
        },
    ]
    await ask_bedrock(vendor, call("anthropic_messages", tools=ANTHROPIC_TOOLS, messages=messages))
    body = vendor.received_calls[0][1]
    assert body["messages"][1]["content"] == [
        {"toolUse": {"toolUseId": "t1", "name": "weather", "input": {"city": "Köln"}}},
        {"toolUse": {"toolUseId": "t2", "name": "lost", "input": {}}},
    ]
    image = {"image": {"format": "jpeg", "source": {"bytes": PIXEL}}}
    assert body["messages"][2]["content"] == [
        {"toolResult": {"toolUseId": "t1", "content": [{"text": "no such city"}], "status": "error"}},
        {"toolResult": {"toolUseId": "t2", "content": [{"text": "9"}, image], "status": "success"}},
    ]
    assert [tool["toolSpec"]["name"] for tool in body["toolConfig"]["tools"]] == ["weather", "lost"]


async def test_ids_of_other_providers_calls_are_converted(ask_bedrock) -> None:
    ids = ["tooluse_1.a:b-c", "functions/weather 1", "x" * 65, " "]
    calls = [{"id": id_, "type": "function", "function": {"name": "weather", "arguments": "{}"}} for id_ in ids]
    results = [{"role": "tool", "tool_call_id": id_, "content": "9"} for id_ in ids]
    vendor = Bedrock()
    question = {"role": "user", "content": "Weather?"}
    await ask_bedrock(
        vendor, call(messages=[question, {"role": "assistant", "tool_calls": calls}, *results], temperature=1.7)
    )
    body = vendor.received_calls[0][1]
    sent = [block["toolUse"]["toolUseId"] for block in body["messages"][1]["content"]]
    assert sent == [block["toolResult"]["toolUseId"] for block in body["messages"][2]["content"]]
    assert sent[0] == ids[0]
    assert all(re.fullmatch("[A-Za-z0-9]{32}", sent_request) for sent_request in sent[1:])
    assert len(set(sent)) == len(ids)
    assert body["inferenceConfig"]["temperature"] == 1.0


@pytest.mark.parametrize(
    ("image", "image_url"),
    [("https://example.com/a.png", "by URL"), (f"data:image/svg+xml;base64,{PIXEL}", "PNG, JPEG, GIF and WebP")],
)
async def test_unsupported_images_are_the_clients_error(ask, image, image_url) -> None:
    messages = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": image}}]}]
    with pytest.raises(ProviderFailed) as failed:
        await ask(call(messages=messages), candidate("bedrock", MODEL, **config("http://127.0.0.1:1")), secret=SECRETS)
    assert image_url in failed.value.client_error.text
    assert failed.value.client_error.extra == {"param": "messages[0]"}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("stop", "why"),
    [
        ("guardrail_intervened", "content_filter"),
        ("content_filtered", "content_filter"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("stop_sequence", "stop"),
        ("a_new_one", "stop"),
    ],
)
async def test_the_stop_reason_is_converted(ask_bedrock, stop, why, stream) -> None:
    reply = await ask_bedrock(Bedrock({"text": "Some"}, stop=stop), call(stream=stream))
    assert f'"finish_reason":"{why}"'.encode() in (await everything(reply) if stream else reply.body)
    assert reply.usage()[0] == USAGE


@pytest.mark.parametrize("stream", [False, True])
async def test_a_tool_call_that_cannot_be_read_is_no_answer(ask_bedrock, stream) -> None:
    with pytest.raises(ProviderFailed, match="bad_reply"):
        await ask_bedrock(Bedrock({"text": "x"}, stop="malformed_tool_use"), call(stream=stream))


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("status", "name", "message", "reason", "leaf"),
    [
        (400, "ValidationException", "The provided model identifier is invalid.", "refused", RefusedUpstream),
        (400, "ValidationException", "Input is too long for requested model.", "refused", ContextTooLong),
        (403, "AccessDeniedException", "User: arn:aws:iam::1:user/x is not authorized", "unauthorized", None),
        (403, "ExpiredTokenException", "expired", "unauthorized", None),
        (404, "ResourceNotFoundException", "Model not found.", "model_not_found", None),
        (408, "ModelTimeoutException", "slow", "http_408", None),
        (424, "ModelErrorException", "broke", "http_424", None),
        (400, "ServiceQuotaExceededException", "No more of it", "rate_limited", None),
        (429, "ThrottlingException", "Too many requests", "rate_limited", None),
        (500, "InternalServerException", "x", "http_500", None),
        (503, "ServiceUnavailableException", "x", "http_503", None),
    ],
)
async def test_errors_of_the_vendor(ask_bedrock, status, name, message, reason, leaf, stream) -> None:
    text = f"x-amzn-ErrorType: {name}:\r\n"
    behave = answering(json.dumps({"message": message}).encode(), status, text)
    with pytest.raises(ProviderFailed, match=reason) as failed:
        await ask_bedrock(behave, call(stream=stream))
    assert failed.value.status == status
    assert failed.value.retryable is (status in {408, 500, 503})
    assert (failed.value.client_error and type(failed.value.client_error)) is leaf


async def test_a_wrong_key_is_not_an_error_of_the_client(ask) -> None:
    async with upstream(Bedrock()) as server:
        with pytest.raises(ProviderFailed, match="unauthorized"):
            await ask(
                call(),
                candidate("bedrock", MODEL, **config(server.url)),
                secret={"cloud_secret_access_key": "another-secret"},
            )


@pytest.mark.parametrize("missing", ["cloud_region", "cloud_access_key_id"])
async def test_a_provider_without_its_settings_is_skipped(ask, missing) -> None:
    settings = {**config("http://127.0.0.1:1"), missing: None}
    with pytest.raises(ProviderFailed, match="not_configured"):
        await ask(call(), candidate("bedrock", MODEL, **settings), secret=SECRETS)


FIRST = [
    event("messageStart", {"role": "assistant"}),
    event("contentBlockDelta", {"delta": {"text": "Hi"}, "contentBlockIndex": 0}),
]
TURNED = bytearray(event("contentBlockDelta", {"delta": {"text": "no"}, "contentBlockIndex": 0}))
TURNED[-20] ^= 1


@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize(
    ("piece", "reason", "flag"),
    [
        (exception("throttlingException", "secret words"), "rate_limited", "move_on"),
        (exception("validationException", "secret words"), "refused", "client_error"),
        (exception("modelStreamErrorException", "secret words"), "http_424", "move_on"),
        (exception("internalServerException", "secret words"), "http_500", "retryable"),
        (exception("serviceUnavailableException", "secret words"), "http_503", "retryable"),
        (exception("somethingNewException", "secret words"), "http_500", "retryable"),
        (
            frame({":message-type": "error", ":error-code": "x", ":error-message": "secret words"}, b""),
            "stream_error",
            "retryable",
        ),
        (frame({":message-type": "news"}, b"{}"), "bad_reply", "move_on"),
        (event("messageStart", {"contentBlockIndex": "one"}), "bad_reply", "move_on"),
        (bytes(TURNED), "bad_reply", "move_on"),
        (b"<html>not a stream at all</html>", "bad_reply", "move_on"),
        (event("messageStop", {"stopReason": "end_turn"})[:-3], "connection_closed", "retryable"),
        (b"", "connection_closed", "retryable"),
    ],
)
async def test_a_broken_stream_passes_its_events_on_and_then_fails(ask_bedrock, piece, reason, flag, begun) -> None:
    pieces = [b"".join([*FIRST, piece])] if begun else [piece] if piece else []
    with pytest.raises(ProviderFailed) as failed:
        await ask_bedrock(sending(*pieces), call(stream=True))
    error = failed.value
    assert error.reason == reason
    assert getattr(error, flag)
    assert (b"Hi" in getattr(error, "came", b"")) is begun
    assert b"secret words" not in getattr(error, "came", b"")


async def test_data_after_the_end_of_a_stream_has_no_effect(ask_bedrock) -> None:
    reply = await ask_bedrock(sending(b"".join([*Bedrock().frames(), b"rubbish and more rubbish"])), call(stream=True))
    assert (await everything(reply)).endswith(b"[DONE]\n\n")
    assert reply.usage()[0] == USAGE


async def test_another_kind_of_stream_is_a_bad_reply(ask_bedrock) -> None:
    with pytest.raises(ProviderFailed, match="bad_reply"):
        await ask_bedrock(answering(b"<html>"), call(stream=True))


@pytest.mark.parametrize(
    ("model", "model_reply", "sent", "vectors", "usage"),
    [
        (
            "amazon.titan-embed-text-v2:0",
            {"input": ["one"], "dimensions": 256},
            {"inputText": "one", "dimensions": 256},
            [[0.25, 0.5]],
            Usage(input_tokens=4),
        ),
        (
            "cohere.embed-multilingual-v3",
            {"input": ["one", "three"]},
            {"texts": ["one", "three"], "input_type": "search_document"},
            [[3.0, 0.5], [5.0, 0.5]],
            Usage(input_tokens=4),
        ),
        (
            "eu.cohere.embed-v4:0",
            {"input": "one", "dimensions": 256},
            {"texts": ["one"], "input_type": "search_document", "output_dimension": 256},
            [[3.0, 0.5]],
            Usage(input_tokens=4),
        ),
    ],
)
async def test_embeddings_in_the_format_of_each_vendor(ask_bedrock, model, model_reply, sent, vectors, usage) -> None:
    vendor = Bedrock()
    body = {"input": "x", **model_reply}
    reply = await ask_bedrock(vendor, call("openai_embeddings", **body), model=model)
    assert vendor.received_calls == [(model, sent)]
    response_body = json.loads(reply.body)
    assert (response_body["model"], [one["embedding"] for one in response_body["data"]]) == ("p/the-model", vectors)
    assert reply.usage()[0] == usage
    assert response_body["usage"]["prompt_tokens"] == usage.input_tokens


@pytest.mark.parametrize("header", ["", "-4", "many", "4" * 400])
async def test_an_invalid_header_is_ignored(ask_bedrock, header) -> None:
    body = b'{"embeddings": [[0.5]]}'
    behave = answering(body, more=f"X-Amzn-Bedrock-Input-Token-Count: {header}\r\n")
    reply = await ask_bedrock(behave, call("openai_embeddings"), model="cohere.embed-english-v3")
    assert reply.usage()[1]


@pytest.mark.parametrize(
    ("model", "fields", "param"),
    [("amazon.titan-embed-text-v2:0", ["one", "two"], "input"), ("amazon.nova-lite-v1:0", "one", "model")],
)
async def test_unsupported_embedding_requests_are_the_clients_error(ask, model, fields, param) -> None:
    with pytest.raises(ProviderFailed) as failed:
        place = candidate("bedrock", model, **config("http://127.0.0.1:1"))
        await ask(call("openai_embeddings", input=fields), place, secret=SECRETS)
    assert failed.value.client_error.extra == {"param": param}


async def test_an_answer_without_embeddings_is_a_bad_reply(ask_bedrock) -> None:
    with pytest.raises(ProviderFailed, match="bad_reply"):
        await ask_bedrock(answering(b"{}"), call("openai_embeddings"), model="cohere.embed-english-v3")


async def test_models_and_profiles_are_listed(outbound) -> None:
    def model(name: str, *, how: str = "ON_DEMAND", out: str = "TEXT") -> dict[str, Any]:
        return {
            "modelArn": f"arn:aws:bedrock:{REGION}::foundation-model/{name}",
            "modelId": name,
            "modelName": name.upper(),
            "inputModalities": ["TEXT", "IMAGE"],
            "outputModalities": [out],
            "responseStreamingSupported": True,
            "inferenceTypesSupported": [how],
        }

    def profile(name: str, of: str, **more: Any) -> dict[str, Any]:
        arn = f"arn:aws:bedrock:{REGION}::foundation-model/{of}"
        return {
            "inferenceProfileId": name,
            "inferenceProfileArn": f"arn:aws:bedrock:{REGION}:1:inference-profile/{name}",
            "inferenceProfileName": f"The {name}",
            "models": [{"modelArn": arn}],
            "status": "ACTIVE",
            "type": "SYSTEM_DEFINED",
            **more,
        }

    titan = model("amazon.titan-embed-text-v2:0", out="EMBEDDING")
    picture = model("amazon.titan-embed-image-v1", out="EMBEDDING")
    models = [
        titan,
        picture,
        model("a"),
        model("b", how="INFERENCE_PROFILE"),
        model("c", out="IMAGE"),
        model("d", how="PROVISIONED"),
    ]
    profiles = [
        profile("eu.b", "b"),
        profile("mine", "a", type="APPLICATION"),
        profile("eu.c", "c"),
        profile("eu.gone", "gone"),
        profile("eu.old", "a", status="DELETING"),
    ]

    async def models_of(vendor: Bedrock) -> list[tuple[str, str | None]]:
        async with upstream(vendor) as server:
            record = ProviderRecord(
                id="b", name="B", kind="bedrock", config=ProviderConfig(**config(server.url))
            )  # fmt: skip
            listed = await KINDS["bedrock"].list_models(outbound, record, SECRETS)
        assert all(isinstance(one, ProviderModel) and one.supports_vision and one.supports_streaming for one in listed)
        return [(one.model_id, one.display_name) for one in listed]

    arn = f"arn:aws:bedrock:{REGION}:1:inference-profile/mine"
    assert await models_of(Bedrock(models=models, profiles=profiles)) == [
        (titan["modelId"], titan["modelName"]),
        ("a", "A"),
        ("eu.b", "The eu.b"),
        (arn, "The mine"),
    ]
    # If the credentials do not permit listing profiles, the models are still listed.
    assert await models_of(Bedrock(models=models, profiles=None)) == [
        (titan["modelId"], titan["modelName"]),
        ("a", "A"),
    ]


@pytest.mark.parametrize(("modalities", "expected"), [({}, None), ({"inputModalities": ["TEXT"]}, False)])
async def test_a_model_whose_inputs_are_not_listed_has_no_known_vision(outbound, modalities, expected) -> None:
    model = {"modelId": "a", "outputModalities": ["TEXT"], "inferenceTypesSupported": ["ON_DEMAND"], **modalities}
    async with upstream(Bedrock(models=[model], profiles=[])) as server:
        record = ProviderRecord(id="b", name="B", kind="bedrock", config=ProviderConfig(**config(server.url)))
        (listed_model,) = await KINDS["bedrock"].list_models(outbound, record, SECRETS)
    assert (listed_model.supports_vision, listed_model.supports_streaming) == (expected, None)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_profile_is_called_by_its_arn(ask_bedrock, stream) -> None:
    vendor = Bedrock()
    arn = "arn:aws:bedrock:eu-central-1:123456789012:application-inference-profile/abc123"
    await ask_bedrock(vendor, call(stream=stream), model=arn)
    assert vendor.received_calls[0][0] == arn


@pytest.mark.parametrize(
    ("change", "request_body"),
    [
        ({"stream": True}, "Unknown parameter"),
        ({"inferenceConfig": {"maxTokens": "x"}}, "Invalid type"),
        ({"messages": [{"role": "assistant", "content": [{"text": "x"}]}]}, "alternate"),
        ({"messages": [{"role": "user", "content": [{"text": " "}]}]}, "blank"),
        (
            {"messages": [{"role": "user", "content": [{"toolResult": {"toolUseId": "x", "content": []}}]}]},
            "toolResult",
        ),
    ],
)
def test_the_vendors_checks_find_faults(change, request_body) -> None:
    body = {"messages": [{"role": "user", "content": [{"text": "x"}]}], **change}
    assert request_body in (fault_in(body, MODEL, "Converse") or "")
