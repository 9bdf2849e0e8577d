"""The endpoints of webhooks under both prefixes, in three variants (docs/webhooks.md, docs/variants.md)."""

import hashlib
import hmac
import json
from typing import Any
from uuid import uuid4

import pytest
from tests.platform.operations.webhooks.conftest import BASE, SECRET, Hooks
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.foundation.egress.guard import EgressGuard
from gatehouse.foundation.outbound.receivers import Receivers
from gatehouse.platform.operations.webhooks import service

BASE_B = "/api/v1/admin/webhooks/"
#: A public IP address, so that no name is resolved. Nothing is sent there.
WEBHOOK: dict[str, Any] = {
    "name": "tickets", "url": "https://8.8.8.8/hook", "events": ["dlp_trigger", "quota_exceeded"], "secret": SECRET
}  # fmt: skip


async def new_webhook(tenant: Tenant, **changed: Any) -> dict[str, Any]:
    answer = await tenant.admin.client.post(BASE, json={**WEBHOOK, **changed})
    assert answer.status_code == 201, answer.text
    webhook: dict[str, Any] = answer.json()
    return webhook


async def test_a_webhook_has_these_fields_and_only_creation_in_variant_a_shows_the_secret(tenant: Tenant) -> None:
    webhook = await new_webhook(tenant)
    assert webhook.pop("secret") == SECRET
    assert webhook == {
        "id": webhook["id"], "name": "tickets", "url": "https://8.8.8.8/hook",
        "events": ["dlp_trigger", "quota_exceeded"], "enabled": True, "include_logged": False,
        "created_at": webhook["created_at"], "updated_at": webhook["created_at"],
    }  # fmt: skip
    read = (await tenant.auditor.client.get(f"{BASE}{webhook['id']}")).json()
    assert read == {**webhook, "recent_deliveries": []}
    assert (await tenant.auditor.client.get(BASE)).json() == [webhook]


@pytest.mark.parametrize("base", [BASE, BASE_B])
@pytest.mark.parametrize(
    ("parameters", "names", "total"),
    [
        ({}, ["three", "two", "one"], 3),
        ({"limit": 2}, ["three", "two"], 3),
        ({"limit": 2, "offset": 2}, ["one"], 3),
        ({"sort": "name"}, ["one", "three", "two"], 3),
        ({"sort": "created_at", "limit": 1}, ["one"], 3),
        ({"search": "TW"}, ["two"], 1),
        ({"search": "/audit"}, ["three"], 1),
        ({"enabled": "false"}, ["two"], 1),
        ({"enabled": "true", "limit": 1}, ["three"], 2),
        ({"event": "usage_threshold"}, ["two"], 1),
    ],
)
async def test_the_list_is_paged_filtered_and_sorted(
    tenant: Tenant, other_tenant: Tenant, base: str, parameters: dict[str, Any], names: list[str], total: int
) -> None:
    await new_webhook(other_tenant, name="two")
    await new_webhook(tenant, name="one")
    await new_webhook(tenant, name="two", enabled=False, events=["usage_threshold"])
    await new_webhook(tenant, name="three", url="https://8.8.8.8/audit")
    listed = await tenant.auditor.client.get(base, params=parameters)
    assert ([webhook["name"] for webhook in listed.json()], listed.headers["x-total-count"]) == (names, str(total))


@pytest.mark.parametrize(
    ("name", "value"), [("limit", "201"), ("offset", "-1"), ("sort", "url"), ("enabled", "perhaps"), ("event", "none")]
)
async def test_an_invalid_parameter_of_the_list_is_named(tenant: Tenant, name: str, value: str) -> None:
    refused = await tenant.admin.client.get(BASE, params={name: value})
    assert (refused.status_code, refused.json()["detail"][0]["loc"]) == (400, ["query", name])


@pytest.mark.parametrize(
    ("base", "variant", "secret", "deliveries"),
    [
        (BASE, None, True, "recent_deliveries"),
        (BASE_B, None, False, "deliveries"),
        (BASE, "c", False, "recent_deliveries"),
        (BASE_B, "a", True, "recent_deliveries"),
    ],
)
async def test_prefix_and_header_select_the_variant(
    tenant: Tenant, base: str, variant: str | None, secret: bool, deliveries: str
) -> None:
    headers = {} if variant is None else {"X-API-Variant": variant}
    created = (await tenant.admin.client.post(base, json=WEBHOOK, headers=headers)).json()
    assert ("secret" in created) is secret
    read = (await tenant.admin.client.get(f"{base}{created['id']}", headers=headers)).json()
    assert read[deliveries] == []
    updated = await tenant.admin.client.put(f"{base}{created['id']}", json={"name": "other"}, headers=headers)
    assert "secret" not in updated.json()
    assert (await tenant.admin.client.delete(f"{base}{created['id']}", headers=headers)).status_code == 204


