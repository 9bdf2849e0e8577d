"""Fields of a call that need the organization's permission, through the whole engine."""

import json
from collections.abc import Mapping
from time import perf_counter
from typing import Any
from uuid import UUID

import msgspec
import pytest
from tests.support.engine import EngineHarness, completion

from gatehouse.engine.exchange import Answer
from gatehouse.engine.fields import tables
from gatehouse.engine.fields.naming import uncommon
from gatehouse.engine.records.outcome import RuleEvent
from gatehouse.policy.governance import GovernanceRecords, PolicyRuleRecord

HELLO = {"messages": [{"role": "user", "content": "hi"}]}
FUNCTION = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


def engine(*allowed: str, unknown: str = "pass", kind: str = "openai_compatible", **config: Any) -> EngineHarness:
    harness = EngineHarness()
    harness.serve("one", "a", kind=kind, **config)
    harness.allowed_fields = allowed
    harness.ports.unknown_fields = unknown  # type: ignore[assignment]
    return harness


async def ask(
    harness: EngineHarness, body: Mapping[str, Any], *, dialect: str = "openai_chat"
) -> tuple[Answer, dict[str, Any]]:
    if not harness.outbound.script:
        harness.outbound.script = [(200, [completion()])]
    answer = await harness.engine.answer(harness.request({"model": "one/a", **HELLO, **body}, dialect=dialect))
    return answer, json.loads(answer.body) if answer.body else {}


@pytest.mark.parametrize(
    ("body", "name", "param"),
    [
        ({"models": ["b"]}, "models", "models"),
        ({"route": "fallback"}, "route", "route"),
        ({"provider": {"order": ["x"]}}, "provider", "provider"),
        ({"plugins": [{"id": "web"}]}, "plugins", "plugins"),
        ({"service_tier": "priority"}, "service_tier", "service_tier"),
        ({"store": True}, "store", "store"),
        ({"data_sources": [{}]}, "data_sources", "data_sources"),
        ({"dataSources": [{}]}, "data_sources", "dataSources"),
        ({"Models": ["b"]}, "models", "Models"),
        ({"web_search_options": {}}, "web_search_options", "web_search_options"),
        ({"mcp_servers": [{"url": "https://x"}]}, "mcp_servers", "mcp_servers"),
        ({"cached_content": "c_1"}, "cached_content", "cached_content"),
        ({"extra_body": {"models": ["b"]}}, "extra_body", "extra_body"),
        ({"providerOptions": {"gateway": {"models": ["b"]}}}, "provider_options", "providerOptions"),
        ({"api_base": "https://x"}, "api_base", "api_base"),
        ({"tools": [FUNCTION, {"type": "mcp", "server_url": "https://x"}]}, "tools.mcp", "tools[1].type"),
        ({"tools": [{"type": "web_search_preview_2025_03_11"}]}, "tools.web_search", "tools[0].type"),
        ({"tools": [{"google_search": {}}]}, "tools.google_search", "tools[0].type"),
        ({"tools": [{"type": 5}]}, "tools.?", "tools[0].type"),
    ],
)
async def test_a_field_that_needs_permission_is_refused_by_name_until_it_is_allowed(
    body: dict[str, Any], name: str, param: str
) -> None:
    harness = engine()
    answer, response_body = await ask(harness, body)
    error = response_body["error"]
    assert (answer.status, error["code"], error["param"]) == (400, "field_not_allowed", param)
    assert f"`{name}`" in error["message"]
    assert "PUT /api/v1/admin/org/request-fields" in error["message"]
    assert harness.outbound.sent == []
    (outcome,) = harness.outcomes
    assert (outcome.outcome, outcome.error_code) == ("refused", "field_not_allowed")
    assert outcome.rule_events[-1] == RuleEvent(
        kind="request_field", rule_id=name, rule_name="Request fields", action="BLOCK", result="matched", model="one/a"
    )
    harness = engine(name)
    answer, _ = await ask(harness, body)
    assert answer.status == 200
    sent = json.loads(harness.outbound.sent[0].body or b"")
    assert {key: sent[key] for key in body} == body


