"""Enforcement of the model registry through the whole engine."""

import json
from typing import Any
from uuid import UUID

import msgspec
import pytest
from tests.support.engine import EngineHarness, completion, events

from gatehouse.engine.exchange import Answer
from gatehouse.engine.records.outcome import RuleEvent
from gatehouse.engine.usable_models import usable_models
from gatehouse.policy.governance import GovernanceRecords, PolicyRuleRecord, RegistryRecord


def engine(mode: str, *, rules: tuple[PolicyRuleRecord, ...] = (), **statuses: str) -> EngineHarness:
    """Create an engine with a provider `one` and its models `a`, `b` and `c`. `statuses` are the validation statuses of
    the registered models."""
    harness = EngineHarness()
    harness.serve("one", "a", "b", "c")
    registry = [
        RegistryRecord(provider="one", model_id=model, risk_tier="tier_2", validation_status=status)
        for model, status in statuses.items()
    ]
    harness.governance = msgspec.convert(
        {"registry": msgspec.to_builtins(registry), "registry_enforcement": mode}, GovernanceRecords
    )
    harness.governance = msgspec.structs.replace(harness.governance, policy_rules=rules)
    return harness


async def ask(
    harness: EngineHarness, model: str = "one/a", *fallbacks: str, **more: Any
) -> tuple[Answer, dict[str, Any]]:
    if not harness.outbound.script:
        harness.outbound.script = [(200, [completion()])]
    body = {"model": model, "fallbacks": list(fallbacks), "messages": [{"role": "user", "content": "hi"}], **more}
    answer = await harness.engine.answer(harness.request(body))
    return answer, json.loads(answer.body) if answer.body else {}


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (None, "model_not_registered"),
        ("deprecated", "model_deprecated"),
        ("validated", None),
        *((status, "model_not_validated") for status in (
            "draft", "unclassified", "pending_validation", "in_validation", "needs_remediation"
        )),
    ],
)  # fmt: skip
async def test_a_model_that_is_not_validated_is_refused(status: str | None, code: str | None) -> None:
    harness = engine("block", **({} if status is None else {"a": status}))
    answer, body = await ask(harness)
    if code is None:
        assert (answer.status, harness.outcomes[0].rule_events) == (200, ())
        assert "X-Gateway-Warning" not in answer.headers
        return
    assert answer.status == 403
    assert (body["error"]["type"], body["error"]["code"]) == ("policy_violation", code)
    assert "'one/a'" in body["error"]["message"]
    assert harness.outbound.sent == []
    (outcome,) = harness.outcomes
    assert (outcome.outcome, outcome.error_code) == ("refused", code)
    assert outcome.rule_events == (
        RuleEvent(
            kind="model_registry", rule_id=code, rule_name="Model registry", action="BLOCK", result="matched",
            model="one/a",
        ),
    )  # fmt: skip


async def test_a_warning_is_a_header_and_an_event() -> None:
    harness = engine("warn", a="draft")
    answer, _ = await ask(harness)
    assert (answer.status, answer.headers["X-Gateway-Warning"]) == (200, "model_not_validated")
    (event,) = harness.outcomes[0].rule_events
    assert (event.kind, event.rule_id, event.action) == ("model_registry", "model_not_validated", "LOG")


async def test_the_headers_of_a_stream_have_the_warning_too() -> None:
    harness = engine("warn", a="deprecated")
    harness.outbound.script = [(200, events("x"))]
    answer, _ = await ask(harness, stream=True)
    assert answer.headers["X-Gateway-Warning"] == "model_deprecated"
    assert answer.stream is not None
    assert [block async for block in answer.stream]


async def test_the_warning_is_about_the_model_that_answered() -> None:
    harness = engine("warn", a="draft", b="validated")
    harness.outbound.script = [(500, [b"{}"]), (200, [completion()])]
    answer, _ = await ask(harness, "one/a", "one/b")
    assert (answer.headers["X-Gateway-Model"], answer.headers.get("X-Gateway-Warning")) == ("b", None)
    assert [event.model for event in harness.outcomes[0].rule_events] == ["one/a"]


async def test_there_is_no_warning_without_enforcement() -> None:
    harness = engine("off")
    answer, _ = await ask(harness)
    assert (answer.status, answer.headers.get("X-Gateway-Warning")) == (200, None)
    assert harness.outcomes[0].rule_events == ()


async def test_a_refused_candidate_leaves_the_chain_for_a_fallback() -> None:
    harness = engine("block", b="validated")
    answer, _ = await ask(harness, "one/a", "one/b")
    assert (answer.status, answer.headers["X-Gateway-Model"]) == (200, "b")
    assert [(event.rule_id, event.model) for event in harness.outcomes[0].rule_events] == [
        ("model_not_registered", "one/a")
    ]


async def test_a_fallback_that_is_not_validated_is_never_called() -> None:
    harness = engine("block", a="validated", b="draft")
    harness.outbound.script = [(500, [b"{}"])]
    answer, body = await ask(harness, "one/a", "one/b")
    assert (answer.status, body["error"]["code"]) == (502, "all_providers_failed")
    assert len(harness.outbound.sent) == 1


async def test_the_first_refusal_is_returned_if_no_candidate_is_left() -> None:
    harness = engine("block", a="deprecated")
    answer, body = await ask(harness, "one/a", "one/b", "one/c")
    assert (answer.status, body["error"]["code"]) == (403, "model_deprecated")
    assert {event.model for event in harness.outcomes[0].rule_events} == {"one/a", "one/b", "one/c"}


async def test_auto_chooses_only_validated_models() -> None:
    harness = engine("block")
    harness.models[0] = msgspec.structs.replace(harness.models[0], is_default=True)
    answer, body = await ask(harness, "auto")
    assert (answer.status, body["error"]["code"]) == (403, "model_not_registered")


async def test_the_target_of_a_route_rule_is_judged_too() -> None:
    rule = PolicyRuleRecord(
        id=UUID(int=1), name="elsewhere", priority=1, condition='model == "one/a"', action="ROUTE", route_to="one/b"
    )
    harness = engine("block", rules=(rule,), a="validated", b="draft")
    answer, body = await ask(harness)
    assert (answer.status, body["error"]["code"]) == (403, "model_not_validated")
    assert "'one/b'" in body["error"]["message"]
    assert harness.outbound.sent == []


async def test_a_model_that_the_caller_may_not_use_is_still_unknown() -> None:
    harness = engine("block")
    harness.models[0] = msgspec.structs.replace(harness.models[0], access="restricted")
    answer, body = await ask(harness)
    assert (answer.status, body["error"]["code"]) == (404, "model_not_found")
    assert harness.outcomes[0].rule_events == ()


@pytest.mark.parametrize(("mode", "listed"), [("off", ["a", "b", "c"]), ("warn", ["a", "b", "c"]), ("block", ["b"])])
async def test_the_list_of_models_contains_the_callable_models(mode: str, listed: list[str]) -> None:
    harness = engine(mode, b="validated", c="deprecated")
    caller = await harness.engine.identify(harness.request({}), "api:read")
    assert [model.model_id for model in usable_models(caller.identified, harness.engine.ports)] == listed


async def test_enforcement_does_not_depend_on_policy_rules_being_in_force() -> None:
    harness = engine("block")
    harness.governance = msgspec.structs.replace(harness.governance, governance_enabled=False)
    assert (await ask(harness))[0].status == 403
