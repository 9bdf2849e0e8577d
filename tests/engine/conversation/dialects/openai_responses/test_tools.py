"""Requests of coding agents over the responses API: custom tools, namespaces, tools that the gateway leaves out, and
references to items."""

import json
from typing import Any

import msgspec
import pytest
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from gatehouse.engine.conversation.dialects import DIALECTS, PASSING
from gatehouse.engine.conversation.dialects.openai_responses import items as items_module
from gatehouse.engine.conversation.errors import InvalidField
from gatehouse.engine.conversation.form import (
    Completion,
    Delta,
    FormMessage,
    GenerationFinished,
    Part,
    Request,
    Role,
    StreamEnded,
    StreamStarted,
    Text,
    TextDelta,
    ToolArguments,
    ToolCall,
    ToolStarted,
)
from gatehouse.engine.conversation.sse import data_of, events

RESPONSES = DIALECTS["openai_responses"]
EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
PATCH = "*** Begin Patch\n*** Add File: a.txt\n+one\n*** End Patch"
SHELL = {"type": "function", "name": "exec_command", "strict": False, "parameters": {"type": "object"}}
APPLY_PATCH = {
    "type": "custom",
    "name": "apply_patch",
    "description": "Edits files.",
    "format": {"type": "grammar", "syntax": "lark", "definition": "start: begin hunk+ end"},
}
AGENTS = {
    "type": "namespace",
    "name": "multi_agent_v1",
    "description": "Tools for agents.",
    "tools": [
        {"type": "function", "name": "spawn_agent", "description": "Starts one.", "parameters": {"type": "object"}},
        {"type": "custom", "name": "message", "format": {"type": "text"}},
    ],
}
SEARCH = {"type": "tool_search", "execution": "client", "description": "Finds tools.", "parameters": {}}
#: the tools of a coding agent's first request, in its order
AGENT_TOOLS = [SHELL, APPLY_PATCH, AGENTS, SEARCH, {"type": "web_search", "external_web_access": True}]
AGENT: dict[str, Any] = {
    "instructions": "You are a coding agent.",
    "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Add a file."}]}],
    "tools": AGENT_TOOLS,
    "tool_choice": "auto",
    "parallel_tool_calls": False,
    "reasoning": {"effort": "medium", "summary": "auto"},
    "store": False,
    "stream": True,
    "include": ["reasoning.encrypted_content"],
    "prompt_cache_key": "0190-4711",
    "text": {"verbosity": "low"},
    "client_metadata": {"installation": "x"},
}


def decode(**body: Any):
    return RESPONSES.decode(msgspec.json.encode({"model": "p/m", "input": "hi", **body}))


def internal(**body: Any) -> Request:
    request = RESPONSES.to_internal(decode(**body))
    assert isinstance(request, Request)
    return request


def whole(*parts: Text | ToolCall, **body: Any) -> list[dict[str, Any]]:
    completion = Completion(id="c1", model="m-1", parts=parts, finish="tool_calls", created=5)
    shown = json.loads(RESPONSES.render_reply(completion, decode(**body)))
    Response.model_validate(shown)
    output: list[dict[str, Any]] = shown["output"]
    return output


def streamed(*deltas: Delta, **body: Any) -> list[dict[str, Any]]:
    writer = RESPONSES.stream_writer(decode(stream=True, **body))
    out = b"".join(map(writer.write, (StreamStarted(id="c1", model="m-1", created=5), *deltas, StreamEnded())))
    results = [json.loads(data_of(event)) for event in events(out)]
    for event in results:
        # The types of the openai library accept every event.
        EVENT.validate_python(event)
    assert [event["sequence_number"] for event in results] == list(range(len(results)))
    return results


def test_the_tools_of_an_agent_become_functions():
    request = internal(**AGENT)
    assert [tool.name for tool in request.tools] == [
        "exec_command",
        "apply_patch",
        "multi_agent_v1__spawn_agent",
        "multi_agent_v1__message",
    ]
    patch, spawn = request.tools[1], request.tools[2]
    assert patch.description == "Edits files."
    assert "start: begin hunk+ end" in json.dumps(patch.parameters)
    assert spawn.description == "Tools for agents.\n\nStarts one."
    assert {"tools.web_search", "tools.tool_search"} <= set(request.lost)