@pytest.mark.parametrize(
    "body",
    [
        {"service_tier": "auto"}, {"service_tier": "default"}, {"store": False}, {"store": None}, {"models": []},
        {"prompt_cache_retention": "in_memory"}, {"tools": [FUNCTION, {"type": "custom", "custom": {"name": "c"}}]},
        {"metadata": {"a": "b"}, "reasoning_effort": "low", "verbosity": "low", "prompt_cache_key": "k", "n": 1,
         "prediction": {"type": "content", "content": "x"}, "stream_options": None, "safety_identifier": "s"},
        {"chat_template_kwargs": {"enable_thinking": False}, "top_k": 4, "min_p": 0.1, "guided_json": {}},
    ],
)  # fmt: skip
async def test_ordinary_fields_and_harmless_values_pass_without_a_record(body: dict[str, Any]) -> None:
    harness = engine(unknown="refuse")
    answer, response_body = await ask(harness, body)
    assert answer.status == 200, response_body
    assert harness.outcomes[0].rule_events == ()


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ({"mcp_servers": [{"type": "url", "url": "https://x", "name": "x"}]}, "mcp_servers"),
        ({"container": "c_1"}, "container"),
        ({"service_tier": "priority"}, "service_tier"),
        ({"inference_geo": "us"}, "inference_geo"),
        ({"speed": "fast"}, "speed"),
        ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "tools.web_search"),
        ({"tools": [{"type": "code_execution_20250825", "name": "code_execution"}]}, "tools.code_execution"),
        ({"tools": [{"type": "mcp_toolset", "mcp_server_name": "x"}]}, "tools.mcp_toolset"),
        ({"service_tier": "standard_only"}, None),
        ({"inference_geo": "global"}, None),
        (
            {
                "thinking": {"type": "enabled", "budget_tokens": 1024}, "context_management": {"edits": []},
                "metadata": {"user_id": "u"}, "cache_control": {"type": "ephemeral", "ttl": "1h"},
                "output_config": {"effort": "low"},
                "tools": [
                    {"name": "f", "input_schema": {"type": "object"}, "defer_loading": True},
                    {"type": "custom", "name": "g", "input_schema": {"type": "object"}},
                    {"type": "bash_20250124", "name": "bash"},
                    {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool"},
                    {"type": "memory_20250818", "name": "memory"},
                    {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"},
                ],
            },
            None,
        ),
    ],
)  # fmt: skip
async def test_fields_of_the_messages_dialect_are_judged_alike(body: dict[str, Any], name: str | None) -> None:
    harness = engine(unknown="refuse", kind="anthropic")
    message = {
        "id": "m", "type": "message", "role": "assistant", "model": "a", "content": [{"type": "text", "text": "hi"}],
        "stop_reason": "end_turn", "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
    }  # fmt: skip
    harness.outbound.script = [(200, [json.dumps(message).encode()])]
    answer, response_body = await ask(harness, {"max_tokens": 10, **body}, dialect="anthropic_messages")
    if name is None:
        assert answer.status == 200, response_body
        return
    assert (answer.status, response_body["type"], response_body["error"]["type"]) == (
        400,
        "error",
        "invalid_request_error",
    )
    assert f"`{name}`" in response_body["error"]["message"]


async def test_fields_of_embeddings_are_judged_alike() -> None:
    harness = engine()
    body = {"model": "one/a", "input": "x", "models": ["b"]}
    answer = await harness.engine.answer(harness.request(body, dialect="openai_embeddings"))
    assert json.loads(answer.body)["error"]["code"] == "field_not_allowed"


async def test_a_candidate_that_does_not_receive_the_field_answers_instead() -> None:
    harness = engine()
    harness.serve("two", "b", kind="gemini", base_url="https://two.test")
    reply = {"candidates": [{"content": {"role": "model", "parts": [{"text": "hi"}]}, "finishReason": "STOP"}]}
    harness.outbound.script = [(200, [json.dumps(reply).encode()])]
    answer, body = await ask(harness, {"models": ["x"], "fallbacks": ["two/b"]})
    assert answer.status == 200, body
    (request,) = harness.outbound.sent
    assert "two.test" in request.url
    assert b"models" not in (request.body or b"")


async def test_a_local_provider_ignores_tiers_and_still_guards_models() -> None:
    local = {"kind": "ollama", "local_runtime_base_url": "http://localhost:11434"}
    assert (await ask(engine(**local), {"service_tier": "priority", "store": True}))[0].status == 200
    assert (await ask(engine(**local), {"models": ["x"]}))[0].status == 400


async def test_all_hosted_tools_can_be_allowed_at_once() -> None:
    answer, _ = await ask(engine("tools.*"), {"tools": [{"type": "mcp"}, {"type": "web_search"}]})
    assert answer.status == 200


