"""Requests, whole answers and streams are converted from each chat dialect to the other and back."""

import msgspec
import pytest

from gatehouse.engine.conversation.call import ModelCall
from gatehouse.engine.conversation.dialects import DIALECTS
from gatehouse.engine.conversation.errors import InvalidField
from gatehouse.engine.conversation.form import (
    Completion,
    FormMessage,
    GenerationFinished,
    Image,
    Reasoning,
    Request,
    ResponseFormat,
    Sampling,
    StreamEnded,
    StreamStarted,
    Text,
    TextDelta,
    Tool,
    ToolArguments,
    ToolCall,
    ToolChoice,
    ToolResult,
    UsageDelta,
)
from gatehouse.engine.conversation.sse import events
from gatehouse.engine.conversation.usage import Usage
from gatehouse.engine.providers.sandbox.answering import deltas_of
from gatehouse.foundation.errors import TooManyRequests

CHAT = ["openai_chat", "anthropic_messages"]
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = Tool(name="weather", description="Tells it.", parameters=SCHEMA)
USAGE = Usage(input_tokens=7, output_tokens=5, cached_tokens=3)
_ANY = ModelCall(dialect="openai_chat", model="m", stream=False, body={})


def request(*messages: FormMessage, **more) -> Request:
    more.setdefault("sampling", Sampling(max_tokens=99))
    return Request(model="m", messages=messages or (FormMessage("user", (Text("hi"),)),), **more)


REQUESTS = {
    "plain": request(),
    "system": request(FormMessage("system", (Text("Be kind."),)), FormMessage("user", (Text("hi"),))),
    "turns": request(
        FormMessage("user", (Text("one"),)),
        FormMessage("assistant", (Text("two"),)),
        FormMessage("user", (Text("three"),)),
    ),
    "image by url": request(FormMessage("user", (Text("what?"), Image(url="https://x.example/a.png")))),
    "image as data": request(FormMessage("user", (Image(data="aGk=", media_type="image/png"), Text("what?")))),
    "tools": request(tools=(WEATHER,), tool_choice=ToolChoice("required"), parallel_tool_calls=False),
    "named tool": request(tools=(WEATHER,), tool_choice=ToolChoice("named", "weather")),
    "no tool": request(tools=(WEATHER,), tool_choice=ToolChoice("none")),
    "tool use": request(
        FormMessage("user", (Text("weather?"),)),
        FormMessage(
            "assistant", (Text("Let me look."), ToolCall(id="c1", name="weather", arguments='{"city":"Bonn"}'))
        ),
        FormMessage("user", (ToolResult(call_id="c1", content=(Text("sunny"),)),)),
        tools=(WEATHER,),
    ),
    "schema": request(response_format=ResponseFormat(kind="json_schema", schema=SCHEMA)),
    "sampling": request(sampling=Sampling(max_tokens=5, temperature=0.5, top_p=0.9, stop=("END",)), user="u1"),
    "stream": request(stream=True),
}


@pytest.mark.parametrize("name", CHAT)
@pytest.mark.parametrize("case", REQUESTS)
def test_a_request_written_and_read_again_is_the_same(name, case):
    dialect, expected = DIALECTS[name], REQUESTS[case]
    call = dialect.decode(msgspec.json.encode(dialect.from_internal(expected)))
    read = dialect.to_internal(call)
    if expected.response_format is not None:
        # Only one of the two dialects has names for schemas.
        assert read.response_format is not None
        assert read.response_format.schema == expected.response_format.schema
        read = msgspec.structs.replace(read, response_format=expected.response_format)
    assert read == expected


@pytest.mark.parametrize("case", REQUESTS)
def test_a_request_survives_the_way_through_the_other_dialect(case):
    here, there = (DIALECTS[name] for name in CHAT)
    first = here.from_internal(REQUESTS[case])
    middle = there.from_internal(here.to_internal(here.decode(msgspec.json.encode(first))))
    assert here.from_internal(there.to_internal(there.decode(msgspec.json.encode(middle)))) == first


