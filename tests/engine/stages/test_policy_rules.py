"""Policy rules, through the whole engine (decisions of the contract: Policy engine)."""

import json
from typing import Any
from uuid import UUID

import msgspec
import pytest
from tests.support.engine import USER, HeldEngine, completion, events

from gatehouse.engine.exchange import Answer
from gatehouse.engine.records.outcome import RuleEvent
from gatehouse.foundation.identity import CallerKind, Role
from gatehouse.policy.governance import GovernanceRecords, PolicyRuleRecord, RegistryRecord

CARD = "4111 1111 1111 1111"
BROKEN: tuple[int, list[bytes | Exception]] = (500, [b"{}"])


def engine(*rules: PolicyRuleRecord, **governance: Any) -> HeldEngine:
    """Providers `one` and `two` with models `m` and `n` each, and `local` with `l`."""
    held = HeldEngine()
    held.serve("one", "m", "n")
    held.serve("two", "m", "n")
    held.serve("local", "l")
    held.governance = GovernanceRecords(policy_rules=rules, **governance)
    return held


def rule(number: int, action: str, condition: str = "true", **more: Any) -> PolicyRuleRecord:
    fields = {"id": str(UUID(int=number)), "name": f"rule {number}", "priority": number, "condition": condition}
    return msgspec.convert({**fields, "action": action, **more}, PolicyRuleRecord)


async def ask(
    held: HeldEngine, model: str = "one/m", *fallbacks: str, content: str = "hi", **more: Any
) -> tuple[Answer, dict[str, Any]]:
    if not held.outbound.script:
        held.outbound.script = [(200, [completion()])]
    body = {"model": model, "fallbacks": list(fallbacks), "messages": [{"role": "user", "content": content}], **more}
    answer = await held.engine.answer(held.request(body))
    return answer, json.loads(answer.body) if answer.body else {}


def hosts(held: HeldEngine) -> list[str]:
    return [request.url.split("/")[2].split(".")[0] for request in held.outbound.sent]


async def test_block_names_the_rule() -> None:
    held = engine(rule(1, "BLOCK", 'model == "one/m"', message="Ask the platform team."))
    answer, body = await ask(held)
    assert answer.status == 403
    assert body == {
        "error": {
            "message": "Ask the platform team.", "type": "policy_violation", "code": "policy_violation",
            "rule_id": str(UUID(int=1)),
        }
    }  # fmt: skip
    assert held.outbound.sent == []
    (outcome,) = held.outcomes
    assert (outcome.outcome, outcome.error_code) == ("refused", "policy_violation")
    assert outcome.rule_events == (
        RuleEvent(
            kind="policy_rule", rule_id=str(UUID(int=1)), rule_name="rule 1", action="BLOCK", result="matched",
            model="one/m",
        ),
    )  # fmt: skip


async def test_another_model_passes() -> None:
    held = engine(rule(1, "BLOCK", 'model == "one/m"'))
    assert (await ask(held, "one/n"))[0].status == 200
    assert held.outcomes[0].rule_events == ()


async def test_a_blocked_candidate_leaves_the_chain() -> None:
    held = engine(rule(1, "BLOCK", 'provider == "one"'))
    assert (await ask(held, "one/m", "two/m"))[0].headers["X-Gateway-Provider"] == "two"
    assert hosts(held) == ["two"]


async def test_a_fallback_is_judged_too() -> None:
    held = engine(rule(1, "BLOCK", 'provider == "two"'))
    held.outbound.script = [BROKEN]
    assert (await ask(held, "one/m", "two/m"))[0].status == 502
    assert hosts(held) == ["one"]


async def test_auto_is_judged_too() -> None:
    held = engine(rule(1, "BLOCK", 'model == "one/m"'))
    held.models = [msgspec.structs.replace(m, is_default=(m.provider, m.model_id) == ("one", "m")) for m in held.models]
    answer, body = await ask(held, "auto")
    assert (answer.status, body["error"]["rule_id"]) == (403, str(UUID(int=1)))


async def test_an_empty_chain_gives_the_first_refusal() -> None:
    held = engine(rule(1, "BLOCK", 'model == "one/m"'), rule(2, "BLOCK", 'model == "two/m"'))
    _, body = await ask(held, "two/m", "one/m")
    assert body["error"]["rule_id"] == str(UUID(int=2))


async def test_policy_is_asked_before_the_kill_switch() -> None:
    held = engine(rule(1, "BLOCK"))
    held.off = {"m"}
    assert (await ask(held))[0].status == 403


async def test_route_sends_the_call_elsewhere() -> None:
    held = engine(rule(1, "ROUTE", 'provider == "one"', route_to="local/l"))
    answer, _ = await ask(held)
    assert (answer.headers["X-Gateway-Provider"], answer.headers["X-Gateway-Model"]) == ("local", "l")
    assert hosts(held) == ["local"]
    (event,) = held.outcomes[0].rule_events
    assert (event.action, event.model) == ("ROUTE", "one/m")


