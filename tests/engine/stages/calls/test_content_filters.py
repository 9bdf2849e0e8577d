"""Content filters, through the whole engine (docs/content-filters.md)."""

import asyncio
import json
import time
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import msgspec
import pytest
from tests.support.engine import TENANT, EngineHarness, completion

from gatehouse.detection.findings import Finding
from gatehouse.engine.dlp.tiers import DlpOptions, TierFailed
from gatehouse.engine.records.outcome import RuleEvent
from gatehouse.engine.stages.calls.content_filters import evaluate
from gatehouse.policy.governance import DlpRuleRecord, FilterRecord, GovernanceRecords

GROUP = UUID(int=77)
CARD = "4111 1111 1111 1111"


class Topics:
    """A semantic tier with fixed scores for some words."""

    def __init__(self, **scores: float) -> None:
        self.scores = scores
        self.classified: list[tuple[list[str], list[str]]] = []
        self.fails: str | None = None

    async def entities(self, texts: Sequence[str], labels: Sequence[str] = ()) -> list[list[Finding]]:
        return [[] for _ in texts]

    async def semantic(self, texts: Sequence[str], labels: Sequence[str]) -> list[dict[str, float]]:
        self.classified.append((list(texts), list(labels)))
        if self.fails:
            raise TierFailed("llm", self.fails)
        return [{label: self.scores.get(label, 0.0) if label in text else 0.0 for label in labels} for text in texts]


def engine(*filters: FilterRecord, topics: Topics | None = None, **options: Any) -> EngineHarness:
    harness = EngineHarness(dlp=DlpOptions(**options), detectors=topics)
    harness.serve("one", "m")
    harness.outbound.script = [(200, [completion()])] * 3
    harness.governance = GovernanceRecords(filters=filters)
    return harness


def keywords(number: int, *words: str, **more: Any) -> FilterRecord:
    return _filter(number, "keyword_block", keywords=words, **more)


def topics(number: int, *names: str, **more: Any) -> FilterRecord:
    return _filter(number, "topic_block", topics=names, **more)


def instruction(number: int, text: str, **more: Any) -> FilterRecord:
    return _filter(number, "custom_instruction", instruction=text, **more)


def _filter(number: int, kind: str, **more: Any) -> FilterRecord:
    fields = {"id": str(UUID(int=number)), "name": f"filter {number}", "filter_type": kind, "priority": number}
    return msgspec.convert({**fields, **more}, FilterRecord)


async def ask(
    harness: EngineHarness, content: Any, dialect: str = "openai_chat", **more: Any
) -> tuple[int, dict[str, Any]]:
    body = {"model": "one/m", "messages": [{"role": "user", "content": content}], **more}
    answer = await harness.engine.answer(harness.request(body, dialect=dialect))
    return answer.status, json.loads(answer.body)


def sent(harness: EngineHarness) -> dict[str, Any]:
    decoded: dict[str, Any] = json.loads(harness.outbound.sent[-1].body)
    return decoded


async def test_a_keyword_refuses_the_request_without_being_disclosed() -> None:
    harness = engine(keywords(1, "Falcon"))
    status, body = await ask(harness, "what is FALCON?")
    assert status == 403
    assert body == {
        "error": {
            "message": "A content filter of your organization does not permit this request.",
            "type": "content_filter_violation",
            "code": "content_filter_violation",
            "filter_id": str(UUID(int=1)),
        }
    }
    assert harness.outbound.sent == []
    (outcome,) = harness.outcomes
    assert (outcome.outcome, outcome.error_code) == ("refused", "content_filter_violation")
    assert outcome.rule_events == (
        RuleEvent(
            kind="content_filter", rule_id=str(UUID(int=1)), rule_name="filter 1", action="keyword_block",
            result="matched",
        ),
    )  # fmt: skip


async def test_other_requests_pass() -> None:
    harness = engine(keywords(1, "Falcon"))
    assert (await ask(harness, "what is a falconer?"))[0] == 200
    assert harness.outcomes[0].rule_events == ()


