"""The contents that are sent to the provider, through the whole engine."""

import json
from typing import Any
from uuid import UUID

import msgspec
import pytest
from tests.support.engine import EngineHarness, completion, events

from gatehouse.engine.dlp.tiers import DlpOptions
from gatehouse.policy.governance import DlpRuleRecord, GovernanceRecords

CARD = "4111 1111 1111 1111"
OTHER_CARD = "5555 5555 5555 4444"


def engine(**options: Any) -> EngineHarness:
    harness = EngineHarness(dlp=DlpOptions(**options))
    harness.serve("one", "m")
    harness.outbound.script.append((200, [completion()]))
    return harness


def rule(entity_type: str, action: str, **more: Any) -> DlpRuleRecord:
    values = {"id": "r-1", "name": "a rule", "detector_type": "regex", "entity_type": entity_type, "action": action}
    return msgspec.convert({**values, **more}, DlpRuleRecord)


async def ask(harness: EngineHarness, body: dict[str, Any], dialect: str = "openai_chat") -> tuple[int, dict[str, Any]]:
    answer = await harness.engine.answer(harness.request({"model": "one/m", **body}, dialect=dialect))
    return answer.status, json.loads(answer.body)


def sent(harness: EngineHarness) -> dict[str, Any]:
    decoded: dict[str, Any] = json.loads(harness.outbound.sent[-1].body)
    return decoded


def user(content: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": content}]}


PLACES: list[tuple[str, str, dict[str, Any]]] = [
    ("a plain message", "openai_chat", user(f"my card is {CARD}.")),
    ("a text part", "openai_chat", user([{"type": "text", "text": f"card {CARD}"}])),
    ("the system prompt", "openai_chat", {"messages": [{"role": "system", "content": f"card {CARD}"}]}),
    (
        "an assistant's message", "openai_chat",
        {"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": f"card {CARD}"}]},
    ),
    (
        "a tool's arguments", "openai_chat",
        {"messages": [{"role": "assistant", "content": None, "tool_calls": [
            {"id": "t", "type": "function", "function": {"name": "pay", "arguments": f'{{"card": "{CARD}"}}'}}]}]},
    ),
    (
        "a tool's result", "openai_chat",
        {"messages": [{"role": "tool", "tool_call_id": "t", "content": f"found {CARD}"}]},
    ),
    ("an unknown field", "openai_chat", {**user("hi"), "metadata": {"note": f"card {CARD}"}}),
    (
        "a tool's description", "openai_chat",
        {**user("hi"), "tools": [{"type": "function", "function": {"name": "f", "description": f"card {CARD}"}}]},
    ),
    ("Anthropic's system prompt", "anthropic_messages", {**user("hi"), "max_tokens": 9, "system": f"card {CARD}"}),
    (
        "Anthropic's system blocks", "anthropic_messages",
        {**user("hi"), "max_tokens": 9, "system": [{"type": "text", "text": f"card {CARD}"}]},
    ),
    (
        "Anthropic's tool input", "anthropic_messages",
        {"max_tokens": 9, "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": [
            {"type": "tool_use", "id": "t", "name": "pay", "input": {"card": {"number": CARD}}}]}]},
    ),
    (
        "Anthropic's tool result", "anthropic_messages",
        {"max_tokens": 9, "messages": [{"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": f"card {CARD}"}]}]}]},
    ),
    ("an input of embeddings", "openai_embeddings", {"input": f"card {CARD}"}),
    ("inputs of embeddings", "openai_embeddings", {"input": ["a", f"card {CARD}"]}),
]  # fmt: skip


@pytest.mark.parametrize(("dialect", "body"), [place[1:] for place in PLACES], ids=[place[0] for place in PLACES])
async def test_a_card_number_is_never_sent_from_any_place(dialect: str, body: dict[str, Any]) -> None:
    harness = engine()
    await ask(harness, body, dialect)
    raw = harness.outbound.sent[-1].body.decode()
    assert CARD not in raw
    assert "[CREDIT_CARD_1]" in raw


async def test_the_same_value_has_the_same_label() -> None:
    harness = engine()
    await ask(harness, user(f"{CARD} and {OTHER_CARD} and again {CARD}"))
    assert sent(harness)["messages"][0]["content"] == "[CREDIT_CARD_1] and [CREDIT_CARD_2] and again [CREDIT_CARD_1]"


