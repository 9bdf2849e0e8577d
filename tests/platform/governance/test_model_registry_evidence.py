"""The evidence of a model: history, approvals, usage and incidents, and the verification of its hashes."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.platform.changes.chain.links import AuditEvent, link
from gatehouse.platform.governance.model_registry import evidence

BASE = "/api/admin/models"


async def create_entry(tenant: Tenant, **fields: Any) -> str:
    answer = await tenant.admin.client.post(BASE, json={"provider": "openai", "model_id": "gpt-4o", **fields})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


async def read_evidence(tenant: Tenant, entry_id: str) -> dict[str, Any]:
    answer = await tenant.auditor.client.get(f"{BASE}/{entry_id}/evidence", headers={"X-API-Variant": "a"})
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


def hash_is_valid(tenant: Tenant, event: dict[str, Any]) -> bool:
    """Verify the hash of an event with the data of the response only."""
    fields = {name: event[name] for name in AuditEvent.__struct_fields__ if name not in {"salt", "timestamp"}}
    text = AuditEvent(**fields, timestamp=datetime.fromisoformat(event["timestamp"]), salt=None)
    personal = bytes.fromhex(event["personal_digest"])
    return link(bytes.fromhex(event["prev_hash"]), tenant.id, event["sequence"], text, personal).hex() == event["hash"]


async def test_the_history_of_a_model_spans_deleted_entries_and_has_valid_hashes(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    client = tenant.admin.client
    await client.delete(f"{BASE}/{await create_entry(tenant)}")
    entry_id = await create_entry(tenant, owner="Ada")
    await create_entry(tenant, model_id="another")
    assert (await read_evidence(tenant, entry_id))["next_statuses"] == ["pending_validation"]
    for status in ("pending_validation", "in_validation", "validated"):
        await client.put(f"{BASE}/{entry_id}", json={"validation_status": status})
    result = await read_evidence(tenant, entry_id)
    assert [event["action"].rpartition(".")[2] for event in result["history"]] == (
        ["created", "deleted", "created", "updated", "updated", "updated"]
    )
    assert [event["target_model"] for event in result["history"]] == ["gpt-4o"] * 6
    assert all(hash_is_valid(tenant, event) for event in result["history"])
    forged = {**result["history"][0], "outcome": "failure"}
    assert not hash_is_valid(tenant, forged)
    assert [(change["old_status"], change["new_status"], change["actor_id"]) for change in result["validation"]] == [
        ("draft", "pending_validation", str(tenant.admin.id)),
        ("pending_validation", "in_validation", str(tenant.admin.id)),
        ("in_validation", "validated", str(tenant.admin.id)),
    ]
    (head,) = platform.sql("SELECT sequence, encode(hash, 'hex') FROM audit_heads WHERE tenant_id = %s", [tenant.id])
    assert result["chain"] == {"sequence": head[0], "hash": head[1]}
    assert result["complete"] is True
    assert result["next_statuses"] == ["deprecated"]
    assert result["model"] == (await client.get(f"{BASE}/{entry_id}", headers={"X-API-Variant": "a"})).json()


async def test_the_event_of_a_deletion_contains_the_fields_of_the_entry(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    entry_id = await create_entry(tenant, owner="Ada", description="x", tags=["a"])
    await tenant.admin.client.delete(f"{BASE}/{entry_id}")
    (event,) = await platform.audit(tenant, "registered_model.deleted")
    assert event["details"] == {
        "display_name": None, "risk_tier": "unclassified", "validation_status": "draft", "owner": "Ada",
        "description": "x", "tags": {"a": ""},
    }  # fmt: skip


async def test_usage_and_incidents_are_reported_by_month(platform: RunningPlatform, tenant: Tenant) -> None:
    entry_id = await create_entry(tenant)
    for model, day, requests, errors, blocked, flagged in [
        ("gpt-4o", "2026-01-31", 5, 1, 0, 0),
        ("gpt-4o", "2026-02-01", 3, 0, 2, 1),
        ("gpt-4o", "2026-02-28", 4, 1, 0, 0),
        ("other", "2026-02-28", 100, 100, 100, 100),
    ]:
        platform.sql(
            "INSERT INTO model_days (tenant_id, provider, model_id, day, requests, errors, blocked, flagged,"
            " input_tokens, output_tokens, cost_usd) VALUES (%s, 'openai', %s, %s, %s, %s, %s, %s, 10, 20, 0.25)",
            [tenant.id, model, day, requests, errors, blocked, flagged],
        )
    result = await read_evidence(tenant, entry_id)
    assert result["usage"] == [
        {
            "month": "2026-01", "requests": 5, "errors": 1, "blocked": 0, "flagged": 0, "input_tokens": 10,
            "output_tokens": 20, "cost_usd": "0.25",
        },
        {
            "month": "2026-02", "requests": 7, "errors": 1, "blocked": 2, "flagged": 1, "input_tokens": 20,
            "output_tokens": 40, "cost_usd": "0.50",
        },
    ]  # fmt: skip
    assert result["incidents"] == {"errors": 2, "dlp_blocks": 2, "registry_flags": 1, "kill_switches": 0}


async def test_kill_switches_of_the_model_and_its_provider_are_reported(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    await platform.add_provider(tenant.id, "openai", "sandbox", "gpt-4o", "other")
    entry_id = await create_entry(tenant)
    ids = dict(platform.sql("SELECT model_id, id FROM model_configs WHERE tenant_id = %s", [tenant.id]))
    switch = "/api/v1/admin/kill-switch"
    for path in (f"models/{ids['gpt-4o']}", f"models/{ids['other']}", "providers/openai"):
        answer = await tenant.admin.client.post(f"{switch}/{path}/disable", json={"reason": "security_event"})
        assert answer.status_code == 200, answer.text
    result = await read_evidence(tenant, entry_id)
    assert {event["target_model"] for event in result["kill_switches"]} == {"gpt-4o", "*"}
    # The switch of a provider causes an event for the provider and one for each of its models.
    assert (result["incidents"]["kill_switches"], len(result["kill_switches"])) == (2, 3)
    assert {event["reason"] for event in result["kill_switches"]} == {"security_event"}
    assert all(hash_is_valid(tenant, event) for event in result["kill_switches"])


async def test_requests_that_waited_for_approval_are_reported(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant
) -> None:
    entry_id = await create_entry(tenant)
    for tenant_id, model in [
        (tenant.id, "openai/gpt-4o"), (tenant.id, "gpt-4o"), (tenant.id, "x"), (other_tenant.id, "gpt-4o"),
    ]:  # fmt: skip
        platform.sql(
            "INSERT INTO approvals (id, tenant_id, request_id, reason, node, model, status, expires_at, decided_at,"
            " decided_by, decision_reason) VALUES (%s, %s, 'r', 'x', %s, %s, 'denied', now(), now(), %s, 'no')",
            [uuid4(), tenant_id, platform.host.node.id, model, str(tenant.admin.id)],
        )
    approvals = (await read_evidence(tenant, entry_id))["approvals"]
    assert [
        (approval["requested_model"], approval["status"], approval["decision_reason"]) for approval in approvals
    ] == [
        ("openai/gpt-4o", "denied", "no"), ("gpt-4o", "denied", "no"),
    ]  # fmt: skip


async def test_the_evidence_contains_the_current_objection_of_the_gateway(tenant: Tenant) -> None:
    entry_id = await create_entry(tenant)
    assert (await read_evidence(tenant, entry_id))["enforcement"] == {"mode": "off", "objection": None}
    await tenant.admin.client.put("/api/admin/config/registry_enforcement", json={"value": "warn"})
    assert (await read_evidence(tenant, entry_id))["enforcement"] == {
        "mode": "warn",
        "objection": "model_not_validated",
    }


async def test_a_long_history_contains_only_the_newest_events_and_is_marked_incomplete(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evidence, "MAX_ITEMS", 2)
    entry_id = await create_entry(tenant)
    for owner in ("Ada", "Bob", "Cy"):
        await tenant.admin.client.put(f"{BASE}/{entry_id}", json={"owner": owner})
    result = await read_evidence(tenant, entry_id)
    assert [event["details"]["changes"]["owner"]["new"] for event in result["history"]] == ["Bob", "Cy"]
    assert result["complete"] is False


async def test_a_history_without_events_before_the_hot_window_is_marked_incomplete(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    entry_id = await create_entry(tenant)
    await tenant.admin.client.put(f"{BASE}/{entry_id}", json={"owner": "Ada"})
    result = await read_evidence(tenant, entry_id)
    assert result["complete"] is True
    assert datetime.fromisoformat(result["events_since"]) < datetime.now(UTC) - timedelta(days=89)
    # Move the creation 200 days into the past. The hot window then contains only the end of the history.
    for table, moment in (("registered_models", "created_at"), ("audit_events", "timestamp")):
        row_filter = "id" if table == "registered_models" else "action = 'registered_model.created' AND resource_id"
        platform.sql(
            f"UPDATE {table} SET {moment} = now() - interval '200 days' WHERE tenant_id = %s AND {row_filter} = %s",
            [tenant.id, entry_id],
        )
    result = await read_evidence(tenant, entry_id)
    assert [event["action"] for event in result["history"]] == ["registered_model.updated"]
    assert result["complete"] is False
    # Under a legal hold, the evidence contains all events of the database.
    hold = await tenant.admin.client.put("/api/v1/admin/retention/legal-hold", json={"reason": "Case 1"})
    assert hold.status_code == 200, hold.text
    result = await read_evidence(tenant, entry_id)
    assert (len(result["history"]), result["events_since"], result["complete"]) == (2, None, True)


async def test_only_readers_of_the_organizations_registry_read_the_evidence(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant
) -> None:
    path = f"{BASE}/{await create_entry(tenant)}/evidence"
    assert (await platform.anonymous.get(path)).status_code == 401
    assert (await tenant.user.client.get(path)).status_code == 403
    answers = await asyncio.gather(
        other_tenant.admin.client.get(path), tenant.admin.client.get(f"{BASE}/{uuid4()}/evidence")
    )
    assert [(answer.status_code, answer.json()["error"]) for answer in answers] == [(404, "model_not_found")] * 2
    assert (await tenant.admin.client.get(f"{BASE}/none/evidence")).status_code == 404


async def test_the_documented_program_verifies_the_hashes(tenant: Tenant) -> None:
    entry_id = await create_entry(tenant, model_id="modèle-\N{SNOWMAN}\U0001f512")
    result = await read_evidence(tenant, entry_id)
    page = Path("docs/model-registry.md").read_text(encoding="utf-8")
    program = page.split("```python\n")[1].split("```")[0].split("evidence = ")[0]
    namespace: dict[str, Any] = {}
    exec(program, namespace)
    (event,) = result["history"]
    assert namespace["holds"](result["model"]["tenant_id"], event)
    assert not namespace["holds"](result["model"]["tenant_id"], {**event, "target_model": "another"})
