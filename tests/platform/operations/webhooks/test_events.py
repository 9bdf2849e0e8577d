"""Each type of event reaches a receiver after its real cause (docs/webhooks.md, "Events")."""

from typing import Any

import pytest
from tests.platform.operations.webhooks.conftest import Hooks
from tests.support.platform import RunningPlatform
from tests.support.receiver import Got


@pytest.fixture
async def sandbox(hooks: Hooks, platform: RunningPlatform) -> Hooks:
    await platform.add_provider(hooks.tenant.id, "sandbox", "sandbox", "echo")
    return hooks


async def only(hooks: Hooks) -> Got:
    await hooks.dispatch()
    await hooks.deliver()
    (got,) = hooks.receiver.got
    return got


async def test_a_new_conversation_is_announced(sandbox: Hooks) -> None:
    await sandbox.new("new_conversation")
    body = {"title": "x", "model": "sandbox/echo"}
    made = (await sandbox.tenant.user.client.post("/api/conversations", json=body)).json()
    got = await only(sandbox)
    assert got.json["payload"] == {
        "conversation_id": made["id"], "user_id": str(sandbox.tenant.user.id), "provider": "sandbox", "model": "echo",
        "created_at": made["created_at"],
    }  # fmt: skip


async def test_a_bundles_change_of_state_is_announced(hooks: Hooks) -> None:
    admin = hooks.tenant.admin
    body = {"name": "sox", "regulatory_framework": "SOX", "version": "1", "seed_rule_mappings": []}
    bundle = (await admin.client.post("/api/admin/compliance-bundles", json=body)).json()
    await hooks.new("bundle_state_change")
    await admin.client.put(f"/api/admin/compliance-bundles/{bundle['id']}", json={**body, "enabled": False})
    got = await only(hooks)
    payload = got.json["payload"]
    assert payload == {
        "bundle_id": bundle["id"], "bundle_name": "sox", "previous_state": "enabled", "new_state": "disabled",
        "changed_by": str(admin.id), "changed_at": payload["changed_at"],
    }  # fmt: skip
    assert payload["changed_at"].endswith("Z")


async def test_an_exceeded_quota_is_announced(sandbox: Hooks) -> None:
    budget = {"scope_type": "user", "scope_id": str(sandbox.tenant.user.id), "period": "month", "limit_requests": 1}
    assert (await sandbox.tenant.admin.client.post("/api/admin/budgets", json=budget)).status_code == 201
    await sandbox.new("quota_exceeded")
    body = {"model": "sandbox/echo", "messages": [{"role": "user", "content": "hello"}]}
    for status in (200, 429):
        answer = await sandbox.tenant.user.client.post("/v1/chat/completions", json=body)
        assert answer.status_code == status, answer.text
    payload = (await only(sandbox)).json["payload"]
    assert payload == {
        "user_id": str(sandbox.tenant.user.id), "group_id": None, "limit_type": "requests_month", "limit_value": 1,
        "current_usage": 1, "reset_at": payload["reset_at"],
    }  # fmt: skip


#: Events of the keeper, of plans and of invoices. Their own tests check the payloads. This test checks that they arrive
#: unchanged.
_PAYLOADS: dict[str, dict[str, Any]] = {
    "dlp_trigger": {
        "request_id": "r", "user_id": "u", "rule_id": "d", "entity_type": "IBAN", "action_taken": "REDACT",
        "timestamp": "2026-01-01T00:00:00Z",
    },
    "quota_exceeded": {
        "user_id": None, "group_id": "g", "limit_type": "usd_month", "limit_value": 12.5, "current_usage": 12.5,
        "reset_at": "2026-02-01T00:00:00Z",
    },
    "usage_threshold": {
        "org_id": "o", "threshold": 0.8, "current_requests": 8000, "monthly_limit": 10000, "period": "2026-01",
    },
    "invoice_generated": {
        "invoice_id": "i", "org_id": "o", "period": "2026-01", "total_usd": 0.123456789,
        "line_items": [{"model_id": "m", "requests": 1, "cost_usd": 0.123456789}],
        "generated_at": "2026-02-01T01:00:00Z",
    },
}  # fmt: skip


@pytest.mark.parametrize("event_type", _PAYLOADS)
async def test_events_of_other_processes_are_delivered_unchanged(hooks: Hooks, event_type: str) -> None:
    await hooks.new(event_type)
    await hooks.announce(_PAYLOADS[event_type], event_type=event_type)
    got = await only(hooks)
    assert (got.json["event_type"], got.json["payload"]) == (event_type, _PAYLOADS[event_type])


_REDACTED = {"rule_id": "d", "entity_type": "IBAN", "action_taken": "REDACT", "direction": "input"}
_LOGGED = {"rule_id": "l", "entity_type": "EMAIL", "action_taken": "LOG_ONLY", "direction": "output"}


async def test_logged_findings_reach_webhooks_with_that_event_type(hooks: Hooks) -> None:
    await hooks.new("dlp_trigger", path="plain")
    await hooks.new("dlp_trigger", path="all", include_logged=True)
    both = {"request_id": "1", **_REDACTED, "findings": [_REDACTED], "logged": [_LOGGED]}
    only_logged = {"request_id": "2", **_LOGGED, "findings": [], "logged": [_LOGGED]}
    await hooks.send(both, only_logged, event_type="dlp_trigger")

    def got(path: str) -> list[Any]:
        return [delivery.json["payload"] for delivery in hooks.receiver.got if delivery.path == path]

    assert got("/plain") == [{"request_id": "1", **_REDACTED, "findings": [_REDACTED]}]
    assert got("/all") == [both, only_logged]