async def test_a_label_of_an_earlier_message_is_not_used_for_a_value_of_the_answer() -> None:
    harness = engine()
    harness.outbound.script[:] = [(200, [completion(f"try {OTHER_CARD}")])]
    _, result = await ask(harness, user("[CREDIT_CARD_1] was refused, any other?"))
    assert result["choices"][0]["message"]["content"] == "try [CREDIT_CARD_2]"


async def test_arguments_are_still_json_after_a_bare_number_is_redacted() -> None:
    harness = engine()
    arguments = '{"card": 4111111111111111, "n": 1}'
    call = {"id": "t", "type": "function", "function": {"name": "pay", "arguments": arguments}}
    await ask(harness, {"messages": [{"role": "assistant", "content": None, "tool_calls": [call]}]})
    result = sent(harness)["messages"][0]["tool_calls"][0]["function"]["arguments"]
    assert json.loads(result) == {"card": "[CREDIT_CARD_1]", "n": 1}


async def test_a_number_in_the_input_of_a_tool_is_inspected() -> None:
    harness = engine()
    use = {"type": "tool_use", "id": "t", "name": "pay", "input": {"card": 4111111111111111}}
    body = {"max_tokens": 9, "messages": [{"role": "assistant", "content": [use]}]}
    await ask(harness, body, "anthropic_messages")
    assert "4111111111111111" not in harness.outbound.sent[-1].body.decode()


async def test_a_logged_value_is_sent_unchanged() -> None:
    harness = engine()
    status, _ = await ask(harness, user("write to bob@example.com"))
    assert status == 200
    assert sent(harness)["messages"][0]["content"] == "write to bob@example.com"
    [event] = harness.outcomes[0].dlp_events
    assert (event.entity_type, event.status, event.direction, event.severity) == ("email", "logged", "input", "low")


async def test_a_blocked_request_is_not_sent_and_its_error_names_the_rule() -> None:
    harness = engine()
    harness.governance = GovernanceRecords(dlp_rules=(rule("credit_card", "block"),))
    status, body = await ask(harness, user(f"my card is {CARD}"))
    assert (status, body["error"]["type"], body["error"]["rule_id"]) == (403, "dlp_violation", "r-1")
    assert CARD not in json.dumps(body)
    assert harness.outbound.sent == []
    [event] = harness.outcomes[0].dlp_events
    assert (event.status, event.severity, event.source) == ("blocked", "critical", "organization")
    assert harness.outcomes[0].dlp_action == "BLOCK"


async def test_the_status_of_a_block_is_a_setting() -> None:
    harness = engine(block_status=400)
    harness.governance = GovernanceRecords(dlp_rules=(rule("credit_card", "block"),))
    status, body = await ask(harness, user(CARD))
    assert (status, body["error"]["type"]) == (400, "dlp_violation")


async def test_a_record_contains_the_action_and_not_the_text() -> None:
    harness = engine()
    await ask(harness, user(f"my card is {CARD}"))
    [outcome] = harness.outcomes
    assert outcome.dlp_action == "REDACT"
    assert "4111 1111" not in str(outcome)


async def test_nothing_is_inspected_if_dlp_is_off() -> None:
    harness = engine()
    harness.flags = {"dlp_enabled": False}
    await ask(harness, user(f"my card is {CARD}"))
    assert sent(harness)["messages"][0]["content"] == f"my card is {CARD}"
    assert harness.outcomes[0].dlp_action is None


async def test_a_suppressed_pattern_is_not_searched() -> None:
    harness = engine()
    harness.governance = GovernanceRecords(suppressions=frozenset({"credit-card"}))
    await ask(harness, user(f"my card is {CARD}"))
    assert CARD in sent(harness)["messages"][0]["content"]


async def test_a_custom_pattern_is_in_force() -> None:
    harness = engine()
    harness.governance = GovernanceRecords(dlp_rules=(rule("project", "redact", pattern=r"PRJ-\d{4}"),))
    await ask(harness, user("about PRJ-1234"))
    assert sent(harness)["messages"][0]["content"] == "about [PROJECT_1]"