def test_results_of_several_tools_become_one_message_for_anthropic_and_several_for_openai():
    results = FormMessage("user", tuple(ToolResult(call_id=f"c{n}", content=(Text(str(n)),)) for n in (1, 2)))
    openai = DIALECTS["openai_chat"].from_internal(request(results))["messages"]
    assert [(message["role"], message["tool_call_id"]) for message in openai] == [("tool", "c1"), ("tool", "c2")]
    separate = [FormMessage("user", (part,)) for part in results.parts]
    anthropic = DIALECTS["anthropic_messages"].from_internal(request(*separate))["messages"]
    assert [block["tool_use_id"] for message in anthropic for block in message["content"]] == ["c1", "c2"]
    assert len(anthropic) == 1


def test_ids_of_calls_that_anthropic_would_refuse_are_made_to_fit():
    calls = tuple(ToolCall(id=item, name="f", arguments="{}") for item in ("toolu_1", "functions.f:0"))
    results = tuple(ToolResult(call_id=call.id, content=()) for call in calls)
    requested = request(FormMessage("assistant", calls), FormMessage("user", results))
    made, answered = DIALECTS["anthropic_messages"].from_internal(requested)["messages"]
    ids = [block["id"] for block in made["content"]]
    assert ids == [block["tool_use_id"] for block in answered["content"]]
    assert ids[0] == "toolu_1"
    assert ids[1].isalnum()


def test_texts_that_follow_each_other_are_one_block_for_anthropics_clients():
    """Many clients read only the first block, and a streamed answer has a single block too."""
    parts = (Text("Hi "), Text("there"), ToolCall(id="c", name="f", arguments="{}"), Text("after"))
    answer = Completion(id="x", model="m", parts=parts, finish="stop")
    shown = msgspec.json.decode(DIALECTS["anthropic_messages"].render_reply(answer, _ANY))
    assert [block.get("text") for block in shown["content"]] == ["Hi there", None, "after"]


def test_limit_temperature_and_json_mode_are_converted_for_anthropic():
    expected = request(sampling=Sampling(temperature=1.7), response_format=ResponseFormat(kind="json_object"))
    body = DIALECTS["anthropic_messages"].from_internal(expected)
    assert (body["max_tokens"], body["temperature"]) == (4096, 1.0)
    assert "JSON" in body["system"]


@pytest.mark.parametrize(
    ("name", "changes", "param"),
    [
        ("openai_chat", {"tools": [{"type": "web_search"}]}, "tools[0]"),
        ("openai_chat", {"tools": [{"type": "function", "function": {}}]}, "tools[0].function.name"),
        ("openai_chat", {"tools": [{"type": {}, "function": {"name": "f"}}]}, "tools[0]"),
        ("openai_chat", {"messages": [{"role": "user", "content": [{"type": []}]}]}, "messages[0].content[0]"),
        ("anthropic_messages", {"tools": [{"type": [], "name": "f", "input_schema": {}}]}, "tools[0]"),
        ("anthropic_messages", {"tool_choice": {"type": []}}, "tool_choice"),
        ("anthropic_messages", {"messages": [{"role": "user", "content": [{"type": {}}]}]}, "messages[0].content[0]"),
        ("anthropic_messages", {"system": [{"type": []}]}, "system[0]"),
        ("openai_chat", {"tool_choice": "maybe"}, "tool_choice"),
        ("openai_chat", {"response_format": {"type": "xml"}}, "response_format"),
        ("openai_chat", {"messages": [{"role": "tool", "content": "x"}]}, "messages[0].tool_call_id"),
        (
            "openai_chat",
            {"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]},
            "messages[0].content[0]",
        ),
        ("anthropic_messages", {"tools": [{"type": "bash_20250124", "name": "bash"}]}, "tools[0]"),
        ("anthropic_messages", {"tool_choice": {"type": "maybe"}}, "tool_choice"),
        (
            "anthropic_messages",
            {"messages": [{"role": "user", "content": [{"type": "document"}]}]},
            "messages[0].content[0]",
        ),
    ],
)
def test_a_field_that_cannot_be_converted_is_refused_by_name(name, changes, param):
    body = {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "x"}], **changes}
    dialect = DIALECTS[name]
    with pytest.raises(InvalidField) as refused:
        dialect.to_internal(dialect.decode(msgspec.json.encode(body)))
    assert refused.value.extra["param"] == param


