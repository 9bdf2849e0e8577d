"""Gemini over a real socket. google-genai's models accept the requests. Answers are converted to any dialect."""

import base64
import json
import struct
from typing import Any

import pytest
from google import genai
from google.genai import types
from tests.engine.providers.conftest import call, candidate, everything
from tests.engine.providers.wires import CHAT, OPENAI_REPLY, answering
from tests.support.upstream import upstream
from tests.support.vendors.gemini import CALL, KEY, SIGNATURE, Gemini, fault_in

from gatehouse.engine.conversation.dialects import DIALECTS
from gatehouse.engine.conversation.errors import ContextTooLong, InvalidField, RefusedUpstream
from gatehouse.engine.conversation.slots import Slot, slots
from gatehouse.engine.conversation.usage import Usage
from gatehouse.engine.providers import KINDS, ProviderFailed, ProviderModel
from gatehouse.engine.providers.registry import SPOKEN
from gatehouse.engine.providers.streams import Converting
from gatehouse.policy.catalog import ProviderConfig, ProviderRecord

MODEL = "gemini-3-flash"
#: 20 input tokens, of which 8 were cached; thoughts are billed as output
USAGE = Usage(input_tokens=12, cached_tokens=8, output_tokens=12, reasoning_tokens=7)
PIXEL = "iVBORw0KGgo="
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "description": "Tells it.",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
            "strict": True,
        },
    },
    {"type": "function", "function": {"name": "now"}},
]
ANTHROPIC_TOOLS = [{"name": "weather", "input_schema": {"type": "object", "properties": {}}}]


@pytest.fixture
def ask_gemini(ask):
    """Return a function that calls a fake Gemini and asserts that it accepted the request:
    `await ask_gemini(vendor, call(...))`."""

    async def through(vendor: Gemini, request: Any, *, model: str = MODEL, key: str = KEY) -> Any:
        async with upstream(vendor) as server:
            place = candidate("gemini", model, base_url=f"{server.url}/v1beta")
            reply = await ask(request, place, secret={"api_key": key})
            try:
                if reply.body is None:
                    reply.events = __iterate([block async for block in reply.events])
            finally:
                await reply.close()
        assert vendor.faults == []
        return reply

    return through


async def __iterate(blocks: list[bytes]) -> Any:
    for block in blocks:
        yield block


async def sdk(server: Any) -> genai.Client:
    return genai.Client(api_key=KEY, http_options=types.HttpOptions(base_url=server.url, api_version="v1beta"))


def summary_of(reply: Any, dialect: str) -> dict[str, Any]:
    """Return the text, tools, id, model and stop reason of a whole answer in either dialect."""
    body = json.loads(reply.body)
    if dialect == "openai_chat":
        (choice,) = body["choices"]
        calls = choice["message"].get("tool_calls", [])
        return {
            "text": choice["message"]["content"],
            "tools": [(one["function"]["name"], json.loads(one["function"]["arguments"])) for one in calls],
            "id": body["id"],
            "model": body["model"],
            "why": choice["finish_reason"],
        }
    blocks = body["content"]
    return {
        "text": "".join(block["text"] for block in blocks if block["type"] == "text") or None,
        "tools": [(block["name"], block["input"]) for block in blocks if block["type"] == "tool_use"],
        "id": body["id"],
        "model": body["model"],
        "why": body["stop_reason"],
    }


async def test_the_vendors_own_client_reads_the_answers_of_the_fake_vendor() -> None:
    vendor = Gemini(models=[{"name": "models/a", "supportedGenerationMethods": ["generateContent"]}])
    async with upstream(vendor) as server:
        client = (await sdk(server)).aio
        whole = await client.models.generate_content(model=MODEL, contents="hi")
        stream = [one async for one in await client.models.generate_content_stream(model=MODEL, contents="hi")]
        embedded = await client.models.embed_content(model="gemini-embedding-001", contents=["a", "b"])
        listed = [one.name async for one in await client.models.list()]
        await client.aclose()
    assert whole.text == "Hi ä"
    assert whole.usage_metadata.cached_content_token_count == 8
    assert "".join(one.text or "" for one in stream) == "Hi ä"
    assert stream[-1].candidates[0].finish_reason is types.FinishReason.STOP
    assert len(embedded.embeddings) == 2
    assert listed == ["models/a"]
    assert vendor.faults == []


