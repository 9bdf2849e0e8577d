"""What content filters and policy rules said about a request, in its audit event."""

from typing import Any
from uuid import UUID

from tests.support.journal import Journal, opened, outcome
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.engine.records.outcome import RuleEvent

SAID = RuleEvent(
    kind="policy_rule", rule_id=str(UUID(int=1)), rule_name="No echo", action="BLOCK", result="matched",
    model="sandbox/echo",
)  # fmt: skip


async def rules_in_events(platform: RunningPlatform, tenant: Tenant) -> list[Any]:
    return [event["details"].get("rules") for event in await platform.audit(tenant, "gateway.request")]


async def test_it_is_in_the_event_of_a_request_that_rules_spoke_about(
    platform: RunningPlatform, tenant: Tenant, journal: Journal
) -> None:
    await journal.append(outcome(tenant.id, rule_events=(SAID,)), outcome(tenant.id))
    await journal.drain()
    assert await rules_in_events(platform, tenant) == [
        [{
            "kind": "policy_rule", "rule_id": str(UUID(int=1)), "rule_name": "No echo", "action": "BLOCK",
            "result": "matched", "model": "sandbox/echo",
        }],
        None,
    ]  # fmt: skip


async def test_it_is_there_for_a_stream_that_was_interrupted(
    platform: RunningPlatform, tenant: Tenant, journal: Journal
) -> None:
    await journal.append(opened(outcome(tenant.id, rule_events=(SAID,), stream=True)))
    await journal.killed()
    await journal.append(outcome(tenant.id))
    await journal.drain()
    assert sum(bool(rules) for rules in await rules_in_events(platform, tenant)) == 1
