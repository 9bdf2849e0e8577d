"""Policy rules, through the whole engine (docs/policies.md)."""

import asyncio
import json
from typing import Any
from uuid import UUID

import msgspec
import pytest
from tests.support.engine import USER, EngineHarness, completion, events

from gatehouse.engine.exchange import Answer
from gatehouse.engine.records.outcome import RuleEvent
from gatehouse.foundation.identity import CallerKind, Role
from gatehouse.policy.governance import GovernanceRecords, PolicyRuleRecord, RegistryRecord

CARD = "4111 1111 1111 1111"
BROKEN: tuple[int, list[bytes | Exception]] = (500, [b"{}"])


def engine(*rules: PolicyRuleRecord, **governance: Any) -> EngineHarness:
    """Create an engine whose providers `one` and `two` have models `m` and `n` each, and `local` has `l`."""
    harness = EngineHarness()
    harness.serve("one", "m", "n")
    harness.serve("two", "m", "n")
    harness.serve("local", "l")
    harness.governance = GovernanceRecords(policy_rules=rules, **governance)
    return harness


def rule(number: int, action: str, condition: str = "true", **more: Any) -> PolicyRuleRecord:
    fields = {"id": str(UUID(int=number)), "name": f"rule {number}", "priority": number, "condition": condition}
    return msgspec.convert({**fields, "action": action, **more}, PolicyRuleRecord)


async def ask(
    harness: EngineHarness, model: str = "one/m", *fallbacks: str, content: str = "hi", **more: Any
) -> tuple[Answer, dict[str, Any]]:
    if not harness.outbound.script:
        harness.outbound.script = [(200, [completion()])]
    body = {"model": model, "fallbacks": list(fallbacks), "messages": [{"role": "user", "content": content}], **more}
    answer = await harness.engine.answer(harness.request(body))
    return answer, json.loads(answer.body) if answer.body else {}


def hosts(harness: EngineHarness) -> list[str]:
    return [request.url.split("/")[2].split(".")[0] for request in harness.outbound.sent]


async def test_a_block_names_the_rule() -> None:
    harness = engine(rule(1, "BLOCK", 'model == "one/m"', message="Ask the platform team."))
    answer, body = await ask(harness)
    assert answer.status == 403
    assert body == {
        "error": {
            "message": "Ask the platform team.", "type": "policy_violation", "code": "policy_violation",
            "rule_id": str(UUID(int=1)),
        }
    }  # fmt: skip
    assert harness.outbound.sent == []
    (outcome,) = harness.outcomes
    assert (outcome.outcome, outcome.error_code) == ("refused", "policy_violation")
    assert outcome.rule_events == (
        RuleEvent(
            kind="policy_rule", rule_id=str(UUID(int=1)), rule_name="rule 1", action="BLOCK", result="matched",
            model="one/m",
        ),
    )  # fmt: skip


async def test_a_rule_for_one_model_does_not_affect_another() -> None:
    harness = engine(rule(1, "BLOCK", 'model == "one/m"'))
    assert (await ask(harness, "one/n"))[0].status == 200
    assert harness.outcomes[0].rule_events == ()


async def test_a_blocked_candidate_leaves_the_chain() -> None:
    harness = engine(rule(1, "BLOCK", 'provider == "one"'))
    assert (await ask(harness, "one/m", "two/m"))[0].headers["X-Gateway-Provider"] == "two"
    assert hosts(harness) == ["two"]


async def test_rules_are_evaluated_for_fallbacks() -> None:
    harness = engine(rule(1, "BLOCK", 'provider == "two"'))
    harness.outbound.script = [BROKEN]
    assert (await ask(harness, "one/m", "two/m"))[0].status == 502
    assert hosts(harness) == ["one"]


async def test_rules_are_evaluated_for_auto() -> None:
    harness = engine(rule(1, "BLOCK", 'model == "one/m"'))
    harness.models = [
        msgspec.structs.replace(m, is_default=(m.provider, m.model_id) == ("one", "m")) for m in harness.models
    ]
    answer, body = await ask(harness, "auto")
    assert (answer.status, body["error"]["rule_id"]) == (403, str(UUID(int=1)))


async def test_an_empty_chain_returns_the_first_refusal() -> None:
    harness = engine(rule(1, "BLOCK", 'model == "one/m"'), rule(2, "BLOCK", 'model == "two/m"'))
    _, body = await ask(harness, "two/m", "one/m")
    assert body["error"]["rule_id"] == str(UUID(int=2))


