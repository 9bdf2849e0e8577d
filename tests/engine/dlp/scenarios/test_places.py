"""All places and forms in which a value can occur in a request. In each of them, the value is stopped."""

import json
from base64 import b64encode
from typing import Any

import pytest
from tests.engine.dlp.scenarios.test_requests import CARD, OTHER_CARD, ask, rule, sent, user
from tests.support.engine import EngineHarness, completion

from gatehouse.engine.conversation.slots import Slot, replace_texts
from gatehouse.policy.governance import GovernanceRecords

BARE = CARD.replace(" ", "")
ENCODED = b64encode(f"card {CARD} ok".encode()).decode()
CHAT, MESSAGES, EMBEDDINGS = "openai_chat", "anthropic_messages", "openai_embeddings"
HI = user("hi")
#: JSON in which a letter is adjacent to each card number, because the escape of a line break or a tab ends with one.
ROWS = json.dumps({"rows": f"name\tcard\nMeier\t{CARD}\tpaid\nHuber\t{BARE}\n"})


def engine(dialect: str = CHAT) -> EngineHarness:
    """Return an engine whose provider uses the client's dialect."""
    harness = EngineHarness()
    harness.serve("one", "m", kind="anthropic" if dialect == MESSAGES else "openai_compatible")
    harness.outbound.script.append((200, [completion()]))
    return harness


def claude(*blocks: Any, **more: Any) -> dict[str, Any]:
    return {"max_tokens": 9, "messages": [{"role": "user", "content": list(blocks)}], **more}


def used(tool_input: Any) -> dict[str, Any]:
    return claude({"type": "tool_use", "id": "t", "name": "n", "input": tool_input})


def document(**source: Any) -> dict[str, Any]:
    return claude({"type": "document", "source": source, "title": "t"})


def called(arguments: str) -> dict[str, Any]:
    call = {"id": "t", "type": "function", "function": {"name": "pay", "arguments": arguments}}
    return {"messages": [{"role": "assistant", "content": None, "tool_calls": [call]}]}


def schema(**more: Any) -> dict[str, Any]:
    return {**HI, "response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": more}}}