@pytest.mark.parametrize("dialect", CHAT)
async def test_an_answer_in_any_dialect(ask_gemini, dialect) -> None:
    reply = await ask_gemini(Gemini(), call(dialect))
    assert reply.usage()[0] == USAGE
    assert summary_of(reply, dialect) == {
        "text": "Hi ä",
        "tools": [],
        "id": "r-1",
        "model": "p/the-model",
        "why": "stop" if dialect == "openai_chat" else "end_turn",
    }


@pytest.mark.parametrize("dialect", CHAT)
async def test_a_stream_in_any_dialect(ask_gemini, dialect) -> None:
    reply = await ask_gemini(Gemini(), call(dialect, stream=True))
    got = (await everything(reply)).decode()
    assert reply.usage() == (USAGE, False)
    assert "Hi " in got
    assert "ä" in got
    assert ("Thinking" in got) is (dialect == "openai_chat")
    assert got.endswith("data: [DONE]\n\n" if dialect == "openai_chat" else '{"type":"message_stop"}\n\n')


@pytest.mark.parametrize("stream", [False, True])
async def test_a_call_of_the_responses_api_is_converted(ask_gemini, stream) -> None:
    vendor = Gemini({"text": "Let me see."}, CALL)
    tool = {"type": "function", "name": "weather", "parameters": {"type": "object", "properties": {}}}
    body = {"model": "p/m", "input": "Weather?", "instructions": "Be short.", "tools": [tool], "stream": stream}
    reply = await ask_gemini(vendor, DIALECTS["openai_responses"].decode(json.dumps(body).encode()))
    response_body = await everything(reply) if stream else reply.body
    assert b"Let me" in response_body
    assert b"K\xc3\xb6ln" in response_body or b"K\\\\u00f6ln" in response_body
    assert b'"output_tokens_details":{"reasoning_tokens":7}' in response_body
    assert reply.usage()[0] == USAGE


async def test_a_request_with_everything(ask_gemini) -> None:
    vendor = Gemini()
    request = call(
        messages=[
            {"role": "system", "content": "Be short."},
            {"role": "developer", "content": "Be kind."},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "What is this?"},
                    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
                    {"type": "image_url", "image_url": {"url": "https://example.com/a.jpg?x=1"}},
                ],
            },
        ],
        tools=TOOLS,
        tool_choice={"type": "function", "function": {"name": "weather"}},
        parallel_tool_calls=False,
        response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}},
        temperature=0.5,
        top_p=0.9,
        seed=7,
        frequency_penalty=0.1,
        presence_penalty=0.2,
        stop=["END"],
        user="somebody",
    )
    await ask_gemini(vendor, request)
    assert vendor.bodies == [
        {
            "contents": [
                {
                    "role": "user",
                    "parts": [
                        {"text": "What is this?"},
                        {"inlineData": {"mimeType": "image/png", "data": PIXEL}},
                        {"fileData": {"fileUri": "https://example.com/a.jpg?x=1", "mimeType": "image/jpeg"}},
                    ],
                }
            ],
            "systemInstruction": {"parts": [{"text": "Be short."}, {"text": "Be kind."}]},
            "tools": [
                {
                    "functionDeclarations": [
                        {
                            "name": "weather",
                            "description": "Tells it.",
                            "parametersJsonSchema": TOOLS[0]["function"]["parameters"],
                        },
                        {"name": "now"},
                    ]
                }
            ],
            "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["weather"]}},
            "generationConfig": {
                "maxOutputTokens": 500,
                "temperature": 0.5,
                "topP": 0.9,
                "seed": 7,
                "frequencyPenalty": 0.1,
                "presencePenalty": 0.2,
                "stopSequences": ["END"],
                "responseMimeType": "application/json",
                "responseJsonSchema": {"type": "object"},
            },
        }
    ]