async def test_policy_rules_precede_the_kill_switch() -> None:
    harness = engine(rule(1, "BLOCK"))
    harness.off = {"m"}
    assert (await ask(harness))[0].status == 403


async def test_a_route_action_reroutes_the_call() -> None:
    harness = engine(rule(1, "ROUTE", 'provider == "one"', route_to="local/l"))
    answer, _ = await ask(harness)
    assert (answer.headers["X-Gateway-Provider"], answer.headers["X-Gateway-Model"]) == ("local", "l")
    assert hosts(harness) == ["local"]
    (event,) = harness.outcomes[0].rule_events
    assert (event.action, event.model) == ("ROUTE", "one/m")


async def test_rules_are_evaluated_for_the_target_of_a_route() -> None:
    harness = engine(rule(1, "ROUTE", 'provider == "one"', route_to="local/l"), rule(2, "BLOCK", 'provider == "local"'))
    answer, body = await ask(harness)
    assert (answer.status, body["error"]["rule_id"]) == (403, str(UUID(int=2)))
    harness = engine(rule(1, "ROUTE", 'provider == "one"', route_to="local/l"))
    harness.off = {"l"}
    assert (await ask(harness))[0].status == 503
    harness = engine(rule(1, "ROUTE", 'provider == "one"', route_to="local/l"))
    harness.models = [
        msgspec.structs.replace(m, access="restricted" if m.provider == "local" else "open") for m in harness.models
    ]
    assert (await ask(harness))[0].status == 404


async def test_a_rerouted_call_can_be_rerouted_again() -> None:
    harness = engine(
        rule(1, "ROUTE", 'provider == "one"', route_to="two/m"),
        rule(2, "ROUTE", 'model == "two/m"', route_to="local/l"),
    )
    assert (await ask(harness))[0].headers["X-Gateway-Provider"] == "local"


async def test_a_route_rule_for_every_model_does_not_loop() -> None:
    harness = engine(rule(1, "ROUTE", route_to="local/l"))
    assert (await ask(harness, "one/m", "two/m"))[0].headers["X-Gateway-Provider"] == "local"
    assert hosts(harness) == ["local"]


async def test_two_rules_that_route_to_each_other_refuse() -> None:
    harness = engine(
        rule(1, "ROUTE", 'provider == "one"', route_to="two/m"), rule(2, "ROUTE", 'provider == "two"', route_to="one/m")
    )
    answer, body = await ask(harness)
    assert (answer.status, body["error"]["type"]) == (403, "policy_violation")
    assert "in a circle" in body["error"]["message"]


async def test_an_unaffected_fallback_comes_after_the_route_target() -> None:
    harness = engine(rule(1, "ROUTE", 'provider == "one"', route_to="local/l"))
    harness.outbound.script = [BROKEN, (200, [completion()])]
    assert (await ask(harness, "one/m", "two/m"))[0].headers["X-Gateway-Provider"] == "two"
    assert hosts(harness) == ["local", "two"]


async def test_an_unknown_target_refuses() -> None:
    harness = engine(rule(1, "ROUTE", route_to="gone/x"))
    answer, body = await ask(harness)
    assert (answer.status, body["error"]["rule_id"]) == (403, str(UUID(int=1)))


async def test_approval_is_requested_before_the_call() -> None:
    harness = engine(rule(1, "REQUIRE_APPROVAL", 'model == "one/m"'))
    harness.flags = {"human_in_loop": True}
    assert (await ask(harness))[0].status == 200
    (question,) = harness.approval_questions
    assert (question.rule_id, question.rule_name, question.direction) == (str(UUID(int=1)), "rule 1", "input")
    assert [event.result for event in harness.outcomes[0].rule_events] == ["matched", "approved"]


async def test_a_denied_approval_is_a_policy_block() -> None:
    harness = engine(rule(1, "REQUIRE_APPROVAL"))
    harness.flags = {"human_in_loop": True}
    harness.approves = False
    answer, body = await ask(harness)
    assert (answer.status, body["error"]["type"], body["error"]["rule_id"]) == (
        403, "policy_violation", str(UUID(int=1)),
    )  # fmt: skip
    assert answer.headers["X-DLP-Action"] == "CANCEL"
    assert harness.outbound.sent == []
    assert [event.result for event in harness.outcomes[0].rule_events] == ["matched", "denied"]