async def test_the_newest_webhook_is_listed_first_with_and_without_the_last_slash(tenant: Tenant) -> None:
    ids = [(await new_webhook(tenant, name=name))["id"] for name in ("one", "two", "three")]
    for base in (BASE, BASE_B, BASE.rstrip("/")):
        assert [item["id"] for item in (await tenant.admin.client.get(base)).json()] == ids[::-1]


async def test_an_update_changes_the_sent_fields_and_keeps_the_secret(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    webhook = await new_webhook(tenant)
    sealed = platform.sql("SELECT sealed_secret FROM webhooks WHERE id = %s", [webhook["id"]])
    body = {"name": "other", "events": ["new_conversation", "new_conversation"], "enabled": False}
    answer = await tenant.admin.client.put(f"{BASE}{webhook['id']}", json=body)
    webhook.pop("secret")
    response_body = answer.json()
    assert response_body == {
        **webhook, "name": "other", "events": ["new_conversation"], "enabled": False,
        "updated_at": response_body["updated_at"],
    }  # fmt: skip
    assert response_body["updated_at"] > webhook["updated_at"]
    assert platform.sql("SELECT sealed_secret FROM webhooks WHERE id = %s", [webhook["id"]]) == sealed


async def test_a_secret_is_sealed_at_rest_with_its_spaces(platform: RunningPlatform, tenant: Tenant) -> None:
    secret = "  a secret between spaces  "
    webhook = await new_webhook(tenant, secret=secret)
    ((sealed,),) = platform.sql("SELECT sealed_secret FROM webhooks WHERE id = %s", [webhook["id"]])
    assert secret.strip() not in sealed
    context = f"webhook:{tenant.id}:{webhook['id']}".encode()
    assert platform.host.sealer.open(sealed, context=context).decode() == secret


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "x" * 256}, "name"),
        ({"url": "http://example.com/"}, "url"),
        ({"url": "https://8.8.8.8/" + "x" * 2000}, "url"),
        ({"url": None}, "url"),
        ({"events": []}, "events"),
        ({"events": ["no_such_event"]}, "events"),
        ({"events": "dlp_trigger"}, "events"),
        ({"secret": "7 chars"}, "secret"),
        ({"secret": "x" * 256}, "secret"),
        ({"enabled": "yes"}, "enabled"),
        ({"surprise": 1}, "surprise"),
    ],
)
async def test_bad_input_is_400_and_names_the_field_without_a_secret(
    tenant: Tenant, changed: dict[str, Any], field: str
) -> None:
    webhook = await new_webhook(tenant)
    for method, path, body in (("POST", BASE, {**WEBHOOK, **changed}), ("PUT", f"{BASE}{webhook['id']}", changed)):
        answer = await tenant.admin.client.request(method, path, json=body)
        assert (answer.status_code, answer.json()["detail"][0]["loc"][:2]) == (400, ["body", field]), answer.text
        assert SECRET not in answer.text
    assert len((await tenant.admin.client.get(BASE)).json()) == 1


@pytest.mark.parametrize("missing", ["name", "url", "events", "secret"])
async def test_a_missing_field_is_400_and_named(tenant: Tenant, missing: str) -> None:
    body = {name: value for name, value in WEBHOOK.items() if name != missing}
    answer = await tenant.admin.client.post(BASE, json=body)
    assert (answer.status_code, answer.json()["detail"][0]["loc"]) == (400, ["body", missing])


async def test_a_webhook_cannot_be_changed_to_an_unsafe_url(tenant: Tenant) -> None:
    webhook = await new_webhook(tenant)
    path = f"{BASE}{webhook['id']}"
    answer = await tenant.admin.client.put(path, json={"url": "https://169.254.169.254/"})
    assert (answer.status_code, answer.json()["detail"][0]["loc"]) == (400, ["body", "url"])
    assert (await tenant.admin.client.get(path)).json()["url"] == WEBHOOK["url"]


async def test_another_organizations_webhook_is_not_found(tenant: Tenant, other_tenant: Tenant) -> None:
    theirs = (await new_webhook(other_tenant))["id"]
    for method, path in (("GET", ""), ("PUT", ""), ("DELETE", ""), ("POST", "/test")):
        for base in (BASE, BASE_B):
            answer = await tenant.admin.client.request(method, f"{base}{theirs}{path}", json={})
            assert (answer.status_code, answer.json()) == (404, {"detail": "Webhook not found"})
    assert (await tenant.admin.client.get(BASE)).json() == []


async def test_only_admins_change_webhooks_and_auditors_read_them(platform: RunningPlatform, tenant: Tenant) -> None:
    path = f"{BASE}{(await new_webhook(tenant))['id']}"
    changing = [
        ("POST", BASE, WEBHOOK),
        ("PUT", path, {"name": "x"}),
        ("DELETE", path, None),
        ("POST", f"{path}/test", None),
    ]
    for client in (tenant.user.client, tenant.auditor.client):
        assert [(await client.request(method, where, json=body)).status_code for method, where, body in changing] == [
            403, 403, 403, 403
        ]  # fmt: skip
    assert [(await tenant.user.client.get(where)).status_code for where in (BASE, path)] == [403, 403]
    assert [(await tenant.auditor.client.get(where)).status_code for where in (BASE, path)] == [200, 200]
    for method, where, _ in [*changing, ("GET", BASE, None), ("GET", path, None)]:
        assert (await platform.anonymous.request(method, where)).status_code == 401


