"""What leaves for the provider, through the whole engine."""

import json
from typing import Any
from uuid import UUID

import msgspec
import pytest
from tests.support.engine import HeldEngine, completion, events

from gatehouse.engine.dlp.tiers import DlpOptions
from gatehouse.policy.governance import DlpRuleRecord, GovernanceRecords

CARD = "4111 1111 1111 1111"
OTHER_CARD = "5555 5555 5555 4444"


def engine(**options: Any) -> HeldEngine:
    held = HeldEngine(dlp=DlpOptions(**options))
    held.serve("one", "m")
    held.outbound.script.append((200, [completion()]))
    return held


def rule(entity_type: str, action: str, **more: Any) -> DlpRuleRecord:
    values = {"id": "r-1", "name": "a rule", "detector_type": "regex", "entity_type": entity_type, "action": action}
    return msgspec.convert({**values, **more}, DlpRuleRecord)


async def ask(held: HeldEngine, body: dict[str, Any], dialect: str = "openai_chat") -> tuple[int, dict[str, Any]]:
    answer = await held.engine.answer(held.request({"model": "one/m", **body}, dialect=dialect))
    return answer.status, json.loads(answer.body)


def sent(held: HeldEngine) -> dict[str, Any]:
    decoded: dict[str, Any] = json.loads(held.outbound.sent[-1].body)
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
    ("a field that the gateway does not know", "openai_chat", {**user("hi"), "metadata": {"note": f"card {CARD}"}}),
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
async def test_a_card_number_never_leaves_wherever_it_stands(dialect: str, body: dict[str, Any]) -> None:
    held = engine()
    await ask(held, body, dialect)
    raw = held.outbound.sent[-1].body.decode()
    assert CARD not in raw
    assert "[CREDIT_CARD_1]" in raw


async def test_the_same_value_has_the_same_label() -> None:
    held = engine()
    await ask(held, user(f"{CARD} and {OTHER_CARD} and again {CARD}"))
    assert sent(held)["messages"][0]["content"] == "[CREDIT_CARD_1] and [CREDIT_CARD_2] and again [CREDIT_CARD_1]"


async def test_a_label_that_was_said_before_stands_for_nothing_that_the_answer_holds() -> None:
    held = engine()
    held.outbound.script[:] = [(200, [completion(f"try {OTHER_CARD}")])]
    _, told = await ask(held, user("[CREDIT_CARD_1] was refused, any other?"))
    assert told["choices"][0]["message"]["content"] == "try [CREDIT_CARD_2]"


async def test_arguments_stay_json_when_a_bare_number_is_redacted() -> None:
    held = engine()
    arguments = '{"card": 4111111111111111, "n": 1}'
    call = {"id": "t", "type": "function", "function": {"name": "pay", "arguments": arguments}}
    await ask(held, {"messages": [{"role": "assistant", "content": None, "tool_calls": [call]}]})
    told = sent(held)["messages"][0]["tool_calls"][0]["function"]["arguments"]
    assert json.loads(told) == {"card": "[CREDIT_CARD_1]", "n": 1}


async def test_a_number_in_a_tools_input_is_looked_at_too() -> None:
    held = engine()
    use = {"type": "tool_use", "id": "t", "name": "pay", "input": {"card": 4111111111111111}}
    body = {"max_tokens": 9, "messages": [{"role": "assistant", "content": [use]}]}
    await ask(held, body, "anthropic_messages")
    assert "4111111111111111" not in held.outbound.sent[-1].body.decode()


async def test_what_is_only_logged_passes_as_it_is() -> None:
    held = engine()
    status, _ = await ask(held, user("write to bob@example.com"))
    assert status == 200
    assert sent(held)["messages"][0]["content"] == "write to bob@example.com"
    [event] = held.outcomes[0].dlp_events
    assert (event.entity_type, event.status, event.direction, event.severity) == ("email", "logged", "input", "low")


async def test_a_blocked_request_sends_nothing_and_says_which_rule() -> None:
    held = engine()
    held.governance = GovernanceRecords(dlp_rules=(rule("credit_card", "block"),))
    status, body = await ask(held, user(f"my card is {CARD}"))
    assert (status, body["error"]["type"], body["error"]["rule_id"]) == (403, "dlp_violation", "r-1")
    assert CARD not in json.dumps(body)
    assert held.outbound.sent == []
    [event] = held.outcomes[0].dlp_events
    assert (event.status, event.severity, event.source) == ("blocked", "critical", "organization")
    assert held.outcomes[0].dlp_action == "BLOCK"


async def test_the_status_of_a_block_is_a_setting() -> None:
    held = engine(block_status=400)
    held.governance = GovernanceRecords(dlp_rules=(rule("credit_card", "block"),))
    status, body = await ask(held, user(CARD))
    assert (status, body["error"]["type"]) == (400, "dlp_violation")


async def test_a_record_names_the_action_and_never_the_text() -> None:
    held = engine()
    await ask(held, user(f"my card is {CARD}"))
    [outcome] = held.outcomes
    assert outcome.dlp_action == "REDACT"
    assert "4111 1111" not in str(outcome)