PLACES: list[tuple[str, str, dict[str, Any]]] = [
    ("JSON in a tool's result", CHAT, {"messages": [{"role": "tool", "tool_call_id": "t", "content": ROWS}]}),
    ("JSON in JSON in a message", CHAT, user(json.dumps({"log": ROWS}))),
    (
        "JSON in a tool's result", MESSAGES,
        claude({"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": ROWS}]}),
    ),
    ("JSON in a string of a tool's arguments", CHAT, called(json.dumps({"body": ROWS}))),
    ("JSON that is embedded", EMBEDDINGS, {"input": [ROWS]}),
    ("an id of metadata", CHAT, {**HI, "metadata": {"id": CARD}}),
    ("a type of metadata", CHAT, {**HI, "metadata": {"type": f"card {CARD}"}}),
    ("a list under a word of the protocol", CHAT, {**HI, "metadata": {"id": [CARD]}}),
    ("a number under a word of the protocol", CHAT, {**HI, "metadata": {"id": int(BARE)}}),
    ("a tool call's id", CHAT, {"messages": [{"role": "tool", "tool_call_id": BARE, "content": "x"}]}),
    ("a number at the top", CHAT, {**HI, "seed": int(BARE)}),
    ("a number with a point", CHAT, {**HI, "metadata": {"card": float(BARE)}}),
    ("a number with a point at the top", CHAT, {**HI, "card": float(BARE)}),
    ("a number as text", CHAT, {**HI, "user": BARE}),
    ("a field's name", CHAT, {**HI, "logit_bias": {CARD: 1}}),
    ("stop", CHAT, {**HI, "stop": ["a", CARD]}),
    ("a prediction", CHAT, {**HI, "prediction": {"type": "content", "content": [{"type": "text", "text": CARD}]}}),
    ("a participant's name", CHAT, {"messages": [{"role": "user", "name": CARD, "content": "x"}]}),
    ("a refusal", CHAT, {"messages": [{"role": "assistant", "refusal": CARD}]}),
    ("reasoning", CHAT, {"messages": [{"role": "assistant", "content": "x", "reasoning_content": CARD}]}),
    (
        "a function call of old", CHAT,
        {"messages": [{"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": BARE}}]},
    ),
    ("a function of old", CHAT, {**HI, "functions": [{"name": "f", "description": CARD}]}),
    ("a schema's default", CHAT, schema(type="object", properties={"id": {"type": "string", "default": CARD}})),
    ("a schema's format", CHAT, schema(type="object", properties={"x": {"format": CARD}})),
    ("a schema's value", CHAT, schema(type="object", properties={"x": {"enum": [BARE], "const": CARD}})),
    ("a number in a schema's value", CHAT, schema(properties={"x": {"default": {"card": int(BARE)}}})),
    ("a schema's description", CHAT, schema(properties={"x": {"type": "integer", "description": f"like {CARD}"}})),
    ("a schema's property", CHAT, schema(type="object", properties={CARD: {"type": "string"}})),
    ("arguments that are no JSON", CHAT, called(f"card {CARD}")),
    ("arguments with escapes", CHAT, called('{"card": "4111\\u0020' + CARD[5:] + '"}')),
    ("arguments within arguments", CHAT, called(json.dumps({"inner": json.dumps({"card": CARD})}))),
    ("text that looks like a data URL", CHAT, user(f"data:text/plain;base64, card {CARD}")),
    ("a data URL of text", CHAT, user(f"data:text/plain;base64,{ENCODED}")),
    ("a data URL of text that is not encoded", CHAT, user(f"data:text/plain,card {CARD}")),
    ("data beside a media type", CHAT, {**HI, "metadata": {"data": f"card {CARD}", "media_type": "image/png"}}),
    (
        "a file's data that is text", CHAT,
        user([{"type": "file", "file": {"filename": "a", "file_data": f"card {CARD}"}}]),
    ),
    ("a file's name", CHAT, user([{"type": "file", "file": {"filename": CARD, "file_data": "data:;base64,AAAA"}}])),
    ("a document of text", MESSAGES, document(type="text", media_type="text/plain", data=f"card {CARD}")),
    ("a document of digits", MESSAGES, document(type="text", media_type="text/plain", data=BARE)),
    ("a document of encoded text", MESSAGES, document(type="base64", media_type="text/plain", data=ENCODED)),
    ("a document of blocks", MESSAGES, document(type="content", content=[{"type": "text", "text": CARD}])),
    ("a document's title", MESSAGES, claude({"type": "document", "title": CARD, "source": {"type": "url"}})),
    ("thinking", MESSAGES, claude({"type": "thinking", "thinking": CARD, "signature": "AAAA"})),
    ("a signature", MESSAGES, claude({"type": "thinking", "thinking": "x", "signature": CARD})),
    ("a signature of nothing", MESSAGES, {**claude(), "metadata": {"type": "t", "signature": BARE}}),
    ("redacted thinking", MESSAGES, claude({"type": "redacted_thinking", "data": CARD})),
    ("citations", MESSAGES, claude({"type": "text", "text": "x", "citations": [{"cited_text": CARD}]})),
    ("the control of a cache", MESSAGES, claude({"type": "text", "text": "x", "cache_control": {"type": CARD}})),
    (
        "results within results", MESSAGES,
        claude({"type": "tool_result", "tool_use_id": "t", "content": [
            {"type": "search_result", "source": "s", "content": [{"type": "text", "text": CARD}]}]}),
    ),
    ("a tool's input with a point", MESSAGES, used({"c": float(BARE)})),
    ("a tool's input as a list", MESSAGES, used([1, CARD])),
    ("a name in a tool's input", MESSAGES, used({CARD: 1})),
    ("a stop sequence", MESSAGES, {**claude(), "stop_sequences": [CARD]}),
    ("metadata of messages", MESSAGES, {**claude(), "metadata": {"user_id": CARD}}),
    ("numbers among tokens", EMBEDDINGS, {"input": [int(BARE), 5]}),
    ("text behind a token", EMBEDDINGS, {"input": [5, f"card {CARD}"]}),
    ("metadata named as tokens are", CHAT, {**HI, "metadata": {"input": [1, CARD]}}),
    ("a user of embeddings", EMBEDDINGS, {"input": "x", "user": CARD}),
]  # fmt: skip