async def test_changes_are_audited_without_secret_and_url(platform: RunningPlatform, tenant: Tenant) -> None:
    webhook_id = (await new_webhook(tenant))["id"]
    path = f"{BASE}{webhook_id}"
    await tenant.admin.client.put(path, json={"url": "https://8.8.4.4/token", "secret": "the next one", "name": "n"})
    await tenant.admin.client.put(path, json={"name": "n"})
    await tenant.admin.client.delete(path)
    (created,) = await platform.audit(tenant, "webhook.created")
    assert (created["resource_type"], created["resource_id"], created["actor_id"]) == (
        "webhook", webhook_id, str(tenant.admin.id)
    )  # fmt: skip
    (updated,) = await platform.audit(tenant, "webhook.updated")
    assert updated["details"] == {"changed": ["name", "secret", "url"], "name": "n"}
    (deleted,) = await platform.audit(tenant, "webhook.deleted")
    assert deleted["details"] == {"name": "n"}
    result = json.dumps([created["details"], updated["details"]])
    assert not any(item in result for item in (SECRET, "the next one", "token", "8.8.8.8"))


async def test_an_organization_has_a_limited_number_of_webhooks(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "MAX_WEBHOOKS", 1)
    await new_webhook(tenant)
    assert (await tenant.admin.client.post(BASE, json=WEBHOOK)).status_code == 409


# the test call -------------------------------------------------------------------------------------------------------


async def test_a_test_is_sent_at_once_and_returns_its_result(hooks: Hooks, platform: RunningPlatform) -> None:
    webhook_id = await hooks.new("dlp_trigger", enabled=False)
    answer = await hooks.tenant.admin.client.post(f"{BASE}{webhook_id}/test")
    body = answer.json()
    assert body == {"success": True, "status_code": 200, "error": None, "latency_ms": body["latency_ms"]}
    assert body["latency_ms"] > 0
    (got,) = hooks.receiver.got
    assert got.json["event_type"] == "webhook_test"
    payload = got.json["payload"]
    assert payload == {"message": payload["message"], "webhook_id": webhook_id, "webhook_name": "mine"}
    digest = hmac.new(SECRET.encode(), got.body, hashlib.sha256).hexdigest()
    assert got.headers["X-Service-Signature"] == f"sha256={digest}"
    assert (await hooks.last(webhook_id, "a"))["id"] == got.headers["X-Service-Delivery-Id"]
    (tested,) = await platform.audit(hooks.tenant, "webhook.tested")
    assert tested["details"] == {"success": True, "status_code": 200, "error": None}


@pytest.mark.parametrize(("base", "variant"), [(BASE_B, None), (BASE, "c")])
async def test_in_variants_b_and_c_a_test_shows_no_latency(hooks: Hooks, base: str, variant: str | None) -> None:
    webhook_id = await hooks.new()
    headers = {} if variant is None else {"X-API-Variant": variant}
    answer = await hooks.tenant.admin.client.post(f"{base}{webhook_id}/test", headers=headers)
    assert answer.json() == {"success": True, "status_code": 200, "error": None}


async def test_a_failed_test_is_not_retried(hooks: Hooks) -> None:
    webhook_id = await hooks.new()
    hooks.receiver.otherwise = 500
    body = (await hooks.tenant.admin.client.post(f"{BASE}{webhook_id}/test")).json()
    assert (body["success"], body["status_code"], body["error"]) == (False, 500, "the receiver answered 500")
    await hooks.retry()
    assert len(hooks.receiver.got) == 1
    assert (await hooks.last(webhook_id))["next_retry_at"] is None


async def test_a_test_without_a_listener_has_no_status(hooks: Hooks) -> None:
    webhook_id = await hooks.new(url="https://127.0.0.1:9/")
    body = (await hooks.tenant.admin.client.post(f"{BASE}{webhook_id}/test")).json()
    assert body == {
        "success": False, "status_code": None, "error": "the connection could not be made", "latency_ms": None
    }  # fmt: skip


async def test_a_test_of_a_blocked_url_is_refused_without_a_connection(
    hooks: Hooks, platform: RunningPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    webhook_id = await hooks.new()
    strict = Receivers(EgressGuard())
    monkeypatch.setattr(platform.host, "receivers", strict)
    body = (await hooks.tenant.admin.client.post(f"{BASE}{webhook_id}/test")).json()
    assert (body["success"], body["error"]) == (False, "blocked by the address guard: a loopback address")
    assert hooks.receiver.got == []


async def test_a_test_of_an_unknown_webhook_is_404(tenant: Tenant) -> None:
    assert (await tenant.admin.client.post(f"{BASE}{uuid4()}/test")).status_code == 404
