"""Blocks of Anthropic's messages that other APIs do not have are converted to texts, or left out and named."""

from typing import Any

import msgspec
import pytest

from gatehouse.engine.conversation.dialects import DIALECTS
from gatehouse.engine.conversation.errors import InvalidField
from gatehouse.engine.conversation.form import Document, FormMessage, Image, Request, Text, ToolCall, ToolResult
from gatehouse.engine.conversation.slots import Slot, slots

MESSAGES = DIALECTS["anthropic_messages"]
PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
TOOL = {"name": "weather", "input_schema": {"type": "object"}}
SEARCH = {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"}


def body(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"model": "p/m", "max_tokens": 9, "messages": list(messages), **more}


def read(*messages: dict[str, Any], **more: Any) -> Request:
    request: Request = MESSAGES.to_internal(MESSAGES.decode(msgspec.json.encode(body(*messages, **more))))
    return request


def user(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def result(*texts: str, **more: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": text} for text in texts]
    return {"type": "search_result", "source": "https://a.example/x", "title": "A page", "content": content, **more}


def document(source: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "document", "source": source, "title": "A report", **more}


@pytest.mark.parametrize("is_tools", [False, True])
def test_a_search_result_becomes_a_text_with_its_title_and_source(is_tools: bool):
    block = result("First.", "Second.")
    outer = {"type": "tool_result", "tool_use_id": "t", "content": [block]} if is_tools else block
    request = read(user(outer))
    (part, *more) = request.messages[0].parts
    texts = part.content if isinstance(part, ToolResult) else (part, *more)
    assert texts == (Text("A page\nhttps://a.example/x\n\nFirst."), Text("Second."))
    assert request.lost == ()


def test_enabled_citations_are_named():
    assert read(user(result("First.", citations={"enabled": True}))).lost == ("messages.citations",)
    assert read(user(result("First.", citations={"enabled": False}))).lost == ()


def test_a_document_with_a_content_becomes_its_texts_and_images():
    inner = [{"type": "text", "text": "Page 1."}, PICTURE]
    request = read(user(document({"type": "content", "content": inner}, context="Of 2026.")))
    assert request.messages[0].parts == (
        Text("A report\nOf 2026.\n\nPage 1."), Image(data="aGk=", media_type="image/png"),
    )  # fmt: skip
    request = read(user(document({"type": "content", "content": "Page 1."})))
    assert request.messages[0].parts == (Text("A report\n\nPage 1."),)
    request = read(user(document({"type": "text", "media_type": "text/plain", "data": "Page 1."}, context="Of 2026.")))
    assert request.messages[0].parts == (Text("A report\nOf 2026.\n\nPage 1."),)
    request = read(user(document({"type": "content", "content": [PICTURE]})))
    assert request.messages[0].parts == (Text("A report"), Image(data="aGk=", media_type="image/png"))
    assert request.lost == ()


def test_the_context_of_a_file_is_named():
    source = {"type": "base64", "media_type": "application/pdf", "data": "aGk="}
    request = read(user(document(source, context="Of 2026.")))
    assert request.messages[0].parts == (Document(data="aGk=", media_type="application/pdf", name="A report"),)
    assert request.lost == ("messages.context",)


def test_a_summary_replaces_the_conversation_before_it():
    call = {"type": "tool_use", "id": "t", "name": "weather", "input": {}}
    request = read(
        user({"type": "text", "text": "Old question"}),
        {"role": "assistant", "content": [
            {"type": "text", "text": "Old answer"}, {"type": "compaction", "content": "They met."}, call,
        ]},
        user({"type": "tool_result", "tool_use_id": "t", "content": "9"}),
        system="Be kind.",
    )  # fmt: skip
    assert request.messages == (
        FormMessage("system", (Text("Be kind."),)),
        FormMessage("user", (Text("<summary>\nThey met.\n</summary>"),)),
        FormMessage("assistant", (ToolCall(id="t", name="weather", arguments="{}"),)),
        FormMessage("user", (ToolResult(call_id="t", content=(Text("9"),)),)),
    )
    assert request.lost == ()


def test_a_summary_that_failed_is_left_out_and_named():
    answer = {"role": "assistant", "content": [{"type": "compaction", "content": None}, {"type": "text", "text": "A"}]}
    request = read(user({"type": "text", "text": "Q"}), answer, user({"type": "text", "text": "R"}))
    assert [message.parts for message in request.messages] == [(Text("Q"),), (Text("A"),), (Text("R"),)]
    assert request.lost == ("messages.compaction",)


def test_tools_that_search_tools_are_left_out_and_the_tools_that_they_find_are_offered():
    search = {"type": "server_tool_use", "id": "s", "name": "tool_search_tool_regex", "input": {"query": "weather"}}
    results = {
        "type": "tool_search_tool_result", "tool_use_id": "s",
        "content": {"type": "tool_search_tool_search_result", "tool_references": [
            {"type": "tool_reference", "tool_name": "weather"},
        ]},
    }  # fmt: skip
    call = {"type": "tool_use", "id": "t", "name": "weather", "input": {}}
    request = read(
        user({"type": "text", "text": "Q"}),
        {"role": "assistant", "content": [search, results, call]},
        user({"type": "tool_result", "tool_use_id": "t", "content": "9"}),
        tools=[SEARCH, {**TOOL, "defer_loading": True}],
    )
    assert [tool.name for tool in request.tools] == ["weather"]
    assert request.messages[1].parts == (ToolCall(id="t", name="weather", arguments="{}"),)
    assert set(request.lost) == {
        "messages.server_tool_use", "messages.tool_search_tool_result", "tools.tool_search_tool", "tools.defer_loading",
    }  # fmt: skip


def test_a_choice_of_a_tool_that_searches_tools_is_refused():
    with pytest.raises(InvalidField) as raised:
        choice = {"type": "tool", "name": "tool_search_tool_regex"}
        read(user({"type": "text", "text": "Q"}), tools=[SEARCH, TOOL], tool_choice=choice)
    assert raised.value.extra == {"param": "tool_choice.name"}


@pytest.mark.parametrize(
    ("block", "param"),
    [
        ({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}, "messages[0].content[0]"),
        ({"type": "search_result", "source": "s", "title": "t"}, "messages[0].content[0]"),
        ({"type": "tool_result", "tool_use_id": "t", "content": 5}, "messages[0].content[0].content"),
        (document({"type": "content", "content": 5}), "messages[0].content[0].source"),
        (document({"type": "content", "content": [5]}), "messages[0].content[0].source.content[0]"),
    ],
)
def test_blocks_that_cannot_be_converted_are_refused(block: dict[str, Any], param: str):
    with pytest.raises(InvalidField) as raised:
        read(user(block))
    assert raised.value.extra == {"param": param}


def test_the_texts_of_these_blocks_are_inspected():
    blocks = [
        result("Body of the result"), {"type": "compaction", "content": "Text of the summary"},
        document({"type": "content", "content": [{"type": "text", "text": "Text of a page"}]}, context="Its context"),
    ]  # fmt: skip
    inspected = {slot.text for slot in slots(body(user(*blocks))) if isinstance(slot, Slot)}
    assert inspected >= {
        "A page", "https://a.example/x", "Body of the result", "Text of the summary", "A report", "Text of a page",
        "Its context",
    }  # fmt: skip
