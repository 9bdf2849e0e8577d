"""Where a value can stand in a request, and in how many ways: in none of them it leaves."""

import json
from base64 import b64encode
from typing import Any

import pytest
from tests.engine.dlp.test_requests import CARD, OTHER_CARD, ask, rule, sent, user
from tests.support.engine import HeldEngine, completion

from gatehouse.policy.governance import GovernanceRecords

BARE = CARD.replace(" ", "")
ENCODED = b64encode(f"card {CARD} ok".encode()).decode()
CHAT, MESSAGES, EMBEDDINGS = "openai_chat", "anthropic_messages", "openai_embeddings"
HI = user("hi")


def engine(dialect: str = CHAT) -> HeldEngine:
    """Whose provider speaks as the client does."""
    held = HeldEngine()
    held.serve("one", "m", kind="anthropic" if dialect == MESSAGES else "openai_compatible")
    held.outbound.script.append((200, [completion()]))
    return held


def claude(*blocks: Any, **more: Any) -> dict[str, Any]:
    return {"max_tokens": 9, "messages": [{"role": "user", "content": list(blocks)}], **more}


def used(given: Any) -> dict[str, Any]:
    return claude({"type": "tool_use", "id": "t", "name": "n", "input": given})


def document(**source: Any) -> dict[str, Any]:
    return claude({"type": "document", "source": source, "title": "t"})


def called(arguments: str) -> dict[str, Any]:
    call = {"id": "t", "type": "function", "function": {"name": "pay", "arguments": arguments}}
    return {"messages": [{"role": "assistant", "content": None, "tool_calls": [call]}]}


def schema(**more: Any) -> dict[str, Any]:
    return {**HI, "response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": more}}}


PLACES: list[tuple[str, str, dict[str, Any]]] = [
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
    ("a schema's number", CHAT, schema(type="object", properties={"x": {"enum": [int(BARE)]}})),
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
async def test_no_place_is_left_out(dialect: str, body: dict[str, Any]) -> None:
    held = engine(dialect)
    await ask(held, body, dialect)
    raw = held.outbound.sent[-1].body.decode()
    assert CARD not in raw
    assert BARE not in raw
    assert ENCODED not in raw
    assert "411111111111" not in raw


async def test_a_fields_name_and_its_value_are_both_redacted() -> None:
    held = engine()
    await ask(held, {**HI, "metadata": {"a": "b", CARD: OTHER_CARD, "c": "d"}})
    assert list(sent(held)["metadata"].items()) == [("a", "b"), ("[CREDIT_CARD_1]", "[CREDIT_CARD_2]"), ("c", "d")]


@pytest.mark.parametrize("value", [CARD, BARE, "4111111111111111", OTHER_CARD])
async def test_a_field_that_stands_twice_reaches_no_provider(value: str) -> None:
    held = engine()
    raw = b'{"model":"one/m","messages":[{"role":"user","content":"hi"}],"user":"%s","user":"%s"}'
    answer = await held.engine.answer(held.request(raw % (b"x", value.encode())))
    assert answer.status == 400
    assert not held.outbound.sent


@pytest.mark.parametrize(
    "number", ["0.50000000000000000000000004111111111111111", "1e-4111111111111111", "4111111111111111000.5e-4"]
)
async def test_digits_that_were_not_read_do_not_go_on(number: str) -> None:
    held = engine()
    raw = '{"model":"one/m", "messages":[{"role":"user","content":"hi"}],"metadata":{"a":[NUMBER, 0.50]}}'
    await held.engine.answer(held.request(raw.replace("NUMBER", number).encode()))
    assert held.outbound.sent[-1].body == (
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
async def test_words_of_the_protocol_stay(body: dict[str, Any]) -> None:
    held = engine()
    # Hostile to the protocol: a pattern that is in everything.
    held.governance = GovernanceRecords(dlp_rules=(rule("word", "redact", pattern="function|assistant|text|auto"),))
    await ask(held, body)
    told = sent(held)
    assert [message["role"] for message in told["messages"]] == ["user", "assistant", "tool"]
    assert told["messages"][0]["content"][0]["type"] == "text"
    assert told["messages"][1]["tool_calls"] == body["messages"][1]["tool_calls"]
    assert told["messages"][2]["tool_call_id"] == body["messages"][2]["tool_call_id"]


async def test_what_the_provider_signed_or_encrypted_stays_as_it_is() -> None:
    # Base64 by chance holds what looks like an identifier.
    signed = "Eq" + "DE89370400440532013000" * 8
    block = {"type": "thinking", "thinking": "x", "signature": signed}
    secret = {"type": "redacted_thinking", "data": signed}
    result = {"type": "web_search_result", "url": "u", "encrypted_content": signed}
    held = engine(MESSAGES)
    await ask(held, claude(block, secret, result), MESSAGES)
    kept = sent(held)["messages"][0]["content"]
    assert (kept[0]["signature"], kept[1]["data"], kept[2]["encrypted_content"]) == (signed, signed, signed)
