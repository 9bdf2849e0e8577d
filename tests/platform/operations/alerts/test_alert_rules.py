"""The endpoints of alerts (docs/alerts.md). `tests/contract` tests who may call them."""

import asyncio
from typing import Any
from uuid import uuid4

import pytest
from tests.platform.operations.alerts.conftest import BASE, RULE, Alerts
from tests.support.platform import RunningPlatform, Tenant

URL = "https://hooks.example.com/x"


async def test_a_rule_has_these_fields(tenant: Tenant) -> None:
    answer = await tenant.admin.client.post(BASE, json=RULE)
    assert answer.status_code == 201
    rule = answer.json()
    assert rule == {
        **RULE, "id": rule["id"], "tenant_id": str(tenant.id), "webhook_url": None, "enabled": True,
        "cooldown_minutes": 60, "last_triggered_at": None, "created_at": rule["created_at"],
        "updated_at": rule["created_at"],
    }  # fmt: skip
    assert (await tenant.auditor.client.get(f"{BASE}/{rule['id']}")).json() == rule


async def test_the_list_is_an_array_newest_first(tenant: Tenant) -> None:
    ids = [(await tenant.admin.client.post(BASE, json={**RULE, "name": name})).json()["id"] for name in ("a", "b", "c")]
    listed = (await tenant.auditor.client.get(BASE)).json()
    assert [rule["id"] for rule in listed] == ids[::-1]


@pytest.mark.parametrize(
    ("parameters", "names", "total"),
    [
        ({}, ["c", "b", "a"], 3),
        ({"limit": 2}, ["c", "b"], 3),
        ({"limit": 2, "offset": 2}, ["a"], 3),
        ({"sort": "name", "limit": 1}, ["a"], 3),
        ({"sort": "last_triggered_at"}, ["b", "a", "c"], 3),
        ({"sort": "-last_triggered_at"}, ["b", "c", "a"], 3),
        ({"search": "B"}, ["b"], 1),
        ({"enabled": "false"}, ["c"], 1),
        ({"metric_type": "cost", "limit": 1}, ["b"], 2),
    ],
)
async def test_the_list_is_paged_filtered_and_sorted(
    platform: RunningPlatform,
    tenant: Tenant,
    other_tenant: Tenant,
    parameters: dict[str, Any],
    names: list[str],
    total: int,
) -> None:
    await other_tenant.admin.client.post(BASE, json={**RULE, "name": "b"})
    for fields in ({"name": "a"}, {"name": "b"}, {"name": "c", "metric_type": "error_rate", "enabled": False}):
        await tenant.admin.client.post(BASE, json={**RULE, **fields})
    platform.sql(
        "UPDATE alert_rules SET last_triggered_at = created_at WHERE tenant_id = %s AND name = 'b'", [tenant.id]
    )
    listed = await tenant.auditor.client.get(BASE, params=parameters)
    assert ([rule["name"] for rule in listed.json()], listed.headers["x-total-count"]) == (names, str(total))


@pytest.mark.parametrize(
    ("name", "value"), [("limit", "201"), ("offset", "-1"), ("sort", "threshold"), ("metric_type", "none")]
)
async def test_an_invalid_parameter_of_the_list_is_named(tenant: Tenant, name: str, value: str) -> None:
    refused = await tenant.admin.client.get(BASE, params={name: value})
    assert (refused.status_code, refused.json()["detail"][0]["loc"]) == (400, ["query", name])


async def test_an_update_changes_only_the_sent_fields(platform: RunningPlatform, tenant: Tenant) -> None:
    rule = (await tenant.admin.client.post(BASE, json={**RULE, "webhook_url": URL})).json()
    path = f"{BASE}/{rule['id']}"
    changed = {"threshold": 2.5, "webhook_url": None, "enabled": False}
    after = (await tenant.admin.client.put(path, json={**changed, "name": rule["name"]})).json()
    assert after == {**rule, **changed, "updated_at": after["updated_at"]}
    (event,) = await platform.audit(tenant, "alert_rule.updated")
    assert (event["resource_id"], event["details"]["changed"]) == (rule["id"], changed)


async def test_only_the_host_of_a_receivers_url_is_in_the_audit_chain(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    secret = "https://hooks.example.com/T000/B000/its-own-secret?key=another"
    rule = (await tenant.admin.client.post(BASE, json={**RULE, "webhook_url": secret})).json()
    assert rule["webhook_url"] == secret
    await tenant.admin.client.put(f"{BASE}/{rule['id']}", json={"webhook_url": secret + "2"})
    (created,) = await platform.audit(tenant, "alert_rule.created")
    (updated,) = await platform.audit(tenant, "alert_rule.updated")
    assert created["details"]["alert_rule"]["webhook_url"] == "https://hooks.example.com"
    assert updated["details"]["changed"] == {"webhook_url": "https://hooks.example.com"}


async def test_every_change_is_in_the_audit_chain(platform: RunningPlatform, tenant: Tenant) -> None:
    rule = (await tenant.admin.client.post(BASE, json=RULE)).json()
    await tenant.admin.client.post(f"{BASE}/evaluate")
    assert (await tenant.admin.client.delete(f"{BASE}/{rule['id']}")).status_code == 204
    for action in ("created", "evaluated", "deleted"):
        (event,) = await platform.audit(tenant, f"alert_rule.{action}")
        assert event["actor_id"] == str(tenant.admin.id)
    assert (await tenant.admin.client.get(f"{BASE}/{rule['id']}")).status_code == 404


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", ""), ("name", None), ("name", "x" * 256), ("metric_type", "latency_p50"), ("metric_type", None),
        ("comparison", "eq"), ("threshold", "10"), ("threshold", None), ("threshold", 1e300), ("window_minutes", 0),
        ("window_minutes", 10_081), ("window_minutes", 1.5), ("cooldown_minutes", 0), ("cooldown_minutes", 10_081),
        ("enabled", "yes"), ("enabled", None), ("surprise", 1), ("webhook_url", "http://hooks.example.com/"),
        ("webhook_url", "https://127.0.0.1/"), ("webhook_url", "https://10.1.2.3/x"),
        ("webhook_url", "https://169.254.169.254/latest"), ("webhook_url", "https://[::ffff:192.168.0.1]/"),
        ("webhook_url", "https://2130706433/"), ("webhook_url", "https://0177.0.0.1/"),
        ("webhook_url", "https://0x7f.1/"), ("webhook_url", "https://hooks.example.com@127.0.0.1/"),
        ("webhook_url", "https://localhost/"), ("webhook_url", "not a url"), ("webhook_url", 7),
    ],
)  # fmt: skip
async def test_bad_input_is_400_and_names_the_field(tenant: Tenant, field: str, value: Any) -> None:
    made = (await tenant.admin.client.post(BASE, json=RULE)).json()
    for method, path, body in (
        ("POST", BASE, {**RULE, field: value}),
        ("PUT", f"{BASE}/{made['id']}", {field: value}),
    ):
        answer = await tenant.admin.client.request(method, path, json=body)
        assert (answer.status_code, answer.json()["detail"][0]["loc"]) == (400, ["body", field]), answer.text
    assert (await tenant.admin.client.get(f"{BASE}/{made['id']}")).json() == made