@pytest.mark.parametrize(("choice", "mode"), [("auto", "AUTO"), ("none", "NONE"), ("required", "ANY")])
async def test_choices_of_tools(ask_gemini, choice, mode) -> None:
    vendor = Gemini()
    await ask_gemini(vendor, call(tools=TOOLS, tool_choice=choice))
    assert vendor.bodies[0]["toolConfig"] == {"functionCallingConfig": {"mode": mode}}


async def test_json_mode_is_a_media_type(ask_gemini) -> None:
    vendor = Gemini()
    await ask_gemini(vendor, call(response_format={"type": "json_object"}))
    assert vendor.bodies[0]["generationConfig"]["responseMimeType"] == "application/json"
    assert "responseJsonSchema" not in vendor.bodies[0]["generationConfig"]


@pytest.mark.parametrize("dialect", CHAT)
async def test_parallel_tool_calls_of_a_whole_answer(ask_gemini, dialect) -> None:
    tools = ANTHROPIC_TOOLS if dialect == "anthropic_messages" else TOOLS
    vendor = Gemini({"text": "Let me see."}, CALL, {"functionCall": {"name": "now", "id": "own"}})
    reply = await ask_gemini(vendor, call(dialect, tools=tools))
    result = summary_of(reply, dialect)
    assert result["tools"] == [("weather", {"city": "Köln"}), ("now", {})]
    assert result["why"] == ("tool_calls" if dialect == "openai_chat" else "tool_use")


async def test_tool_calls_and_their_results_go_there_and_back(ask_gemini) -> None:
    """The client sends the signature of the thoughts back. Newer models refuse the next turn without it."""
    first = await ask_gemini(Gemini(CALL, {"functionCall": {"name": "now", "args": {}}}), call(tools=TOOLS))
    message = json.loads(first.body)["choices"][0]["message"]
    ids = [one["id"] for one in message["tool_calls"]]
    assert len({*ids}) == 2
    vendor = Gemini()
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}
    results = [
        {"role": "tool", "tool_call_id": ids[0], "content": '{"degrees": 9}'},
        {"role": "tool", "tool_call_id": ids[1], "content": [{"type": "text", "text": "noon"}, picture]},
    ]
    question = {"role": "user", "content": "Weather?"}
    await ask_gemini(vendor, call(tools=TOOLS, messages=[question, message, *results]))
    contents = vendor.bodies[0]["contents"]
    assert contents[1] == {
        "role": "model",
        "parts": [
            {
                "functionCall": {"name": "weather", "args": {"city": "Köln"}, "id": ids[0]},
                "thoughtSignature": SIGNATURE,
            },
            {"functionCall": {"name": "now", "args": {}, "id": ids[1]}},
        ],
    }
    assert contents[2] == {
        "role": "user",
        "parts": [
            {"functionResponse": {"id": ids[0], "name": "weather", "response": {"degrees": 9}}},
            {"functionResponse": {"id": ids[1], "name": "now", "response": {"result": "noon"}}},
            {"inlineData": {"mimeType": "image/png", "data": PIXEL}},
        ],
    }


async def test_a_streamed_tool_call_brings_its_signature(ask_gemini) -> None:
    reply = await ask_gemini(Gemini({"text": "So:"}, CALL, CALL), call(tools=TOOLS, stream=True))
    chunks = [json.loads(line[6:]) for line in (await everything(reply)).splitlines() if line.startswith(b"data: {")]
    calls = [one for chunk in chunks for one in chunk["choices"][0]["delta"].get("tool_calls", [])]
    started = [one for one in calls if "id" in one]
    assert [one["index"] for one in started] == [0, 1]
    assert started[0]["extra_content"] == {"google": {"thought_signature": SIGNATURE}}
    arguments = "".join(one["function"]["arguments"] for one in calls if one["index"] == 1)
    assert json.loads(arguments) == {"city": "Köln"}
    assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"