@pytest.mark.parametrize("dialect", ["openai_chat", "anthropic_messages"])
def test_all_providers_get_the_functions(dialect: str):
    tools = PASSING[dialect].from_internal(internal(**AGENT))["tools"]
    assert [tool.get("function", tool)["name"] for tool in tools][1] == "apply_patch"


def test_items_of_the_input_declare_tools():
    added = {"type": "additional_tools", "role": "developer", "tools": AGENT_TOOLS}
    request = internal(input=[added, {"role": "user", "content": "hi"}])
    assert request.tools == internal(**AGENT).tools
    assert len(request.messages) == 1


def test_calls_and_results_of_custom_tools_are_read():
    request = internal(
        tools=AGENT_TOOLS,
        input=[
            {"role": "user", "content": "Add a file."},
            {"type": "custom_tool_call", "call_id": "c1", "name": "apply_patch", "input": PATCH},
            {"type": "custom_tool_call_output", "call_id": "c1", "output": "Done"},
            {"type": "function_call", "call_id": "c2", "namespace": "multi_agent_v1", "name": "spawn_agent",
             "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c2", "output": "Started"},
        ],
    )  # fmt: skip
    calls = [part for message in request.messages for part in message.parts if isinstance(part, ToolCall)]
    assert [call.name for call in calls] == ["apply_patch", "multi_agent_v1__spawn_agent"]
    assert json.loads(calls[0].arguments) == {"input": PATCH}


def patch_call(arguments: str | None = None) -> ToolCall:
    return ToolCall(id="call_1", name="apply_patch", arguments=arguments or json.dumps({"input": PATCH}))


def test_a_call_of_a_custom_tool_comes_back_with_its_plain_input():
    [item] = whole(patch_call(), tools=AGENT_TOOLS)
    assert (item["type"], item["name"], item["call_id"], item["input"]) == (
        "custom_tool_call",
        "apply_patch",
        "call_1",
        PATCH,
    )
    assert "arguments" not in item


def test_arguments_that_are_not_json_become_the_input_of_a_custom_tool():
    [item] = whole(patch_call(PATCH), tools=AGENT_TOOLS)
    assert item["input"] == PATCH


def test_a_call_of_a_namespaces_tool_comes_back_with_its_namespace():
    spawn = ToolCall(id="c", name="multi_agent_v1__spawn_agent", arguments="{}")
    message = ToolCall(id="d", name="multi_agent_v1__message", arguments='{"input":"hello"}')
    items = whole(spawn, message, tools=AGENT_TOOLS)
    assert [(item["type"], item["namespace"], item["name"]) for item in items] == [
        ("function_call", "multi_agent_v1", "spawn_agent"),
        ("custom_tool_call", "multi_agent_v1", "message"),
    ]


def test_names_are_unique_and_accepted_by_all_providers():
    long = "n" * 60
    tools = [
        {"type": "namespace", "name": "a", "tools": [{"type": "function", "name": "b"}]},
        {"type": "namespace", "name": long, "tools": [{"type": "function", "name": "x"}]},
        {"type": "namespace", "name": "a.b", "tools": [{"type": "function", "name": "c"}]},
        {"type": "function", "name": "a__b"},
    ]
    names = [tool.name for tool in internal(tools=tools).tools]
    assert len(set(names)) == 4
    assert "a__b" in names
    assert all(name.replace("_", "").isalnum() and len(name) <= 64 for name in names)
    calls = [ToolCall(id=f"c{index}", name=name, arguments="{}") for index, name in enumerate(names)]
    items = whole(*calls, tools=tools)
    assert [(item.get("namespace"), item["name"]) for item in items] == [
        ("a", "b"), (long, "x"), ("a.b", "c"), (None, "a__b"),
    ]  # fmt: skip