def test_thinking_of_an_earlier_turn_reaches_only_the_providers_that_signed_it():
    dialect, other = DIALECTS["anthropic_messages"], DIALECTS["openai_chat"]
    content = [{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "text", "text": "yes"}]
    body = {"model": "m", "max_tokens": 5, "messages": [{"role": "assistant", "content": content}]}
    read = dialect.to_internal(dialect.decode(msgspec.json.encode(body)))
    assert read.messages[0].parts == (Reasoning(text="hm", signature="s"), Text("yes"))
    assert other.from_internal(read)["messages"] == [{"role": "assistant", "content": "yes"}]


COMPLETIONS = {
    "text": Completion(id="i", model="m", created=9, parts=(Text("hi"),), finish="stop", usage=USAGE),
    "cut short": Completion(id="i", model="m", created=9, parts=(Text("hi"),), finish="length", usage=USAGE),
    "filtered": Completion(id="i", model="m", created=9, parts=(), finish="content_filter", usage=USAGE),
    "tools": Completion(
        id="i",
        model="m",
        created=9,
        parts=(
            Text("Let me look."),
            ToolCall(id="c1", name="weather", arguments='{"city":"Bonn"}'),
            ToolCall(id="c2", name="weather", arguments="{}"),
        ),
        finish="tool_calls",
        usage=USAGE,
    ),
}


@pytest.mark.parametrize("name", CHAT)
@pytest.mark.parametrize("case", COMPLETIONS)
def test_an_answer_written_and_read_again_is_the_same(name, case):
    dialect, expected = DIALECTS[name], COMPLETIONS[case]
    read = dialect.parse_reply(dialect.render_reply(expected, _ANY))
    assert msgspec.structs.replace(read, created=9) == expected


def _collected(deltas) -> tuple:
    text, tools = "", {}
    finish = usage = None
    ended = False
    for delta in deltas:
        match delta:
            case TextDelta():
                text += delta.text
            case ToolArguments():
                tools[delta.index] = (*tools[delta.index][:2], tools[delta.index][2] + delta.text)
            case GenerationFinished():
                finish = delta.reason
            case UsageDelta():
                usage = delta.usage
            case StreamEnded():
                ended = True
            case _ if hasattr(delta, "name"):
                tools[delta.index] = (delta.id, delta.name, "")
    return text, tools, finish, usage, ended


@pytest.mark.parametrize("name", CHAT)
@pytest.mark.parametrize("case", COMPLETIONS)
def test_a_stream_that_is_written_and_read_has_the_same_deltas(name, case):
    dialect, expected = DIALECTS[name], list(deltas_of(COMPLETIONS[case]))
    body = {
        "model": "m",
        "max_tokens": 5,
        "messages": [{"role": "user", "content": "x"}],
        "stream_options": {"include_usage": True},
    }
    writer, reader = dialect.stream_writer(dialect.decode(msgspec.json.encode(body))), dialect.stream_reader()
    stream = b"".join(map(writer.write, expected))
    read = [delta for event in events(stream) for delta in reader.read(event)]
    assert isinstance(read[0], StreamStarted)
    assert (read[0].id, read[0].model) == ("i", "m")
    assert _collected(read) == _collected(expected)


@pytest.mark.parametrize(
    ("name", "wrapped"), [("openai_chat", False), ("openai_embeddings", False), ("anthropic_messages", True)]
)
def test_an_error_is_in_the_gateways_envelope(name, wrapped):
    error = TooManyRequests("Slow down.", tier="standard", retry_after=3)
    fields = {
        "message": "Slow down.", "type": "rate_limit_error", "code": "quota_exceeded", "tier": "standard",
        "retry_after": 3,
    }  # fmt: skip
    expected = {"type": "error", "error": fields} if wrapped else {"error": fields}
    assert msgspec.json.decode(DIALECTS[name].render_error(error)) == expected
    event = DIALECTS[name].render_stream_error(error)
    assert event.startswith(b"event: error\ndata: ")
    assert msgspec.json.decode(event.split(b"data: ")[1]) == expected


@pytest.mark.parametrize("calls", [(), (ToolCall(id="c1", name="weather", arguments="{}"),)])
def test_an_image_in_an_answer_is_refused_where_only_users_may_send_images(calls: tuple[ToolCall, ...]) -> None:
    answered = FormMessage("assistant", (Text("this"), Image(url="https://x.example/a.png"), *calls))
    with pytest.raises(InvalidField) as refused:
        DIALECTS["openai_chat"].from_internal(request(answered))
    assert "only from the user" in str(refused.value)