async def test_the_place_where_a_rule_sends_a_call_is_judged_itself() -> None:
    held = engine(rule(1, "ROUTE", 'provider == "one"', route_to="local/l"), rule(2, "BLOCK", 'provider == "local"'))
    answer, body = await ask(held)
    assert (answer.status, body["error"]["rule_id"]) == (403, str(UUID(int=2)))
    held = engine(rule(1, "ROUTE", 'provider == "one"', route_to="local/l"))
    held.off = {"l"}
    assert (await ask(held))[0].status == 503
    held = engine(rule(1, "ROUTE", 'provider == "one"', route_to="local/l"))
    held.models = [
        msgspec.structs.replace(m, access="restricted" if m.provider == "local" else "open") for m in held.models
    ]
    assert (await ask(held))[0].status == 404


async def test_a_rule_may_send_on_what_a_rule_has_sent() -> None:
    held = engine(
        rule(1, "ROUTE", 'provider == "one"', route_to="two/m"),
        rule(2, "ROUTE", 'model == "two/m"', route_to="local/l"),
    )
    assert (await ask(held))[0].headers["X-Gateway-Provider"] == "local"


async def test_a_rule_for_everything_does_not_go_round_in_a_circle() -> None:
    held = engine(rule(1, "ROUTE", route_to="local/l"))
    assert (await ask(held, "one/m", "two/m"))[0].headers["X-Gateway-Provider"] == "local"
    assert hosts(held) == ["local"]


async def test_two_rules_that_send_to_each_other_refuse() -> None:
    held = engine(
        rule(1, "ROUTE", 'provider == "one"', route_to="two/m"), rule(2, "ROUTE", 'provider == "two"', route_to="one/m")
    )
    answer, body = await ask(held)
    assert (answer.status, body["error"]["type"]) == (403, "policy_violation")
    assert "in a circle" in body["error"]["message"]


async def test_a_fallback_that_no_rule_speaks_of_stays_behind_the_place_of_the_first() -> None:
    held = engine(rule(1, "ROUTE", 'provider == "one"', route_to="local/l"))
    held.outbound.script = [BROKEN, (200, [completion()])]
    assert (await ask(held, "one/m", "two/m"))[0].headers["X-Gateway-Provider"] == "two"
    assert hosts(held) == ["local", "two"]


async def test_a_target_that_is_not_there_refuses() -> None:
    held = engine(rule(1, "ROUTE", route_to="gone/x"))
    answer, body = await ask(held)
    assert (answer.status, body["error"]["rule_id"]) == (403, str(UUID(int=1)))


async def test_approval_is_asked_for_before_the_call() -> None:
    held = engine(rule(1, "REQUIRE_APPROVAL", 'model == "one/m"'))
    held.flags = {"human_in_loop": True}
    assert (await ask(held))[0].status == 200
    (asked,) = held.asked
    assert (asked.rule_id, asked.rule_name, asked.direction) == (str(UUID(int=1)), "rule 1", "input")
    assert [event.result for event in held.outcomes[0].rule_events] == ["matched", "approved"]


async def test_denied_it_is_a_policy_block() -> None:
    held = engine(rule(1, "REQUIRE_APPROVAL"))
    held.flags = {"human_in_loop": True}
    held.approves = False
    answer, body = await ask(held)
    assert (answer.status, body["error"]["type"], body["error"]["rule_id"]) == (
        403, "policy_violation", str(UUID(int=1)),
    )  # fmt: skip
    assert answer.headers["X-DLP-Action"] == "CANCEL"
    assert held.outbound.sent == []
    assert [event.result for event in held.outcomes[0].rule_events] == ["matched", "denied"]


async def test_without_the_flag_nobody_is_asked_and_nothing_goes_on() -> None:
    held = engine(rule(1, "REQUIRE_APPROVAL"))
    assert (await ask(held))[0].status == 403
    assert held.asked == []


async def test_a_stream_that_waits_has_begun() -> None:
    held = engine(rule(1, "REQUIRE_APPROVAL"))
    held.flags = {"human_in_loop": True}
    held.outbound.script = [(200, events("Hello"))]
    answer, _ = await ask(held, stream=True)
    assert answer.stream is not None
    told = b"".join([piece async for piece in answer.stream])
    assert b"Hello" in told
    assert told.endswith(b"data: [DONE]\n\n")
    assert len(held.outcomes) == 1


async def test_nobody_is_asked_about_a_fallback() -> None:
    held = engine(rule(1, "REQUIRE_APPROVAL", 'provider == "two"'))
    held.flags = {"human_in_loop": True}
    held.outbound.script = [BROKEN]
    assert (await ask(held, "one/m", "two/m"))[0].status == 502
    assert (held.asked, hosts(held)) == ([], ["one"])