def test_a_streamed_call_of_a_custom_tool():
    arguments = json.dumps({"input": PATCH})
    pieces = [ToolArguments(index=0, text=arguments[start : start + 7]) for start in range(0, len(arguments), 7)]
    results = streamed(
        TextDelta("I add it."),
        ToolStarted(index=0, id="call_1", name="apply_patch"),
        *pieces,
        GenerationFinished(reason="tool_calls"),
        tools=AGENT_TOOLS,
    )
    kinds = [event["type"] for event in results if "custom_tool_call_input" not in event["type"]]
    assert kinds == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.output_item.added",
        "response.output_item.done",
        "response.completed",
    ]
    added, done = [event["item"] for event in results if event.get("item", {}).get("type") == "custom_tool_call"]
    assert (added["name"], added["input"], added["status"]) == ("apply_patch", "", "in_progress")
    assert (done["id"], done["input"], done["status"]) == (added["id"], PATCH, "completed")
    deltas = [event for event in results if event["type"] == "response.custom_tool_call_input.delta"]
    assert len(deltas) > 3
    assert "".join(event["delta"] for event in deltas) == PATCH
    [whole_input] = [event for event in results if event["type"] == "response.custom_tool_call_input.done"]
    assert (whole_input["input"], whole_input["item_id"]) == (PATCH, added["id"])
    assert results.index(deltas[-1]) < results.index(whole_input)
    assert results[-1]["response"]["output"][-1] == done
    # The output is the same as in an answer that is not streamed.
    assert results[-1]["response"]["output"] == whole(Text("I add it."), patch_call(), tools=AGENT_TOOLS)


def test_a_streamed_call_that_is_not_json_arrives_at_the_end():
    results = streamed(
        ToolStarted(index=0, id="c", name="multi_agent_v1__message"),
        ToolArguments(index=0, text="hel"),
        ToolArguments(index=0, text="lo"),
        GenerationFinished(reason="tool_calls"),
        tools=AGENT_TOOLS,
    )
    deltas = [event["delta"] for event in results if event["type"] == "response.custom_tool_call_input.delta"]
    assert deltas == ["hello"]
    assert results[-1]["response"]["output"][0]["namespace"] == "multi_agent_v1"


@pytest.mark.parametrize("kind", ["mcp", "file_search", "code_interpreter", "computer_use_preview", "local_shell"])
def test_tools_that_would_change_the_answer_are_refused(kind: str):
    call = decode(tools=[SHELL, {"type": kind}])
    with pytest.raises(InvalidField, match=f"`{kind}`") as raised:
        DIALECTS["openai_responses"].to_internal(call)
    assert raised.value.extra == {"param": "tools[1].type"}


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"tools": [{"type": "custom"}]}, "tools[0].name"),
        ({"tools": [{"type": "namespace", "name": "n"}]}, "tools[0].tools"),
        ({"tools": [{"type": "namespace", "name": "n", "tools": ["x"]}]}, "tools[0].tools[0]"),
        ({"tools": [{"type": "namespace", "name": "n", "tools": [AGENTS]}]}, "tools[0].tools[0].type"),
        ({"input": [{"type": "additional_tools"}]}, "input[0].tools"),
        ({"input": [{"type": "additional_tools", "tools": [{"type": "mcp"}]}]}, "input[0].tools[0].type"),
        ({"input": [{"type": "custom_tool_call", "call_id": "c", "name": "f"}]}, "input[0].input"),
        ({"tools": [{"type": "function", "name": "n" * 129}]}, "tools[0].name"),
        ({"tools": [{"type": "namespace", "name": "n" * 129, "tools": [SHELL]}]}, "tools[0].name"),
        ({"tools": [{"type": "namespace", "name": "n", "tools": [SHELL] * 1024}]}, "tools"),
        ({"tools": [{"type": [], "name": "a"}]}, "tools[0].type"),
        ({"tools": [{"type": "namespace", "name": "n", "tools": [{"type": {}, "name": "a"}]}]},
         "tools[0].tools[0].type"),
        ({"input": [{"type": {}}]}, "input[0].type"),
        ({"input": [{"type": ["message"], "role": "user", "content": "hi"}]}, "input[0].type"),
        ({"input": [{"role": {}, "content": "hi"}]}, "input[0].role"),
        ({"input": [{"role": ["user"], "content": "hi"}]}, "input[0].role"),
        ({"input": [{"type": "item_reference", "id": {}}]}, "input[0].id"),
        ({"input": [{"type": "item_reference", "id": "msg_1"}, {"type": {}}]}, "input[0].id"),
        ({"tools": [SHELL], "tool_choice": {"type": {}}}, "tool_choice"),
        ({"tools": [{"type": "web_search"}], "tool_choice": {"type": "web_search"}}, "tool_choice.type"),
        ({"tools": [{"type": "web_search"}], "tool_choice": "required"}, "tool_choice"),
        ({"tools": [SHELL], "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": []}},
         "tool_choice.tools"),
    ],
)  # fmt: skip
def test_a_field_that_cannot_be_converted_is_named(body: dict[str, Any], param: str):
    with pytest.raises(InvalidField) as raised:
        internal(**body)
    assert raised.value.extra == {"param": param}