@pytest.mark.parametrize(
    ("of_groups", "left"),
    [
        ([{"credit_card": "ALLOW"}], CARD),
        ([{"credit_card": "ALLOW"}, {"credit_card": "REDACT"}], "[CREDIT_CARD_1]"),
        ([{"credit_card": "REDACT"}, {"credit_card": "BLOCK"}], None),
        ([{"ssn": "BLOCK"}], "[CREDIT_CARD_1]"),
    ],
)
async def test_the_strictest_override_of_a_callers_groups_wins(
    of_groups: list[dict[str, Any]], left: str | None
) -> None:
    harness = engine()
    groups = [UUID(int=number) for number in range(1, len(of_groups) + 1)]
    harness.governance = GovernanceRecords(overrides=dict(zip(groups, of_groups, strict=True)))
    assert harness.caller is not None
    harness.caller = msgspec.structs.replace(harness.caller, groups=tuple(groups))
    status, _ = await ask(harness, user(CARD))
    if left is None:
        assert status == 403
    else:
        assert sent(harness)["messages"][0]["content"] == left


@pytest.mark.parametrize("approves", [True, False])
async def test_an_approver_decides_about_a_prompt(approves: bool) -> None:
    harness = engine()
    harness.flags = {"human_in_loop": True}
    harness.approves = approves
    harness.governance = GovernanceRecords(dlp_rules=(rule("credit_card", "prompt"),))
    status, body = await ask(harness, user(CARD))
    assert [question.entity_types for question in harness.approval_questions] == [("credit_card",)]
    [event] = harness.outcomes[0].dlp_events
    if approves:
        assert (status, sent(harness)["messages"][0]["content"], event.status) == (200, CARD, "approved")
    else:
        assert (status, body["error"]["dlp_action"], event.status) == (403, "CANCEL", "cancelled")
        assert harness.outbound.sent == []


async def test_a_prompt_blocks_without_the_approval_feature() -> None:
    harness = engine()
    harness.governance = GovernanceRecords(dlp_rules=(rule("credit_card", "prompt"),))
    status, body = await ask(harness, user(CARD))
    assert (status, body["error"]["dlp_action"]) == (403, "BLOCK")


@pytest.mark.parametrize("approves", [True, False])
async def test_a_stream_that_waits_for_an_approval_begins_at_once(approves: bool) -> None:
    harness = engine()
    harness.outbound.script = [(200, events("Hello"))]
    harness.flags = {"human_in_loop": True}
    harness.approves = approves
    harness.governance = GovernanceRecords(dlp_rules=(rule("credit_card", "prompt"),))
    answer = await harness.engine.answer(harness.request({"model": "one/m", "stream": True, **user(CARD)}))
    assert answer.stream is not None
    blocks = [block async for block in answer.stream]
    assert blocks[0].startswith(b": ")
    text = b"".join(blocks)
    assert (b"Hello" in text and b"[DONE]" in text) is approves
    assert (b"event: error" in text and b"CANCEL" in text) is not approves
    assert len(harness.outcomes) == 1


async def test_an_image_passes_with_an_event_or_is_refused_by_the_setting() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    harness = engine()
    status, _ = await ask(harness, user([{"type": "text", "text": "what is it?"}, picture]))
    assert status == 200
    assert [(event.entity_type, event.status) for event in harness.outcomes[0].dlp_events] == [("image", "logged")]
    harness = engine(unreadable="block")
    status, body = await ask(harness, user([picture]))
    assert (status, body["error"]["type"]) == (403, "dlp_violation")
    assert harness.outbound.sent == []


async def test_a_finding_within_a_stronger_one_is_not_counted() -> None:
    harness = engine()
    rules = (
        rule("number", "redact", id="digits", pattern=r"\d{6}"),
        rule("order", "redact", id="order", pattern=r"ORD-\d{6}-[A-Z]{4}"),
    )
    harness.governance = GovernanceRecords(dlp_rules=rules)
    await ask(harness, user("see ORD-482913-QRTZ and 482913"))
    assert sent(harness)["messages"][0]["content"] == "see [ORDER_1] and [NUMBER_1]"
    assert {event.rule_id: event.match_count for event in harness.outcomes[0].dlp_events} == {"digits": 1, "order": 1}


async def test_overlapping_matches_are_redacted_as_one() -> None:
    harness = engine()
    rules = (
        rule("left", "redact", id="left", pattern=r"AAAA-BBBB"),
        rule("right", "redact", id="right", pattern=r"BBBB-CCCCCC"),
    )
    harness.governance = GovernanceRecords(dlp_rules=rules)
    await ask(harness, user("x AAAA-BBBB-CCCCCC y"))
    assert sent(harness)["messages"][0]["content"] == "x [RIGHT_1] y"