PLACES: list[tuple[str, str, dict[str, Any]]] = [
    ("a text part", "openai_chat", {"messages": [{"role": "user", "content": [{"type": "text", "text": "falcon"}]}]}),
    ("the system prompt", "openai_chat", {"messages": [{"role": "system", "content": "falcon"}]}),
    ("an answer before", "openai_chat", {"messages": [{"role": "assistant", "content": "falcon"}]}),
    ("a tool's arguments", "openai_chat", {"messages": [{"role": "assistant", "content": None, "tool_calls": [
        {"id": "t", "type": "function", "function": {"name": "f", "arguments": '{"q": "f\\u0061lcon"}'}}]}]}),
    ("a tool's result", "openai_chat", {"messages": [{"role": "tool", "tool_call_id": "t", "content": "falcon"}]}),
    ("a tool's description", "openai_chat", {"tools": [
        {"type": "function", "function": {"name": "f", "description": "finds a falcon"}}]}),
    ("Anthropic's system prompt", "anthropic_messages", {"max_tokens": 9, "system": "falcon"}),
    ("Anthropic's tool input", "anthropic_messages", {"max_tokens": 9, "messages": [{"role": "assistant", "content": [
        {"type": "tool_use", "id": "t", "name": "f", "input": {"q": "a falcon"}}]}]}),
    ("embeddings", "openai_embeddings", {"input": ["one", "a falcon"]}),
]  # fmt: skip


@pytest.mark.parametrize(("dialect", "body"), [p[1:] for p in PLACES], ids=[p[0] for p in PLACES])
async def test_every_text_of_a_request_is_searched(dialect: str, body: dict[str, Any]) -> None:
    harness = engine(keywords(1, "falcon"))
    assert (await ask(harness, "hi", dialect, **body))[0] == 403


@pytest.mark.parametrize("levels", range(1, 4))
async def test_a_keyword_in_escaped_json_in_a_text_is_found(levels: int) -> None:
    text = "see\nprojectx\nplease"
    for _ in range(levels):
        text = json.dumps({"note": text})
    harness = engine(keywords(1, "projectx"))
    answer = await harness.engine.answer(
        harness.request({"model": "one/m", "messages": [{"role": "tool", "tool_call_id": "t", "content": text}]})
    )
    assert answer.status == 403


async def test_keywords_do_not_cross_two_texts() -> None:
    harness = engine(keywords(1, "project falcon"))
    messages = [{"role": "user", "content": "my project"}, {"role": "user", "content": "falcon"}]
    assert (await ask(harness, "", messages=messages))[0] == 200


async def test_the_first_matching_filter_in_order_is_named() -> None:
    harness = engine(keywords(1, "never"), keywords(2, "falcon"), keywords(3, "about"))
    _, body = await ask(harness, "about falcon")
    assert body["error"]["filter_id"] == str(UUID(int=2))


async def test_a_groups_filter_applies_only_to_its_members() -> None:
    harness = engine(keywords(1, "falcon", group_id=str(GROUP)), instruction(2, "Be brief.", group_id=str(GROUP)))
    assert (await ask(harness, "falcon"))[0] == 200
    assert sent(harness)["messages"] == [{"role": "user", "content": "falcon"}]
    assert harness.caller is not None
    harness.caller = msgspec.structs.replace(harness.caller, groups=(UUID(int=5), GROUP))
    assert (await ask(harness, "falcon"))[0] == 403
    await ask(harness, "hello")
    assert sent(harness)["messages"][0] == {"role": "system", "content": "Be brief."}


async def test_filters_come_before_dlp() -> None:
    harness = engine(keywords(1, "falcon"))
    block = msgspec.convert(
        {"id": "r", "name": "cards", "detector_type": "regex", "entity_type": "credit_card", "action": "block"},
        DlpRuleRecord,
    )
    harness.governance = msgspec.structs.replace(harness.governance, dlp_rules=(block,))
    _, body = await ask(harness, f"falcon {CARD}")
    assert body["error"]["code"] == "content_filter_violation"
    assert harness.outcomes[0].dlp_events == ()


async def test_a_topic_refuses_the_request() -> None:
    tier = Topics(medicine=0.7, law=0.4)
    harness = engine(topics(1, "law", "medicine"), topics=tier)
    assert (await ask(harness, "law"))[0] == 200
    status, body = await ask(harness, "medicine")
    assert (status, body["error"]["filter_id"]) == (403, str(UUID(int=1)))
    assert harness.outcomes[1].rule_events[0].action == "topic_block"


