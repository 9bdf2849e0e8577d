"""The results of content filters and policy rules in a request's audit event."""

from typing import Any
from uuid import UUID

from tests.support.journal import Journal, opened, outcome
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.engine.records.outcome import RuleEvent

RULE_EVENT = RuleEvent(
    kind="policy_rule", rule_id=str(UUID(int=1)), rule_name="No echo", action="BLOCK", result="matched",
    model="sandbox/echo",
)  # fmt: skip


async def rules_in_events(platform: RunningPlatform, tenant: Tenant) -> list[Any]:
    return [event["details"].get("rules") for event in await platform.audit(tenant, "gateway.request")]


async def test_the_results_of_rules_are_in_the_requests_audit_event(
    platform: RunningPlatform, tenant: Tenant, journal: Journal
) -> None:
    await journal.append(outcome(tenant.id, rule_events=(RULE_EVENT,)), outcome(tenant.id))
    await journal.drain()
    assert await rules_in_events(platform, tenant) == [
        [{
            "kind": "policy_rule", "rule_id": str(UUID(int=1)), "rule_name": "No echo", "action": "BLOCK",
            "result": "matched", "model": "sandbox/echo",
        }],
        None,
    ]  # fmt: skip


async def test_the_results_of_rules_are_in_the_event_of_an_interrupted_stream(
    platform: RunningPlatform, tenant: Tenant, journal: Journal
) -> None:
    await journal.append(opened(outcome(tenant.id, rule_events=(RULE_EVENT,), stream=True)))
    await journal.killed()
    await journal.append(outcome(tenant.id))
    await journal.drain()
    assert sum(bool(rules) for rules in await rules_in_events(platform, tenant)) == 1
