"""The IP allowlist (docs/ip-allowlist.md)."""

from time import time
from typing import Any

import httpx2
import pytest
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.foundation.http.addresses import ClientAddresses

BASE = "/api/v1/admin/org/ip-allowlist"
#: The address range from which the tests call.
HERE = ["127.0.0.0/8"]
CHAT = {"model": "sandbox/echo", "messages": [{"role": "user", "content": "hi"}]}
OFF = {"enabled": False, "cidrs": [], "bypass_for_mfa": False}
OUTSIDE = {"X-Forwarded-For": "198.51.100.7"}


@pytest.fixture
def behind_a_proxy(platform: RunningPlatform, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the tests' own address a trusted proxy, so that `X-Forwarded-For` sets the caller's address."""
    gateway = platform.app._app
    trusted = ClientAddresses(HERE)
    monkeypatch.setattr(gateway, "addresses", trusted)
    monkeypatch.setattr(gateway._application, "_addresses", trusted)  # type: ignore[union-attr]


async def put(tenant: Tenant, **body: Any) -> httpx2.Response:
    return await tenant.admin.client.put(BASE, json=body)


def values(answer: httpx2.Response) -> dict[str, Any]:
    """Return the settings without their sources."""
    return {name: value for name, value in answer.json().items() if name != "sources"}


async def test_the_allowlist_is_not_enforced_by_default(tenant: Tenant) -> None:
    answer = await tenant.auditor.client.get(BASE)
    assert answer.json() == {**OFF, "sources": dict.fromkeys(OFF, "default")}


async def test_ranges_are_normalized_and_deduplicated(platform: RunningPlatform, tenant: Tenant) -> None:
    answer = await put(tenant, cidrs=["10.1.2.3/8", "10.0.0.0/8", "2001:DB8::5/32", "::ffff:192.0.2.9", "192.0.2.9"])
    assert answer.status_code == 200
    assert answer.json()["cidrs"] == ["10.0.0.0/8", "2001:db8::/32", "192.0.2.9/32"]
    (event,) = await platform.audit(tenant, "ip_allowlist.changed")
    assert event["details"] == {"cidrs": answer.json()["cidrs"], "before": {"cidrs": []}}


@pytest.mark.parametrize("cidrs", [["192.0.2.0/24"], [], ["::1/128"]])
async def test_a_list_that_would_lock_the_caller_out_is_refused(
    platform: RunningPlatform, tenant: Tenant, cidrs: list[str]
) -> None:
    answer = await put(tenant, enabled=True, cidrs=cidrs)
    body = answer.json()
    assert (answer.status_code, body["error"], body["code"]) == (400, "invalid_request", "caller_address_excluded")
    assert (await tenant.admin.client.get(BASE)).json()["enabled"] is False
    assert await platform.audit(tenant, "ip_allowlist.changed") == []


async def test_an_enforced_list_cannot_exclude_the_caller_by_any_endpoint(tenant: Tenant) -> None:
    assert (await put(tenant, enabled=True, cidrs=HERE)).status_code == 200
    assert (await put(tenant, cidrs=["192.0.2.0/24"])).status_code == 400
    # A second factor alone would not be enough, because factors can be lost.
    assert (await put(tenant, cidrs=["192.0.2.0/24"], bypass_for_mfa=True)).status_code == 400
    settings = await tenant.admin.client.put("/api/v1/admin/org/settings", json={"ip_allowlist": ["192.0.2.0/24"]})
    assert (settings.status_code, settings.json()["code"]) == (400, "caller_address_excluded")


async def test_a_list_written_through_the_settings_is_enforced(tenant: Tenant) -> None:
    path = "/api/v1/admin/org/settings"
    refused = await tenant.admin.client.put(path, json={"ip_allowlist": ["192.0.2.0/24"]})
    assert (refused.status_code, refused.json()["code"]) == (400, "caller_address_excluded")
    assert values(await tenant.admin.client.get(BASE)) == OFF
    assert (await tenant.admin.client.put(path, json={"ip_allowlist": HERE})).status_code == 200
    assert values(await tenant.admin.client.get(BASE)) == {**OFF, "enabled": True, "cidrs": HERE}
    # Changes of other fields leave the list unchanged. An empty list disables it.
    assert (await tenant.admin.client.put(path, json={"timezone": "Europe/London"})).status_code == 200
    assert (await tenant.admin.client.get(BASE)).json()["enabled"] is True
    assert (await tenant.admin.client.put(path, json={"ip_allowlist": []})).status_code == 200
    assert values(await tenant.admin.client.get(BASE)) == OFF


async def test_a_list_that_is_not_enforced_may_exclude_the_caller(tenant: Tenant) -> None:
    await put(tenant, enabled=True, cidrs=HERE)
    off = await put(tenant, enabled=False)
    assert values(off) == {**OFF, "cidrs": HERE}
    assert off.json()["sources"] == {"enabled": "organization", "cidrs": "organization", "bypass_for_mfa": "default"}
    assert (await put(tenant, cidrs=["192.0.2.0/24"])).status_code == 200
    assert (await put(tenant, enabled=True)).status_code == 400


@pytest.mark.usefixtures("behind_a_proxy")
async def test_an_enforced_list_applies_to_gateway_and_administration_from_the_response_on(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant
) -> None:
    await platform.add_provider(tenant.id, "sandbox", "sandbox", "echo")
    key = platform.client(await platform.new_key(tenant.user))
    machine = await platform.new_m2m(tenant.id, "admin:read", "api:read")
    assert (await key.post("/v1/chat/completions", json=CHAT, headers=OUTSIDE)).status_code == 200
    assert (await put(tenant, enabled=True, cidrs=HERE)).status_code == 200
    refused = await key.post("/v1/chat/completions", json=CHAT, headers=OUTSIDE)
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "ip_not_allowed")
    # A request from outside is counted, so that a stolen key cannot be tried without limit.
    assert int(refused.headers["X-RateLimit-Remaining"]) < int(refused.headers["X-RateLimit-Limit"])
    for client in (key, machine, tenant.admin.client):
        assert (await client.get("/v1/models", headers=OUTSIDE)).status_code == 403
    for client in (machine, tenant.admin.client):
        administered = await client.get(BASE, headers=OUTSIDE)
        assert (administered.status_code, administered.json()["error"]) == (403, "forbidden")
        assert (await client.get(BASE)).status_code == 200
    assert (await key.post("/v1/chat/completions", json=CHAT)).status_code == 200
    assert (await other_tenant.admin.client.get(BASE, headers=OUTSIDE)).status_code == 200
    assert (await put(tenant, enabled=False)).status_code == 200
    assert (await key.post("/v1/chat/completions", json=CHAT, headers=OUTSIDE)).status_code == 200


@pytest.mark.usefixtures("behind_a_proxy")
@pytest.mark.parametrize("address", ["2001:db8::7", "2001:0DB8:0:0::7", "::ffff:192.0.2.9", "192.0.2.9:4711"])
async def test_ipv4_and_ipv6_addresses_are_admitted(tenant: Tenant, address: str) -> None:
    await put(tenant, enabled=True, cidrs=[*HERE, "2001:db8::/32", "192.0.2.0/24"])
    assert (await tenant.admin.client.get(BASE, headers={"X-Forwarded-For": address})).status_code == 200
    elsewhere = {"X-Forwarded-For": "2001:db9::7"}
    assert (await tenant.admin.client.get(BASE, headers=elsewhere)).status_code == 403


async def test_a_forged_forwarded_address_is_ignored(tenant: Tenant) -> None:
    await put(tenant, enabled=True, cidrs=[*HERE, "198.51.100.0/24"])
    assert (await tenant.admin.client.get(BASE, headers={"X-Forwarded-For": "203.0.113.1"})).status_code == 200
    lied = await tenant.admin.client.put(BASE, json={"cidrs": ["198.51.100.0/24"]}, headers=OUTSIDE)
    assert lied.status_code == 400


@pytest.mark.usefixtures("behind_a_proxy")
async def test_a_fresh_second_factor_bypasses_the_list_if_configured(platform: RunningPlatform, tenant: Tenant) -> None:
    fresh = await platform.new_person(tenant.id, "admin", mfa_at=time())
    stale = await platform.new_person(tenant.id, "admin", mfa_at=time() - 90_000)
    await put(tenant, enabled=True, cidrs=HERE)
    assert (await fresh.client.get(BASE, headers=OUTSIDE)).status_code == 403
    await put(tenant, bypass_for_mfa=True)
    assert (await fresh.client.get(BASE, headers=OUTSIDE)).status_code == 200
    assert (await fresh.client.get("/v1/models", headers=OUTSIDE)).status_code == 200
    key = platform.client(await platform.new_key(tenant.user))
    for client in (stale.client, tenant.admin.client, key):
        assert (await client.get("/v1/models", headers=OUTSIDE)).status_code == 403


@pytest.mark.usefixtures("behind_a_proxy")
async def test_with_the_bypass_a_step_up_is_possible_from_any_address(tenant: Tenant) -> None:
    await put(tenant, enabled=True, cidrs=HERE)
    refused = await tenant.user.client.post("/api/auth/mfa/verify", json={}, headers=OUTSIDE)
    assert (refused.status_code, "allowlist" in refused.text) == (403, True)
    await put(tenant, bypass_for_mfa=True)
    let_in = await tenant.user.client.post("/api/auth/mfa/verify", json={}, headers=OUTSIDE)
    assert "allowlist" not in let_in.text


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"cidrs": ["10.0.0.0/33"]}, "cidrs.0"),
        ({"cidrs": ["10.0.0.0/8", "nonsense"]}, "cidrs.1"),
        ({"cidrs": [5]}, "cidrs.0"),
        ({"cidrs": ["10.0.0.0/8"] * 1001}, "cidrs"),
        ({"cidrs": None}, "cidrs"),
        ({"enabled": "true"}, "enabled"),
        ({"bypass_for_mfa": None}, "bypass_for_mfa"),
        ({"surprise": 1}, "surprise"),
    ],
)
async def test_a_bad_field_is_named_in_details(tenant: Tenant, body: dict[str, Any], field: str) -> None:
    answer = await tenant.admin.client.put(BASE, json=body)
    assert (answer.status_code, answer.json()["error"]) == (422, "validation_error"), answer.text
    assert [fault["field"] for fault in answer.json()["details"]] == [field]


async def test_callers_without_the_right_are_refused(platform: RunningPlatform, tenant: Tenant) -> None:
    anonymous = await platform.anonymous.put(BASE, json={})
    assert (anonymous.status_code, anonymous.json()["error"]) == (401, "unauthorized")
    assert (await tenant.user.client.get(BASE)).status_code == 403
    for person in (tenant.user, tenant.auditor):
        answer = await person.client.put(BASE, json={})
        assert (answer.status_code, answer.json()["error"]) == (403, "forbidden")
