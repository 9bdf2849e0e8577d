"""The decision of the policy engine about a call."""

from typing import Any
from uuid import UUID

import msgspec
import pytest

from gatehouse.policy.catalog import TenantRecords
from gatehouse.policy.compile import compile_policy
from gatehouse.policy.governance import GovernanceRecords, PolicyRuleRecord, RegistryRecord
from gatehouse.policy.rules.evaluation import (
    RuleResult,
    RuleSet,
    compile_rules,
    context_of,
    decide,
)

MODEL = "one/m"


def rule(number: int, action: str, condition: str = "true", **more: Any) -> PolicyRuleRecord:
    fields = {"id": str(UUID(int=number)), "name": f"rule {number}", "priority": number, "condition": condition}
    return msgspec.convert({**fields, "action": action, **more}, PolicyRuleRecord)


def decided(*rules: PolicyRuleRecord, **variables: Any) -> tuple[str, int | None, list[str]]:
    """Return the action, the number of the decisive rule, and the result of each evaluated rule."""
    rule_set, faults = compile_rules(GovernanceRecords(policy_rules=rules))
    assert faults == []
    trace: list[RuleResult] = []
    ruling = decide(rule_set.rules, context_of({"tokens": 5, **variables}, rule_set.needs), MODEL, trace)
    assert ruling.results == [step for step in trace if step.result != "unmatched"]
    decisive = None if ruling.decisive is None else UUID(ruling.decisive.id).int
    return ruling.action, decisive, [step.result for step in trace]


def test_without_rules_every_call_is_allowed() -> None:
    assert decided() == ("ALLOW", None, [])


def test_a_terminal_rule_that_matches_is_the_last_one() -> None:
    assert decided(rule(1, "ALLOW"), rule(2, "BLOCK")) == ("ALLOW", 1, ["matched"])
    assert decided(rule(1, "ALLOW", "false"), rule(2, "BLOCK")) == ("BLOCK", 2, ["unmatched", "matched"])


@pytest.mark.parametrize(
    ("first", "second", "wins"),
    [
        ("LOG", "BLOCK", 2),
        ("ALLOW", "BLOCK", 2),
        ("BLOCK", "ALLOW", 1),
        ("BLOCK", "ROUTE", 1),
        ("REQUIRE_APPROVAL", "ROUTE", 2),
        ("ROUTE", "REQUIRE_APPROVAL", 1),
        ("REQUIRE_APPROVAL", "ALLOW", 1),
        ("BLOCK", "BLOCK", 1),
    ],
)
def test_of_several_that_match_the_strongest_action_counts(first: str, second: str, wins: int) -> None:
    route = {"route_to": "local/m"}
    ours = rule(1, first, terminal=False, **(route if first == "ROUTE" else {}))
    theirs = rule(2, second, **(route if second == "ROUTE" else {}))
    assert decided(ours, theirs) == ([first, second][wins - 1], wins, ["matched", "matched"])


@pytest.mark.parametrize(
    ("action", "comes_to"), [("BLOCK", "BLOCK"), ("REQUIRE_APPROVAL", "ALLOW"), ("LOG", "ALLOW"), ("ALLOW", "ALLOW")]
)
def test_a_failing_condition_counts_as_matched_only_for_block(action: str, comes_to: str) -> None:
    outcome = decided(rule(1, action, "tokens / 0 > 1"))
    assert (outcome[0], outcome[2]) == (comes_to, ["failed"])


def test_a_rule_that_routes_a_call_to_its_own_model_allows_it() -> None:
    routing_rule = rule(2, "ROUTE", route_to=MODEL)
    assert decided(routing_rule)[0] == "ALLOW"
    assert decided(rule(1, "REQUIRE_APPROVAL", terminal=False), routing_rule)[:2] == ("REQUIRE_APPROVAL", 1)


def test_without_governance_no_rule_is_in_force() -> None:
    records = GovernanceRecords(policy_rules=(rule(1, "BLOCK"),), governance_enabled=False)
    assert compile_rules(records)[0].rules == ()


def test_conditions_see_the_registry_entry_of_a_model() -> None:
    entry = RegistryRecord(provider="one", model_id="m", risk_tier="tier_1", validation_status="draft")
    records = GovernanceRecords(registry=(entry,), unregistered_model_tier="tier_3")
    rule_set: RuleSet = compile_rules(records)[0]
    assert rule_set.registry_status("one/m") == ("tier_1", "draft")
    assert rule_set.registry_status("one/other") == ("tier_3", "unregistered")


def test_only_variables_that_rules_name_are_needed() -> None:
    conditions = ['groups.exists(g, g == "x")', 'ip.in_range("10.0.0.0/8")']
    rule_set, _ = compile_rules(GovernanceRecords(policy_rules=tuple(rule(1, "LOG", c) for c in conditions)))
    assert rule_set.needs == {"groups", "ip", "in_range"}


def test_a_record_that_does_not_compile_is_a_fault_of_the_policy() -> None:
    records = TenantRecords(
        tenant_id=UUID(int=1), revision=1, governance=GovernanceRecords(policy_rules=(rule(1, "LOG", "colour"),))
    )
    faults = compile_policy(records)
    assert isinstance(faults, list)
    assert faults[0].startswith("policy rule 'rule 1': condition uses 'colour'")