@pytest.mark.parametrize(("dialect", "body"), [place[1:] for place in PLACES], ids=[place[0] for place in PLACES])
async def test_a_value_is_stopped_in_every_place(dialect: str, body: dict[str, Any]) -> None:
    harness = engine(dialect)
    await ask(harness, body, dialect)
    raw = harness.outbound.sent[-1].body.decode()
    assert CARD not in raw
    assert BARE not in raw
    assert ENCODED not in raw
    assert "411111111111" not in raw


IDS = {
    "call_4242424242424242": True,
    "toolu_4111111111111111": True,
    "chatcmpl-tool-4111111111111111": True,
    "fc_call_4111-1111-1111-1111": True,
    "4111111111111111": False,
    "4111-1111-1111-1111": False,
    "call 4111111111111111": False,
    "call_4111 1111 1111 1111": False,
    "call_4111111111111111.": False,
    "call_4111111111111111\n": False,
    "Call_4111111111111111": False,
    "user_4111111111111111": False,
    "jane_4111111111111111": False,
    "_4111111111111111": False,
    "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8": False,
    "call_" + "x" * 128 + "-4111111111111111": False,
}


@pytest.mark.parametrize(("call_id", "stays"), IDS.items())
async def test_ids_in_a_providers_form_are_kept_and_others_change_in_both_places(call_id: str, *, stays: bool) -> None:
    call = {"id": call_id, "type": "function", "function": {"name": "pay", "arguments": "{}"}}
    harness = engine()
    await ask(harness, {"messages": [
        {"role": "user", "content": f"What became of {call_id} ?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": "x"},
    ]})  # fmt: skip
    text, called, answered = sent(harness)["messages"]
    assert called["tool_calls"][0]["id"] == answered["tool_call_id"]
    assert (answered["tool_call_id"] == call_id) is stays
    assert call_id not in text["content"]