@pytest.mark.parametrize("field", ["name", "metric_type", "threshold", "comparison", "window_minutes"])
async def test_a_missing_field_is_named(tenant: Tenant, field: str) -> None:
    body = {name: value for name, value in RULE.items() if name != field}
    answer = await tenant.admin.client.post(BASE, json=body)
    assert (answer.status_code, answer.json()["detail"][0]["loc"]) == (400, ["body", field])


async def test_an_organization_has_a_bounded_number_of_rules(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gatehouse.platform.operations.alerts.service.MAX_ALERT_RULES", 1)
    assert (await tenant.admin.client.post(BASE, json=RULE)).status_code == 201
    assert (await tenant.admin.client.post(BASE, json=RULE)).status_code == 409


async def test_another_organizations_rule_is_not_found(tenant: Tenant, other_tenant: Tenant) -> None:
    theirs = (await other_tenant.admin.client.post(BASE, json=RULE)).json()["id"]
    for method, path in (("GET", ""), ("PUT", ""), ("DELETE", ""), ("GET", "/history")):
        body = {"name": "x"} if method == "PUT" else None
        for rule_id in (theirs, uuid4()):
            answer = await tenant.admin.client.request(method, f"{BASE}/{rule_id}{path}", json=body)
            assert (answer.status_code, answer.json()) == (404, {"detail": "Alert rule not found"})
    assert (await tenant.admin.client.get(BASE)).json() == []


async def test_evaluating_now_returns_triggered_rules_and_counts_those_in_cooldown(alerts: Alerts) -> None:
    client = alerts.tenant.admin.client
    rule = await alerts.new(comparison="gte", threshold=0)
    quiet = await alerts.new(comparison="gt", threshold=0)
    await alerts.new(enabled=False, comparison="gte", threshold=0)
    first, again = [(await client.post(f"{BASE}/evaluate")).json() for _ in range(2)]
    results = [{"rule_id": rule, "rule_name": "Spend", "metric_value": 0}]
    assert first == {"rules_evaluated": 2, "rules_triggered": 1, "triggered": results}
    assert again == {"rules_evaluated": 2, "rules_triggered": 0, "triggered": []}
    assert (await alerts.history(quiet), len(await alerts.history(rule))) == ([], 1)


async def test_evaluating_now_evaluates_only_the_organizations_rules(alerts: Alerts, other_tenant: Tenant) -> None:
    rule = await alerts.new(comparison="gte", threshold=0)
    body = (await other_tenant.admin.client.post(f"{BASE}/evaluate")).json()
    assert body == {"rules_evaluated": 0, "rules_triggered": 0, "triggered": []}
    assert await alerts.history(rule) == []


async def test_two_concurrent_evaluations_trigger_once(alerts: Alerts) -> None:
    rule = await alerts.new(comparison="gte", threshold=0)
    client = alerts.tenant.admin.client
    answers = await asyncio.gather(*(client.post(f"{BASE}/evaluate") for _ in range(4)))
    assert sum(answer.json()["rules_triggered"] for answer in answers) == 1
    assert len(await alerts.history(rule)) == 1


async def test_history_is_paged_and_deleted_with_its_rule(alerts: Alerts) -> None:
    rule = await alerts.new(comparison="gte", threshold=0, cooldown_minutes=1)
    for _ in range(3):
        await alerts.evaluate()
        alerts.clock.move(60)
    records = await alerts.history(rule)
    moments = [record["triggered_at"] for record in records]
    assert (len(moments), moments) == (3, sorted(moments, reverse=True))
    assert await alerts.history(rule, limit=1, offset=1) == [records[1]]
    page = await alerts.tenant.admin.client.get(f"{BASE}/{rule}/history", params={"limit": 1})
    assert (page.json().keys(), page.json()["total"]) == ({"history", "total"}, 3)
    bad = await alerts.tenant.admin.client.get(f"{BASE}/{rule}/history", params={"limit": 0})
    assert (bad.status_code, bad.json()["detail"][0]["loc"]) == (400, ["query", "limit"])
    await alerts.tenant.admin.client.delete(f"{BASE}/{rule}")
    assert alerts.platform.sql("SELECT count(*) FROM alert_history WHERE rule_id = %s", [rule]) == [(0,)]