@pytest.mark.parametrize(
    ("kind", "goes_along"), [("openai", False), ("azure_openai", False), ("openai_compatible", True)]
)
async def test_a_signature_is_not_sent_to_providers_that_refuse_it(ask, kind, goes_along) -> None:
    """A fallback receives the history too. Google's own endpoint for OpenAI's dialect requires the signature."""
    first = json.loads(OPENAI_REPLY)
    tool = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    signed = {**tool, "extra_content": {"google": {"thought_signature": SIGNATURE}}}
    question = {"role": "user", "content": "Weather?"}
    request = call(
        messages=[
            question,
            {"role": "assistant", "content": None, "tool_calls": [signed]},
            {"role": "tool", "tool_call_id": "c1", "content": "9"},
        ]
    )
    async with upstream(answering(json.dumps(first).encode())) as server:
        place = {"hosted_endpoint": server.url} if kind == "azure_openai" else {"base_url": server.url}
        await ask(request, candidate(kind, **place))
        sent = json.loads(server.requests[0].body)["messages"]
    assert sent[0] == question
    assert sent[1]["tool_calls"] == [signed if goes_along else tool]
    assert request.body["messages"][1]["tool_calls"] == [signed], "the next candidate gets it whole"


def test_a_signature_is_sealed_unless_it_is_a_text() -> None:
    def texts(signature: str) -> list[tuple[str, bool]]:
        extra = {"google": {"thought_signature": signature}}
        content_slots = slots({"messages": [{"role": "assistant", "tool_calls": [{"extra_content": extra}]}]})
        return [(one.text, one.is_sealed) for one in content_slots if isinstance(one, Slot)]

    signature = base64.b64encode(bytes(range(256))).decode()
    assert texts(signature) == [(signature, True)]
    assert texts("my number is 4111 1111 1111 1111, " * 4) == [("my number is 4111 1111 1111 1111, " * 4, False)]


@pytest.mark.parametrize("dialect", CHAT)
def test_a_stream_gives_the_same_result_however_it_is_split(monkeypatch, dialect) -> None:
    monkeypatch.setattr("time.time", lambda: 1.0)
    own = {"functionCall": {"name": "now", "id": "own"}}
    whole = b"".join(Gemini({"text": "Hi ä"}, own).events(MODEL))

    def through(parts: list[bytes]) -> tuple[bytes, Usage | None]:
        writer = DIALECTS[dialect].stream_writer(call(dialect, stream=True))
        stream = Converting(SPOKEN["gemini_generate"].stream_reader(), writer)
        return b"".join(map(stream.push, parts)) + stream.end(), stream.usage

    once = through([whole])
    assert once[1] == USAGE
    for cut in range(1, len(whole)):
        assert through([whole[:cut], whole[cut:]]) == once
    assert through([whole[at : at + 1] for at in range(len(whole))]) == once


@pytest.mark.parametrize(
    ("model", "signature"),
    [
        (MODEL, "skip_thought_signature_validator"),
        ("gemini-2.5-pro", None),
        ("gemini-flash-latest", "skip_thought_signature_validator"),
    ],
)
async def test_a_call_without_a_known_signature_is_marked_as_such(ask_gemini, model, signature) -> None:
    vendor = Gemini()
    request = call(
        "anthropic_messages",
        tools=ANTHROPIC_TOOLS,
        messages=[
            {"role": "user", "content": "Weather?"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "x"},
                    {"type": "tool_use", "id": "t1", "name": "weather", "input": {}},
                    {"type": "tool_use", "id": "t2", "name": "weather", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "t1", "content": "no such city", "is_error": True},
                    {"type": "tool_result", "tool_use_id": "t2", "content": "[1]"},
                ],
            },
        ],
    )
    await ask_gemini(vendor, request, model=model)
    _, calls, results = vendor.bodies[0]["contents"]
    assert [part.get("thoughtSignature") for part in calls["parts"]] == [signature, None]
    assert [part["functionResponse"]["response"] for part in results["parts"]] == [
        {"error": "no such city"},
        {"result": [1]},
    ]