def test_the_description_of_a_namespace_is_not_repeated():
    members = [{"type": "function", "name": f"f{number}", "description": "d"} for number in range(100)]
    # The first tool is left out.
    members.insert(0, {"type": "web_search"})
    namespace = {"type": "namespace", "name": "n", "description": "D" * 10_000, "tools": members}
    descriptions = [tool.description for tool in internal(tools=[namespace]).tools]
    assert descriptions == [f"{'D' * 10_000}\n\nd", *["d"] * 99]


def test_merged_items_are_not_copied_for_each_further_item(monkeypatch: pytest.MonkeyPatch):
    copied: list[int] = []

    def counted(role: Role, parts: tuple[Part, ...]) -> FormMessage:
        copied.append(len(parts))
        return FormMessage(role, parts)

    monkeypatch.setattr(items_module, "FormMessage", counted)
    calls = [{"type": "function_call", "call_id": f"c{number}", "name": "f", "arguments": ""} for number in range(300)]
    [message] = internal(input=calls).messages
    assert len(message.parts) == 300
    assert sum(copied) == 2 * 300


def test_a_choice_names_a_custom_tool_or_a_namespaces_tool():
    for choice, name in (
        ({"type": "custom", "name": "apply_patch"}, "apply_patch"),
        ({"type": "function", "name": "spawn_agent", "namespace": "multi_agent_v1"}, "multi_agent_v1__spawn_agent"),
    ):
        chosen = internal(tools=AGENT_TOOLS, tool_choice=choice).tool_choice
        assert chosen is not None
        assert (chosen.mode, chosen.name) == ("named", name)


def test_a_choice_among_allowed_tools_leaves_the_others_out():
    choice = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "custom", "name": "apply_patch"}]}
    request = internal(tools=AGENT_TOOLS, tool_choice=choice)
    assert [tool.name for tool in request.tools] == ["apply_patch"]
    assert request.tool_choice is not None
    assert request.tool_choice.mode == "required"


USER = {"role": "user", "content": "hi"}
CALL = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c", "output": "x"}


def reference(id: str) -> dict[str, str]:
    return {"type": "item_reference", "id": id}


@pytest.mark.parametrize(
    ("items", "is_lost"),
    [
        ([USER, reference("msg_1"), CALL, OUTPUT], True),
        ([USER, reference("rs_1"), USER], True),
        ([USER, {"type": "message", "id": "msg_1", "role": "assistant", "content": "yes"}, reference("msg_1")], False),
        ([USER, {"id": "rs_1"}, CALL, OUTPUT], True),
    ],
)
def test_references_that_change_nothing_are_left_out(items: list[Any], is_lost: bool):
    request = internal(input=items)
    assert ("input.item_reference" in request.lost) is is_lost
    assert request.messages == internal(input=[item for item in items if item.keys() - {"id", "type"}]).messages


@pytest.mark.parametrize("items", [[USER, reference("msg_1"), USER], [USER, reference("fc_1"), OUTPUT]])
def test_a_reference_to_an_answer_that_is_not_there_is_refused(items: list[Any]):
    with pytest.raises(InvalidField, match="store: false") as raised:
        internal(input=items)
    assert raised.value.extra == {"param": "input[1].id"}