async def test_ids_in_a_providers_form_are_kept_in_anthropics_dialect() -> None:
    call_id = "toolu_4111111111111111"
    use = {"type": "tool_use", "id": call_id, "name": "pay", "input": {"tool_use_id": call_id}}
    result = {"type": "tool_result", "tool_use_id": call_id, "content": "x"}
    harness = engine(MESSAGES)
    messages = [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
    await ask(harness, {"max_tokens": 9, "messages": messages}, MESSAGES)
    [[use], [result]] = [message["content"] for message in sent(harness)["messages"]]
    assert use["id"] == result["tool_use_id"] == call_id
    assert use["input"]["tool_use_id"] != call_id


async def test_redacted_json_in_texts_is_still_json() -> None:
    harness = engine()
    await ask(harness, {"messages": [{"role": "tool", "tool_call_id": "t", "content": json.dumps({"log": ROWS})}]})
    rows = json.loads(json.loads(sent(harness)["messages"][0]["content"])["log"])["rows"]
    assert rows == "name\tcard\nMeier\t[CREDIT_CARD_1]\tpaid\nHuber\t[CREDIT_CARD_2]\n"


async def test_a_fields_name_and_its_value_are_both_redacted() -> None:
    harness = engine()
    await ask(harness, {**HI, "metadata": {"a": "b", CARD: OTHER_CARD, "c": "d"}})
    assert list(sent(harness)["metadata"].items()) == [("a", "b"), ("[CREDIT_CARD_1]", "[CREDIT_CARD_2]"), ("c", "d")]


def test_all_names_of_an_object_are_replaced_in_one_pass() -> None:
    class Counted(dict[str, Any]):
        passes = 0

        def items(self) -> Any:
            self.passes += 1
            return super().items()

    holder = Counted({f"card {number}": number for number in range(100)})
    names = list(holder)
    changed = [(Slot(holder, name, name, is_key=True), f"[{name}]") for name in names[::2]]
    replace_texts([*changed, (Slot(holder, names[0], "0"), "[zero]")])
    assert holder.passes == 1
    assert list(holder) == [f"[{name}]" if number % 2 == 0 else name for number, name in enumerate(names)]
    assert (holder[f"[{names[0]}]"], holder[names[1]]) == ("[zero]", 1)


@pytest.mark.parametrize("value", [CARD, BARE, "4111111111111111", OTHER_CARD])
async def test_a_duplicate_field_is_not_sent_to_the_provider(value: str) -> None:
    harness = engine()
    raw = b'{"model":"one/m","messages":[{"role":"user","content":"hi"}],"user":"%s","user":"%s"}'
    answer = await harness.engine.answer(harness.request(raw % (b"x", value.encode())))
    assert answer.status == 400
    assert not harness.outbound.sent


@pytest.mark.parametrize(
    "number", ["0.50000000000000000000000004111111111111111", "1e-4111111111111111", "4111111111111111000.5e-4"]
)
async def test_digits_beyond_the_parsed_precision_are_not_sent(number: str) -> None:
    harness = engine()
    raw = '{"model":"one/m", "messages":[{"role":"user","content":"hi"}],"metadata":{"a":[NUMBER, 0.50]}}'
    await harness.engine.answer(harness.request(raw.replace("NUMBER", number).encode()))
    assert harness.outbound.sent[-1].body == (
        b'{"model":"m","messages":[{"role":"user","content":"hi"}],"metadata":{"a":[%b,0.5]}}'
        % repr(float(number)).encode()
    )


PROTOCOL: list[dict[str, Any]] = [
    {"messages": [
        {"role": "user", "content": [{"type": "text", "text": "x"}]},
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "call_9pXqZ1abcDEF23456789ghiJ", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "call_9pXqZ1abcDEF23456789ghiJ", "content": "y"},
    ], "seed": 12345, "tools": [{"type": "web_search_20250305", "name": "web_search"}], "service_tier": "auto"},
]  # fmt: skip


@pytest.mark.parametrize("body", PROTOCOL)
async def test_words_of_the_protocol_are_not_redacted(body: dict[str, Any]) -> None:
    harness = engine()
    harness.allowed_fields = ("tools.web_search",)
    # A pattern that matches words of the protocol.
    harness.governance = GovernanceRecords(dlp_rules=(rule("word", "redact", pattern="function|assistant|text|auto"),))
    await ask(harness, body)
    result = sent(harness)
    assert [message["role"] for message in result["messages"]] == ["user", "assistant", "tool"]
    assert result["messages"][0]["content"][0]["type"] == "text"
    assert result["messages"][1]["tool_calls"] == body["messages"][1]["tool_calls"]
    assert result["messages"][2]["tool_call_id"] == body["messages"][2]["tool_call_id"]


async def test_signed_or_encrypted_content_of_a_provider_is_unchanged() -> None:
    # Base64 that by chance contains text that resembles an identifier.
    signed = "Eq" + "DE89370400440532013000" * 8
    block = {"type": "thinking", "thinking": "x", "signature": signed}
    secret = {"type": "redacted_thinking", "data": signed}
    result = {"type": "web_search_result", "url": "u", "encrypted_content": signed}
    harness = engine(MESSAGES)
    await ask(harness, claude(block, secret, result), MESSAGES)
    kept = sent(harness)["messages"][0]["content"]
    assert (kept[0]["signature"], kept[1]["data"], kept[2]["encrypted_content"]) == (signed, signed, signed)