async def test_an_approval_holds_for_fallbacks_of_the_same_rule() -> None:
    held = engine(rule(1, "REQUIRE_APPROVAL", 'provider != "local"'))
    held.flags = {"human_in_loop": True}
    held.outbound.script = [BROKEN, (200, [completion()])]
    assert (await ask(held, "one/m", "two/m", "local/l"))[0].status == 200
    assert (len(held.asked), hosts(held)) == (1, ["one", "two"])


async def test_log_lets_pass_and_is_an_event() -> None:
    held = engine(rule(1, "LOG", terminal=False), rule(2, "ALLOW"))
    assert (await ask(held, "one/m", "two/m"))[0].status == 200
    assert [(event.action, event.model) for event in held.outcomes[0].rule_events] == [("LOG", "one/m")]


async def test_a_condition_that_fails_blocks_or_passes_and_is_an_event() -> None:
    for action, status in (("BLOCK", 403), ("ROUTE", 200), ("REQUIRE_APPROVAL", 200), ("LOG", 200)):
        held = engine(rule(1, action, "tokens / 0 > 1", route_to="local/l" if action == "ROUTE" else None))
        assert (await ask(held))[0].status == status
        assert [event.result for event in held.outcomes[0].rule_events] == ["failed"]
        assert hosts(held) == ([] if action == "BLOCK" else ["one"])


async def test_without_governance_rules_do_nothing() -> None:
    held = engine(rule(1, "BLOCK"), governance_enabled=False)
    assert (await ask(held))[0].status == 200


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
        # 250 tokens at 1 USD a million, 100 at 2.
        ("cost_usd > 0.000449 && cost_usd < 0.000451", "one/m", True),
        ('dlp.action == "ALLOW" && size(dlp.entities) == 0', "one/m", True),
    ],
)
async def test_variables_are_what_they_are_said_to_be(condition: str, model: str, holds: bool) -> None:
    held = engine(rule(1, "BLOCK", condition), registry=REGISTRY, unregistered_model_tier="tier_2")
    answer, _ = await ask(held, model, content="x" * 998 + "\u00e9", max_tokens=100)
    assert answer.status == (403 if holds else 200)
    assert "failed" not in [event.result for event in held.outcomes[0].rule_events]


async def test_what_dlp_found_is_known_to_rules() -> None:
    condition = '"credit_card" in dlp.entities && dlp.counts.credit_card == 1 && dlp.action == "REDACT"'
    held = engine(rule(1, "ROUTE", condition, route_to="local/l"))
    assert (await ask(held, content=f"card {CARD}"))[0].headers["X-Gateway-Provider"] == "local"
    held.outbound.script = [(200, [completion()])]
    assert (await ask(held, content="no card"))[0].headers["X-Gateway-Provider"] == "one"


async def test_an_unknown_price_makes_a_condition_about_it_fail() -> None:
    held = engine(rule(1, "BLOCK", "cost_usd > 1.0"))
    held.models = [msgspec.structs.replace(model, cost_per_output_token=None) for model in held.models]
    assert (await ask(held))[0].status == 403
    assert held.outcomes[0].rule_events[0].result == "failed"


async def test_the_catalog_s_limit_counts_where_the_caller_sets_none() -> None:
    held = engine(rule(1, "BLOCK", "cost_usd >= 2.0"))
    held.models = [msgspec.structs.replace(model, max_output_tokens=1_000_000) for model in held.models]
    assert (await ask(held))[0].status == 403
    assert (await ask(held, max_completion_tokens=10))[0].status == 200
    # Servers differ in which of two they go by.
    assert (await ask(held, max_completion_tokens=10, max_tokens=1_000_000))[0].status == 403


async def test_tokens_that_are_sent_as_such_count() -> None:
    held = engine(rule(1, "BLOCK", "tokens == 5"))
    held.outbound.script = [(200, [completion()])]
    request = held.request({"model": "one/m", "input": [[1, 2, 3], [4, 5]]}, dialect="openai_embeddings")
    assert (await held.engine.answer(request)).status == 403


async def test_a_machine_s_role_is_client() -> None:
    held = engine(rule(1, "BLOCK", 'user.role == "client" && user.kind == "oauth_client"'))
    assert held.caller is not None
    held.caller = msgspec.structs.replace(
        held.caller, kind=CallerKind.OAUTH_CLIENT, user_id=None, client_id=USER, role=Role.USER
    )
    assert (await ask(held))[0].status == 403


async def test_groups_are_the_caller_s() -> None:
    group = UUID(int=9)
    held = engine(rule(1, "BLOCK", f'groups.exists(g, g == "{group}")'))
    assert (await ask(held))[0].status == 200
    assert held.caller is not None
    held.caller = msgspec.structs.replace(held.caller, groups=(UUID(int=8), group))
    assert (await ask(held))[0].status == 403


async def test_the_first_match_of_many_rules_is_noted_once_a_request() -> None:
    held = engine(*[rule(n, "LOG", terminal=False) for n in range(1, 301)])
    await ask(held, "one/m", "two/m")
    assert len(held.outcomes[0].rule_events) == 100