async def test_switched_off_nothing_is_looked_at() -> None:
    held = engine()
    held.flags = {"dlp_enabled": False}
    await ask(held, user(f"my card is {CARD}"))
    assert sent(held)["messages"][0]["content"] == f"my card is {CARD}"
    assert held.outcomes[0].dlp_action is None


async def test_a_suppressed_pattern_is_not_looked_for() -> None:
    held = engine()
    held.governance = GovernanceRecords(suppressions=frozenset({"credit-card"}))
    await ask(held, user(f"my card is {CARD}"))
    assert CARD in sent(held)["messages"][0]["content"]


async def test_an_organizations_own_pattern_is_in_force() -> None:
    held = engine()
    held.governance = GovernanceRecords(dlp_rules=(rule("project", "redact", pattern=r"PRJ-\d{4}"),))
    await ask(held, user("about PRJ-1234"))
    assert sent(held)["messages"][0]["content"] == "about [PROJECT_1]"


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
    held = engine()
    groups = [UUID(int=number) for number in range(1, len(of_groups) + 1)]
    held.governance = GovernanceRecords(overrides=dict(zip(groups, of_groups, strict=True)))
    assert held.caller is not None
    held.caller = msgspec.structs.replace(held.caller, groups=tuple(groups))
    status, _ = await ask(held, user(CARD))
    if left is None:
        assert status == 403
    else:
        assert sent(held)["messages"][0]["content"] == left


@pytest.mark.parametrize("approves", [True, False])
async def test_a_person_decides_about_a_prompt(approves: bool) -> None:
    held = engine()
    held.flags = {"human_in_loop": True}
    held.approves = approves
    held.governance = GovernanceRecords(dlp_rules=(rule("credit_card", "prompt"),))
    status, body = await ask(held, user(CARD))
    assert [asked.entity_types for asked in held.asked] == [("credit_card",)]
    [event] = held.outcomes[0].dlp_events
    if approves:
        assert (status, sent(held)["messages"][0]["content"], event.status) == (200, CARD, "approved")
    else:
        assert (status, body["error"]["dlp_action"], event.status) == (403, "CANCEL", "cancelled")
        assert held.outbound.sent == []


async def test_with_nobody_to_ask_a_prompt_blocks() -> None:
    held = engine()
    held.governance = GovernanceRecords(dlp_rules=(rule("credit_card", "prompt"),))
    status, body = await ask(held, user(CARD))
    assert (status, body["error"]["dlp_action"]) == (403, "BLOCK")


@pytest.mark.parametrize("approves", [True, False])
async def test_a_stream_that_waits_for_a_person_hears_so_at_once(approves: bool) -> None:
    held = engine()
    held.outbound.script = [(200, events("Hello"))]
    held.flags = {"human_in_loop": True}
    held.approves = approves
    held.governance = GovernanceRecords(dlp_rules=(rule("credit_card", "prompt"),))
    answer = await held.engine.answer(held.request({"model": "one/m", "stream": True, **user(CARD)}))
    assert answer.stream is not None
    blocks = [block async for block in answer.stream]
    assert blocks[0].startswith(b": ")
    text = b"".join(blocks)
    assert (b"Hello" in text and b"[DONE]" in text) is approves
    assert (b"event: error" in text and b"CANCEL" in text) is not approves
    assert len(held.outcomes) == 1


async def test_a_picture_passes_with_an_event_and_is_refused_where_the_setting_says_so() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    held = engine()
    status, _ = await ask(held, user([{"type": "text", "text": "what is it?"}, picture]))
    assert status == 200
    assert [(event.entity_type, event.status) for event in held.outcomes[0].dlp_events] == [("image", "logged")]
    held = engine(unreadable="block")
    status, body = await ask(held, user([picture]))
    assert (status, body["error"]["type"]) == (403, "dlp_violation")
    assert held.outbound.sent == []


async def test_a_finding_within_a_stronger_one_is_not_counted() -> None:
    held = engine()
    rules = (
        rule("number", "redact", id="digits", pattern=r"\d{6}"),
        rule("order", "redact", id="order", pattern=r"ORD-\d{6}-[A-Z]{4}"),
    )
    held.governance = GovernanceRecords(dlp_rules=rules)
    await ask(held, user("see ORD-482913-QRTZ and 482913"))
    assert sent(held)["messages"][0]["content"] == "see [ORDER_1] and [NUMBER_1]"
    assert {event.rule_id: event.match_count for event in held.outcomes[0].dlp_events} == {"digits": 1, "order": 1}


async def test_what_overlaps_is_redacted_as_one() -> None:
    held = engine()
    rules = (
        rule("left", "redact", id="left", pattern=r"AAAA-BBBB"),
        rule("right", "redact", id="right", pattern=r"BBBB-CCCCCC"),
    )
    held.governance = GovernanceRecords(dlp_rules=rules)
    await ask(held, user("x AAAA-BBBB-CCCCCC y"))
    assert sent(held)["messages"][0]["content"] == "x [RIGHT_1] y"