async def test_a_topic_is_compared_with_the_threshold_of_its_filter() -> None:
    harness = engine(topics(1, "law", threshold=0.8), topics(2, "law", threshold=0.3), topics=Topics(law=0.5))
    _, body = await ask(harness, "law")
    assert body["error"]["filter_id"] == str(UUID(int=2))


async def test_topics_are_checked_in_messages_and_tool_descriptions_but_not_in_names_and_schemas() -> None:
    tier = Topics()
    harness = engine(topics(1, "law"), topics=tier)
    parameters = {
        "type": "object", "properties": {"law": {"type": "string", "description": "which one", "enum": ["law"]}}
    }  # fmt: skip
    function = {"name": "search_the_law", "description": "finds it", "parameters": parameters}
    await ask(harness, "hello", tools=[{"type": "function", "function": function}])
    assert tier.classified == [(["hello", "finds it", "which one"], ["law"])]


async def test_a_topic_in_a_tools_description_is_refused() -> None:
    harness = engine(topics(1, "law"), topics=Topics(law=0.9))
    tool = {"type": "function", "function": {"name": "f", "description": "Advise me about the law."}}
    assert (await ask(harness, "hello", tools=[tool]))[0] == 403


async def test_a_topic_in_the_grammar_of_a_custom_tool_is_refused() -> None:
    tier = Topics()
    harness = engine(topics(1, "law"), topics=tier)
    grammar = {"type": "grammar", "syntax": "regex", "definition": "Advise me about the law."}
    tool = {"type": "custom", "name": "law", "format": grammar}
    harness.outbound.script = [(200, [completion()])]
    body = {"model": "one/m", "input": "hello", "tools": [tool]}
    assert (await harness.engine.answer(harness.request(body, dialect="openai_responses"))).status == 200
    assert tier.classified == [(["hello", "Advise me about the law."], ["law"])]


async def test_keywords_split_over_the_parts_of_a_message_are_found() -> None:
    harness = engine(keywords(1, "project falcon"))
    parts = [{"type": "text", "text": "tell me of project"}, {"type": "text", "text": "falcon, please"}]
    assert (await ask(harness, parts))[0] == 403
    assert (await ask(harness, parts[::-1]))[0] == 200


async def test_keyword_and_topic_filters_share_one_order() -> None:
    tier = Topics(law=0.9)
    harness = engine(topics(1, "law"), keywords(2, "falcon"), topics(3, "war"), topics=tier)
    _, body = await ask(harness, "law and falcon")
    assert body["error"]["filter_id"] == str(UUID(int=1))
    _, body = await ask(harness, "falcon")
    assert body["error"]["filter_id"] == str(UUID(int=2))
    assert tier.classified[-1][1] == ["law"]


async def test_without_topics_the_semantic_tier_is_not_called() -> None:
    tier = Topics()
    await ask(engine(keywords(1, "falcon"), instruction(2, "Be brief."), topics=tier), "hello")
    assert tier.classified == []


async def test_a_failed_tier_refuses_the_request() -> None:
    tier = Topics()
    tier.fails = "timeout"
    harness = engine(topics(1, "law"), topics=tier)
    status, body = await ask(harness, "hello")
    assert (status, body["error"]["code"]) == (503, "dlp_unavailable")
    assert [(event.action, event.result) for event in harness.outcomes[0].rule_events] == [("topic_block", "failed")]


async def test_a_tier_that_fails_open_is_an_event_and_keywords_still_apply() -> None:
    tier = Topics()
    tier.fails = "crashed"
    harness = engine(topics(1, "law"), keywords(2, "falcon"), topics=tier, fail_mode="open")
    assert (await ask(harness, "hello"))[0] == 200
    assert [event.result for event in harness.outcomes[0].rule_events] == ["failed"]
    assert (await ask(harness, "falcon"))[0] == 403
    assert [event.result for event in harness.outcomes[1].rule_events] == ["failed", "matched"]