async def test_unknown_fields_pass_and_are_recorded_or_are_refused_by_the_setting() -> None:
    body = {"vendor_speciality": 1, "4111 1111 1111 1111": 1, **{f"x{number}": 1 for number in range(40)}}
    harness = engine()
    answer, _ = await ask(harness, body)
    assert answer.status == 200
    names = [event.rule_id for event in harness.outcomes[0].rule_events]
    assert names[:2] == ["vendor_speciality", "?"]
    assert len(names) == 16
    assert {event.action for event in harness.outcomes[0].rule_events} == {"LOG"}
    answer, response_body = await ask(engine(unknown="refuse"), {"vendor_speciality": 1})
    assert (answer.status, response_body["error"]["param"]) == (400, "vendor_speciality")
    answer, _ = await ask(engine("vendor_speciality", unknown="refuse"), {"vendor_speciality": 1})
    assert answer.status == 200


UNKNOWN_TOOL_FIELDS: list[tuple[str, dict[str, Any], str, str]] = [
    ("openai_chat", {**FUNCTION, "hint": 1}, "tool.hint", "tools[0].hint"),
    ("openai_chat", {"type": "function", "function": {"name": "f", "hint": 1}}, "tool.hint", "tools[0].function.hint"),
    ("openai_chat", {"type": "custom", "custom": {"name": "f", "hint": 1}}, "tool.hint", "tools[0].custom.hint"),
    ("openai_responses", {"type": "function", "name": "f", "hint": 1}, "tool.hint", "tools[0].hint"),
    ("openai_responses", {"type": "namespace", "name": "n", "description": "", "tools": [
        {"type": "custom", "name": "f", "hint": 1},
    ]}, "tool.hint", "tools[0].tools[0].hint"),
    ("anthropic_messages", {"name": "f", "input_schema": {}, "hint": 1}, "tool.hint", "tools[0].hint"),
]  # fmt: skip


@pytest.mark.parametrize(("dialect", "tool", "name", "param"), UNKNOWN_TOOL_FIELDS)
async def test_unknown_fields_of_functions_are_recorded_or_refused(
    dialect: str, tool: dict[str, Any], name: str, param: str
) -> None:
    config: dict[str, Any] = {"kind": "anthropic"} if dialect == "anthropic_messages" else {}
    body = {"model": "one/a", "tools": [tool], **HELLO, "max_tokens": 9}
    if dialect == "openai_responses":
        config = {"responses_api": True}
        body = {"model": "one/a", "tools": [tool], "input": "hi"}
    harness = engine(unknown="refuse", **config)
    answer = await harness.engine.answer(harness.request(body, dialect=dialect))
    assert answer.refusal is not None
    assert (answer.refusal.code, answer.refusal.extra) == ("field_not_allowed", {"param": param})
    harness = engine(name, unknown="refuse", **config)
    harness.outbound.script = [(200, [completion()])]
    await harness.engine.answer(harness.request(body, dialect=dialect))
    assert len(harness.outbound.sent) == 1
    assert [event.rule_id for event in harness.outcomes[0].rule_events] == [name]


async def test_the_key_that_names_a_hosted_tool_is_no_unknown_field() -> None:
    harness = engine("tools.google_search", unknown="refuse")
    answer, response_body = await ask(harness, {"tools": [{"google_search": {}}]})
    assert answer.status == 200, response_body
    assert harness.outcomes[0].rule_events == ()
    answer, response_body = await ask(harness, {"tools": [{"google_search": {}, "hint": 1}]})
    assert (answer.status, response_body["error"]["param"]) == (400, "tools[0].hint")


async def test_known_fields_of_functions_are_not_recorded() -> None:
    known = {**FUNCTION["function"], "description": "d", "strict": True}  # type: ignore[dict-item]
    harness = engine(unknown="refuse")
    answer, _ = await ask(harness, {"tools": [{**FUNCTION, "function": known, "cache_control": {}}]})
    assert (answer.status, harness.outcomes[0].rule_events) == (200, ())


async def test_the_number_of_recorded_fields_of_functions_is_bounded() -> None:
    harness = engine()
    answer, _ = await ask(harness, {"tools": [{**FUNCTION, **{f"x{number}": 1 for number in range(200)}}]})
    assert (answer.status, len(harness.outcomes[0].rule_events)) == (200, 16)


async def test_a_body_with_hundreds_of_fields_is_refused() -> None:
    answer, body = await ask(engine(), {f"x{number}": 1 for number in range(300)})
    assert (answer.status, body["error"]["param"]) == (400, "body")