@pytest.mark.parametrize("result", ["expired", "cancelled"])
async def test_the_record_says_how_an_approval_without_a_decision_ended(
    result: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = engine(rule(1, "REQUIRE_APPROVAL"))
    harness.flags = {"human_in_loop": True}
    requested = asyncio.Event()

    async def decision(*_: object) -> str:
        requested.set()
        if result == "cancelled":
            await asyncio.Event().wait()
        return result

    monkeypatch.setattr(harness, "decision", decision)
    request = asyncio.create_task(ask(harness))
    await requested.wait()
    if result == "cancelled":
        # The client disconnects.
        request.cancel()
    await asyncio.wait([request])
    assert [event.result for event in harness.outcomes[0].rule_events] == ["matched", result]
    assert harness.outbound.sent == []


@pytest.mark.parametrize("change", ["removed", "deactivated", "provider disabled"])
async def test_a_model_that_is_removed_during_the_wait_receives_nothing(
    change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = engine(rule(1, "REQUIRE_APPROVAL"))
    harness.flags = {"human_in_loop": True}

    async def decision(*_: object) -> str:
        model, provider = harness.models[0], harness.providers[0]
        assert (model.provider, model.model_id) == (provider.id, "m")
        if change == "removed":
            del harness.models[0]
        elif change == "deactivated":
            harness.models[0] = msgspec.structs.replace(model, is_active=False)
        else:
            harness.providers[0] = msgspec.structs.replace(provider, enabled=False)
        return "approved"

    monkeypatch.setattr(harness, "decision", decision)
    answer, body = await ask(harness)
    assert (answer.status, body["error"]["code"]) == (503, "provider_unavailable")
    assert harness.outbound.sent == []
    monkeypatch.undo()
    harness.approves = True
    answer, _ = await ask(harness, "one/n") if change != "provider disabled" else await ask(harness, "two/m")
    assert answer.status == 200


async def test_without_the_flag_the_call_is_refused_without_an_approval() -> None:
    harness = engine(rule(1, "REQUIRE_APPROVAL"))
    assert (await ask(harness))[0].status == 403
    assert harness.approval_questions == []


async def test_a_stream_starts_before_it_waits_for_approval() -> None:
    harness = engine(rule(1, "REQUIRE_APPROVAL"))
    harness.flags = {"human_in_loop": True}
    harness.outbound.script = [(200, events("Hello"))]
    answer, _ = await ask(harness, stream=True)
    assert answer.stream is not None
    result = b"".join([piece async for piece in answer.stream])
    assert b"Hello" in result
    assert result.endswith(b"data: [DONE]\n\n")
    assert len(harness.outcomes) == 1


async def test_no_approval_is_requested_for_a_fallback() -> None:
    harness = engine(rule(1, "REQUIRE_APPROVAL", 'provider == "two"'))
    harness.flags = {"human_in_loop": True}
    harness.outbound.script = [BROKEN]
    assert (await ask(harness, "one/m", "two/m"))[0].status == 502
    assert (harness.approval_questions, hosts(harness)) == ([], ["one"])


async def test_an_approval_covers_fallbacks_of_the_same_rule() -> None:
    harness = engine(rule(1, "REQUIRE_APPROVAL", 'provider != "local"'))
    harness.flags = {"human_in_loop": True}
    harness.outbound.script = [BROKEN, (200, [completion()])]
    assert (await ask(harness, "one/m", "two/m", "local/l"))[0].status == 200
    assert (len(harness.approval_questions), hosts(harness)) == (1, ["one", "two"])


async def test_a_log_action_passes_and_is_an_event() -> None:
    harness = engine(rule(1, "LOG", terminal=False), rule(2, "ALLOW"))
    assert (await ask(harness, "one/m", "two/m"))[0].status == 200
    assert [(event.action, event.model) for event in harness.outcomes[0].rule_events] == [("LOG", "one/m")]


async def test_a_failing_condition_blocks_or_passes_and_is_an_event() -> None:
    for action, status in (("BLOCK", 403), ("ROUTE", 200), ("REQUIRE_APPROVAL", 200), ("LOG", 200)):
        harness = engine(rule(1, action, "tokens / 0 > 1", route_to="local/l" if action == "ROUTE" else None))
        assert (await ask(harness))[0].status == status
        assert [event.result for event in harness.outcomes[0].rule_events] == ["failed"]
        assert hosts(harness) == ([] if action == "BLOCK" else ["one"])


async def test_without_governance_rules_are_not_evaluated() -> None:
    harness = engine(rule(1, "BLOCK"), governance_enabled=False)
    assert (await ask(harness))[0].status == 200


REGISTRY = (
    RegistryRecord(provider="one", model_id="m", risk_tier="tier_1", validation_status="validated"),
    RegistryRecord(provider="two", model_id="m", risk_tier="tier_3", validation_status="draft"),
)


@pytest.mark.parametrize(
    ("condition", "model", "holds"),
    [
        ('model_risk_tier == "tier_1"', "one/m", True),
        ('model_risk_tier == "tier_1"', "two/m", False),
        ('model_risk_tier == "tier_2"', "local/l", True),
        ('validation_status == "draft"', "two/m", True),
        ('validation_status == "unregistered"', "local/l", True),
        ('provider == "local" && model == "local/l"', "local/l", True),
        ('ip == "192.0.2.1" && ip.in_range("192.0.2.0/24")', "one/m", True),
        ('ip.in_range("10.0.0.0/8")', "one/m", False),
        (f'user.id == "{USER}" && user.role == "user" && user.kind == "api_key" && user.email == ""', "one/m", True),
        ("size(groups) == 0", "one/m", True),
        ("time.getFullYear() > 2000", "one/m", True),
        ("tokens == 250", "one/m", True),
        ("tokens == 251", "one/m", False),
        # 250 tokens at 1 USD a million, and 100 tokens at 2 USD.
        ("cost_usd > 0.000449 && cost_usd < 0.000451", "one/m", True),
        ('dlp.action == "ALLOW" && size(dlp.entities) == 0', "one/m", True),
    ],
)
async def test_variables_have_their_documented_values(condition: str, model: str, holds: bool) -> None:
    harness = engine(rule(1, "BLOCK", condition), registry=REGISTRY, unregistered_model_tier="tier_2")
    answer, _ = await ask(harness, model, content="x" * 998 + "\u00e9", max_tokens=100)
    assert answer.status == (403 if holds else 200)
    assert "failed" not in [event.result for event in harness.outcomes[0].rule_events]


async def test_rules_see_dlp_findings() -> None:
    condition = '"credit_card" in dlp.entities && dlp.counts.credit_card == 1 && dlp.action == "REDACT"'
    harness = engine(rule(1, "ROUTE", condition, route_to="local/l"))
    assert (await ask(harness, content=f"card {CARD}"))[0].headers["X-Gateway-Provider"] == "local"
    harness.outbound.script = [(200, [completion()])]
    assert (await ask(harness, content="no card"))[0].headers["X-Gateway-Provider"] == "one"


async def test_an_unknown_price_makes_a_condition_about_it_fail() -> None:
    harness = engine(rule(1, "BLOCK", "cost_usd > 1.0"))
    harness.models = [msgspec.structs.replace(model, cost_per_output_token=None) for model in harness.models]
    assert (await ask(harness))[0].status == 403
    assert harness.outcomes[0].rule_events[0].result == "failed"


async def test_the_catalogs_output_limit_applies_if_the_caller_sets_none() -> None:
    harness = engine(rule(1, "BLOCK", "cost_usd >= 2.0"))
    harness.models = [msgspec.structs.replace(model, max_output_tokens=1_000_000) for model in harness.models]
    assert (await ask(harness))[0].status == 403
    assert (await ask(harness, max_completion_tokens=10))[0].status == 200
    # Servers differ in which of the two limits they apply.
    assert (await ask(harness, max_completion_tokens=10, max_tokens=1_000_000))[0].status == 403


async def test_prompts_sent_as_tokens_are_counted() -> None:
    harness = engine(rule(1, "BLOCK", "tokens == 5"))
    harness.outbound.script = [(200, [completion()])]
    request = harness.request({"model": "one/m", "input": [[1, 2, 3], [4, 5]]}, dialect="openai_embeddings")
    assert (await harness.engine.answer(request)).status == 403


async def test_a_machines_role_is_client() -> None:
    harness = engine(rule(1, "BLOCK", 'user.role == "client" && user.kind == "oauth_client"'))
    assert harness.caller is not None
    harness.caller = msgspec.structs.replace(
        harness.caller, kind=CallerKind.OAUTH_CLIENT, user_id=None, client_id=USER, role=Role.USER
    )
    assert (await ask(harness))[0].status == 403


async def test_groups_are_those_of_the_caller() -> None:
    group = UUID(int=9)
    harness = engine(rule(1, "BLOCK", f'groups.exists(g, g == "{group}")'))
    assert (await ask(harness))[0].status == 200
    assert harness.caller is not None
    harness.caller = msgspec.structs.replace(harness.caller, groups=(UUID(int=8), group))
    assert (await ask(harness))[0].status == 403


async def test_each_match_of_many_rules_is_recorded_once_per_request() -> None:
    harness = engine(*[rule(n, "LOG", terminal=False) for n in range(1, 301)])
    await ask(harness, "one/m", "two/m")
    assert len(harness.outcomes[0].rule_events) == 100