SYSTEMS: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [
    (
        "no system prompt", "openai_chat", {},
        {"messages": [{"role": "system", "content": "First.\n\nSecond."}, {"role": "user", "content": "hi"}]},
    ),
    (
        "a system prompt", "openai_chat",
        {"messages": [{"role": "system", "content": "Mine."}, {"role": "user", "content": "hi"}]},
        {"messages": [{"role": "system", "content": "First.\n\nSecond.\n\nMine."}, {"role": "user", "content": "hi"}]},
    ),
    (
        "a developer's in parts", "openai_chat",
        {"messages": [{"role": "developer", "content": [{"type": "text", "text": "Mine."}]}]},
        {"messages": [{"role": "developer", "content": [
            {"type": "text", "text": "First.\n\nSecond."}, {"type": "text", "text": "Mine."}]}]},
    ),
    (
        "a later system prompt", "openai_chat",
        {"messages": [{"role": "user", "content": "hi"}, {"role": "system", "content": "Mine."}]},
        {"messages": [
            {"role": "system", "content": "First.\n\nSecond."}, {"role": "user", "content": "hi"},
            {"role": "system", "content": "Mine."}]},
    ),
    ("Anthropic without", "anthropic_messages", {"max_tokens": 9}, {"system": "First.\n\nSecond."}),
    (
        "Anthropic's text", "anthropic_messages", {"max_tokens": 9, "system": "Mine."},
        {"system": "First.\n\nSecond.\n\nMine."},
    ),
    (
        "Anthropic's blocks", "anthropic_messages", {"max_tokens": 9, "system": [{"type": "text", "text": "Mine."}]},
        {"system": [{"type": "text", "text": "First.\n\nSecond."}, {"type": "text", "text": "Mine."}]},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("dialect", "body", "expected"), [s[1:] for s in SYSTEMS], ids=[s[0] for s in SYSTEMS])
async def test_all_instructions_precede_the_system_prompt_in_order(
    dialect: str, body: dict[str, Any], expected: dict[str, Any]
) -> None:
    harness = engine(instruction(1, "First."), keywords(2, "falcon"), instruction(3, "Second."))
    kind = "anthropic" if dialect == "anthropic_messages" else "openai_compatible"
    harness.serve("two", "n", kind=kind)
    await ask(harness, "hi", dialect, **{**body, "model": "two/n"})
    assert {name: sent(harness)[name] for name in expected} == expected


async def test_instructions_reach_a_provider_of_another_dialect() -> None:
    harness = engine(instruction(1, "Be brief."))
    await ask(harness, "hi", "anthropic_messages", max_tokens=9, system="Mine.")
    assert sent(harness)["messages"][0] == {"role": "system", "content": "Be brief.\n\nMine."}


async def test_embeddings_get_no_instructions() -> None:
    harness = engine(instruction(1, "Be brief."))
    body = {"model": "one/m", "input": "hi"}
    await harness.engine.answer(harness.request(body, dialect="openai_embeddings"))
    assert sent(harness) == {"model": "m", "input": "hi"}


async def test_instructions_are_not_inspected_as_the_callers_text() -> None:
    """Neither the organization's keyword filters nor its DLP rules apply to the instructions."""
    harness = engine(keywords(1, "falcon"), instruction(2, f"Never speak of falcon or {CARD}."))
    assert (await ask(harness, "hi"))[0] == 200
    assert CARD in sent(harness)["messages"][0]["content"]


async def test_a_long_text_does_not_block_other_requests() -> None:
    harness = engine(keywords(1, *[f"word{n}" for n in range(1_000)]))
    text = "caf\u00e9 au lait " * 70_000
    longest = 0.0

    async def others() -> None:
        nonlocal longest
        last = time.perf_counter()
        while True:
            await asyncio.sleep(0)
            longest, last = max(longest, time.perf_counter() - last), time.perf_counter()

    filters = (await harness.current(TENANT)).filters
    watching = asyncio.create_task(others())
    await asyncio.sleep(0)
    judgement = await evaluate(filters, filters.filters, {"messages": [{"content": text}]}, harness.ports)
    watching.cancel()
    assert judgement.blocking is None
    assert longest < 0.05