IMAGE = {"type": "input_image", "file_id": "file-1"}
FILE = {"type": "document", "source": {"type": "file", "file_id": "file_1"}}
FILES = {
    "openai_chat": ({"content": [{"type": "file", "file": {"file_id": "file-1"}}]}, "[0].file.file_id"),
    "openai_responses": ({"content": [IMAGE]}, "[0].file_id"),
    "anthropic_messages": (
        {"content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": [FILE]}]},
        "[0].content[0].source.file_id",
    ),
}
KINDS = {"openai_chat": "openai_compatible", "openai_responses": "openai", "anthropic_messages": "anthropic"}


@pytest.mark.parametrize("escaped", [False, True])
@pytest.mark.parametrize("dialect", FILES)
async def test_a_file_at_the_provider_needs_permission(dialect: str, escaped: bool) -> None:
    message, place = FILES[dialect]
    field = "input" if dialect == "openai_responses" else "messages"
    body = {"model": "one/a", "max_tokens": 9, field: [{"role": "user", **message}]}
    if dialect == "openai_responses":
        del body["max_tokens"]
    raw = json.dumps(body).encode()
    if escaped:
        raw = raw.replace(b'"file_id"', b'"file\\u005fid"')
    for allowed in ((), ("file_id",)):
        harness = engine(*allowed, kind=KINDS[dialect])
        harness.outbound.script = [(500, [b"{}"])]
        answer = await harness.engine.answer(harness.request(raw, dialect=dialect))
        assert bool(harness.outbound.sent) is bool(allowed)
        if not allowed:
            error = json.loads(answer.body)["error"]
            assert (answer.status, error["code"], error["param"]) == (
                400, "field_not_allowed", f"{field}[0].content{place}",
            )  # fmt: skip


async def test_the_argument_of_a_tool_may_have_the_name_of_a_file() -> None:
    harness = engine(kind="anthropic")
    harness.outbound.script = [(500, [b"{}"])]
    used = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"file_id": "7"}}
    body = {"max_tokens": 9, "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": [used]}]}
    await harness.engine.answer(harness.request({"model": "one/a", **body}, dialect="anthropic_messages"))
    assert len(harness.outbound.sent) == 1


async def test_the_list_of_a_servers_tools_in_the_input_needs_no_permission_of_its_own() -> None:
    listed = {"type": "mcp_list_tools", "server_label": "x", "tools": [{"name": "t", "input_schema": {}}]}
    items = [{"role": "user", "content": "hi"}, listed]
    for kind, api in (("openai_compatible", False), ("openai", True)):
        harness = engine(kind=kind, responses_api=api)
        harness.outbound.script = [(500, [b"{}"])]
        body = {"model": "one/a", "input": items}
        answer = await harness.engine.answer(harness.request(body, dialect="openai_responses"))
        assert len(harness.outbound.sent) == 1, answer.body
        sent = json.loads(harness.outbound.sent[0].body or b"")
        assert ("mcp_list_tools" in str(sent)) is api


@pytest.mark.parametrize(
    ("condition", "body", "status"),
    [
        ('"service_tier" in request.fields', {"service_tier": "default"}, 403),
        ('"service_tier" in request.fields', {}, 200),
        ('request.fields.exists(f, f.startsWith("tools."))', {"tools": [{"type": "mcp"}]}, 403),
        ('request.fields.exists(f, f.startsWith("tools."))', {"tools": [FUNCTION]}, 200),
    ],
)
async def test_policy_rules_see_the_fields(condition: str, body: dict[str, Any], status: int) -> None:
    harness = engine("tools.mcp")
    rule = PolicyRuleRecord(id=UUID(int=1), name="r", priority=1, condition=condition, action="BLOCK")
    harness.governance = msgspec.structs.replace(GovernanceRecords(), policy_rules=(rule,))
    answer, response_body = await ask(harness, body)
    assert answer.status == status, response_body


def test_every_guard_has_a_reason_and_is_not_ordinary() -> None:
    for guards in (tables.OPENAI_CHAT, tables.LOCAL):
        assert all(guard.reason for guard in guards.values())
    for dialect in ("openai_chat", "anthropic_messages", "openai_embeddings"):
        assert tables.ORDINARY[dialect].isdisjoint(tables.OPENAI_CHAT)


def test_checking_an_ordinary_body_is_fast() -> None:
    body = {"model": "m", **HELLO, "temperature": 1, "stream": True, "tools": [FUNCTION] * 30}
    best = min(_seconds(body) for _ in range(20))
    # The limit is a hundred times the usual duration, so only work of another order fails.
    assert best < 0.001


def _seconds(body: dict[str, Any]) -> float:
    began = perf_counter()
    assert uncommon("openai_chat", body) == ()
    return perf_counter() - began