async def test_a_result_without_its_call_is_the_clients_error(ask) -> None:
    lost = [{"role": "user", "content": "x"}, {"role": "tool", "tool_call_id": "gone", "content": "x"}]
    with pytest.raises(ProviderFailed) as failed:
        await ask(call(messages=lost), candidate("gemini", MODEL))
    assert isinstance(failed.value.client_error, InvalidField)
    assert failed.value.client_error.extra == {"param": "messages[1]"}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("vendor", "why"),
    [
        (Gemini(block="PROHIBITED_CONTENT"), "content_filter"),
        (Gemini({"text": ""}, finish="SAFETY"), "content_filter"),
        (Gemini({"text": "Some"}, finish="RECITATION"), "content_filter"),
        (Gemini({"text": "Some"}, finish="MAX_TOKENS"), "length"),
        (Gemini({"text": "Some"}, finish="A_NEW_ONE"), "stop"),
    ],
)
async def test_the_stop_reason_is_converted(ask_gemini, vendor, why, stream) -> None:
    reply = await ask_gemini(vendor, call(stream=stream))
    assert f'"finish_reason":"{why}"'.encode() in (await everything(reply) if stream else reply.body)
    assert reply.usage()[0] == USAGE


@pytest.mark.parametrize("stream", [False, True])
async def test_a_tool_call_that_cannot_be_read_is_no_answer(ask_gemini, stream) -> None:
    with pytest.raises(ProviderFailed, match="bad_reply") as failed:
        await ask_gemini(Gemini({"text": ""}, finish="MALFORMED_FUNCTION_CALL"), call(stream=stream))
    assert failed.value.move_on


async def test_a_wrong_key_is_not_an_error_of_the_client(ask_gemini) -> None:
    with pytest.raises(ProviderFailed, match="unauthorized") as failed:
        await ask_gemini(Gemini(), call(), key="AIza-wrong")
    assert (failed.value.status, failed.value.move_on) == (400, True)


@pytest.mark.parametrize(
    ("status", "error", "reason", "wait"),
    [
        (400, {"status": "FAILED_PRECONDITION", "message": "User location is not supported."}, "http_400", None),
        (403, {"status": "PERMISSION_DENIED"}, "unauthorized", None),
        (429, {"status": "RESOURCE_EXHAUSTED", "details": [{"retryDelay": "34.5s"}]}, "rate_limited", 34.5),
        (429, {"status": "RESOURCE_EXHAUSTED", "details": [{"@type": "QuotaFailure"}]}, "rate_limited", None),
        (500, {"status": "INTERNAL"}, "http_500", None),
        (503, {"status": "UNAVAILABLE"}, "http_503", None),
        (504, {"status": "DEADLINE_EXCEEDED"}, "http_504", None),
    ],
)
async def test_errors_of_the_vendor(ask, status, error, reason, wait) -> None:
    async with upstream(answering(json.dumps({"error": {"code": status, **error}}).encode(), status)) as server:
        with pytest.raises(ProviderFailed, match=reason) as failed:
            await ask(call(), candidate("gemini", MODEL, base_url=server.url))
    assert failed.value.retry_after == wait
    assert failed.value.retryable is (status >= 500)
    assert failed.value.client_error is None


@pytest.mark.parametrize(
    ("message", "leaf"),
    [
        ("The input token count (9) exceeds the maximum number of tokens allowed (8).", ContextTooLong),
        ("Unknown name", RefusedUpstream),
    ],
)
async def test_a_request_that_the_vendor_refuses_is_the_clients_error(ask, message, leaf) -> None:
    error = {"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}
    async with upstream(answering(json.dumps(error).encode(), 400)) as server:
        with pytest.raises(ProviderFailed) as failed:
            await ask(call(), candidate("gemini", MODEL, base_url=server.url))
    assert type(failed.value.client_error) is leaf


async def test_a_fault_in_the_middle_of_a_stream_breaks_it(ask) -> None:
    async def behave(connection: Any) -> None:
        await connection.begin_stream()
        await connection.chunk(Gemini({"text": "Hi"}, finish=None).events(MODEL)[0])
        await connection.chunk(b'data: {"error": {"code": 503, "message": "overloaded"}}\r\n\r\n')
        await connection.end_stream()

    async with upstream(behave) as server:
        reply = await ask(call(stream=True), candidate("gemini", MODEL, base_url=server.url))
        got = b""
        with pytest.raises(ProviderFailed, match="stream_error"):
            async for block in reply.events:
                got += block
        await reply.close()
    assert b"Hi" in got
    assert b"overloaded" not in got


async def test_a_stream_without_a_reason_to_finish_broke_off(ask_gemini) -> None:
    with pytest.raises(ProviderFailed, match="connection_closed"):
        await ask_gemini(Gemini(finish=None), call(stream=True))


@pytest.mark.parametrize("encoding", ["float", "base64"])
async def test_embeddings(ask_gemini, encoding) -> None:
    vendor = Gemini()
    request = call("openai_embeddings", input=["one", "two three"], dimensions=2, encoding_format=encoding)
    reply = await ask_gemini(vendor, request, model="gemini-embedding-001")
    assert vendor.bodies[0]["requests"][0] == {
        "model": "models/gemini-embedding-001",
        "content": {"parts": [{"text": "one"}]},
        "outputDimensionality": 2,
    }
    body = json.loads(reply.body)
    assert (body["model"], body["usage"]["prompt_tokens"]) == ("p/the-model", 4)
    vectors = [one["embedding"] for one in body["data"]]
    if encoding == "base64":
        vectors = [list(struct.unpack("<2f", base64.b64decode(vector))) for vector in vectors]
    assert len(vectors) == 2
    assert vectors[0][1] == 0.5
    assert reply.usage()[0] == Usage(input_tokens=4)


async def test_embeddings_of_tokens_are_refused(ask) -> None:
    with pytest.raises(ProviderFailed) as failed:
        await ask(call("openai_embeddings", input=[1, 2, 3]), candidate("gemini", MODEL))
    assert failed.value.client_error.extra == {"param": "input"}


async def test_models_are_listed_over_pages(outbound) -> None:
    def shown(name: str, *methods: str) -> dict[str, Any]:
        return {
            "name": name,
            "displayName": name.upper(),
            "inputTokenLimit": 9,
            "outputTokenLimit": 5,
            "supportedGenerationMethods": list(methods),
        }

    vendor = Gemini(
        models=[
            shown("models/a", "generateContent", "countTokens"),
            shown("models/b", "predict"),
            shown("models/c", "embedContent"),
        ]
    )
    async with upstream(vendor) as server:
        record = ProviderRecord(id="g", name="G", kind="gemini", config=ProviderConfig(base_url=server.url))
        models = await KINDS["gemini"].list_models(outbound, record, {"api_key": KEY})
        with pytest.raises(ProviderFailed, match="unauthorized"):
            await KINDS["gemini"].list_models(outbound, record, {"api_key": "wrong"})
    window = {"context_window": 9, "max_output_tokens": 5}
    assert models == [
        ProviderModel(model_id="a", display_name="MODELS/A", supports_streaming=True, **window),
        ProviderModel(model_id="c", display_name="MODELS/C", supports_streaming=False, **window),
    ]


@pytest.mark.parametrize(
    ("model", "path"),
    [
        ("gemini-3-flash", "/models/gemini-3-flash:"),
        ("tunedModels/mine", "/tunedModels/mine:"),
        ("a?b#c", "/models/a%3Fb%23c:"),
    ],
)
async def test_the_path_contains_the_model(ask, model, path) -> None:
    async with upstream(answering(b'{"candidates":[{}]}')) as server:
        await ask(call(), candidate("gemini", model, base_url=server.url))
        assert server.requests[0].head.startswith(f"POST {path}generateContent HTTP/1.1")
        assert KEY not in server.requests[0].head.split("\r\n")[0]


@pytest.mark.parametrize(
    ("change", "body"),
    [
        ({"stream": True}, "Unknown name"),
        ({"generationConfig": {"n": 1}}, "Extra inputs"),
        ({"contents": [{"role": "system", "parts": []}]}, "roles"),
    ],
)
def test_the_vendors_checks_find_faults(change, body) -> None:
    assert body in (fault_in({"contents": [{"role": "user", "parts": [{"text": "x"}]}], **change}, MODEL) or "")
