"""Maintenance mode (docs/operations.md)."""

import asyncio
from collections.abc import AsyncIterator

import httpx2
import pytest
from tests.support.platform import Person, RunningPlatform, Tenant

from gatehouse.platform.changes.change import DEFAULT_TENANT

PATH = "/api/admin/system/maintenance"
MAINTENANCE_ERROR = {"error": "maintenance_mode", "message": "Back at noon."}


def chat(model: str) -> dict[str, object]:
    return {"model": model, "messages": [{"role": "user", "content": "hi"}]}


@pytest.fixture
async def operator(platform: RunningPlatform) -> AsyncIterator[Person]:
    person = await platform.operator()
    yield person
    await person.client.post(PATH, json={"enabled": False})


async def enable_maintenance(operator: Person, seconds: int = 0) -> httpx2.Response:
    body = {"enabled": True, "message": "Back at noon.", "drain_timeout_seconds": seconds}
    return await operator.client.post(PATH, json=body)


async def test_new_requests_are_refused_on_every_path_during_maintenance(
    platform: RunningPlatform, tenant: Tenant, operator: Person
) -> None:
    answer = await enable_maintenance(operator)
    assert answer.status_code == 200
    body = answer.json()
    assert set(body) == {"maintenance_enabled", "enabled_at", "message", "active_requests_drained"}
    assert (body["maintenance_enabled"], body["message"]) == (True, "Back at noon.")
    assert body["enabled_at"]
    calls = [
        tenant.admin.client.post("/v1/chat/completions", json=chat("sandbox/echo")),
        tenant.admin.client.post("/v1/messages", json=chat("sandbox/echo")),
        tenant.admin.client.get("/v1/models"),
        tenant.admin.client.get("/api/admin/config"),
        tenant.admin.client.get("/api/v1/admin/org/feature-flags"),
        platform.anonymous.get("/api/auth/api-keys"),
        platform.anonymous.get("/nowhere"),
    ]
    for refused in await asyncio.gather(*calls):
        assert (refused.status_code, refused.json()) == (503, MAINTENANCE_ERROR), refused.request.url
        assert int(refused.headers["Retry-After"]) > 0
        assert refused.headers["X-Request-Id"]
    disabled = await operator.client.post(PATH, json={"enabled": False})
    assert disabled.json() == {
        "maintenance_enabled": False, "enabled_at": None, "message": None, "active_requests_drained": 0,
    }  # fmt: skip
    assert (await tenant.admin.client.get("/v1/models")).status_code == 200


async def test_probes_work_during_maintenance_and_readiness_reports_it(
    platform: RunningPlatform, operator: Person
) -> None:
    await enable_maintenance(operator)
    assert (await platform.anonymous.get("/api/health/live")).status_code == 200
    assert (await platform.anonymous.get("/metrics")).status_code == 200
    ready = await platform.anonymous.get("/api/health/ready")
    assert (ready.status_code, ready.json()["failing_checks"]) == (503, ["maintenance"])
    # The load balancer must keep sending traffic to this worker: it returns the maintenance message, and operators end
    # maintenance through it.
    assert (await platform.anonymous.get("/api/health/ready?for=traffic")).status_code == 200
    assert (await operator.client.get("/api/admin/system/health")).status_code == 200


async def test_jwks_and_token_endpoints_work_during_maintenance(platform: RunningPlatform, operator: Person) -> None:
    oauth_client = (
        await operator.client.post("/api/admin/oauth-clients/", json={"name": "m", "scopes": ["api:read"]})
    ).json()
    await enable_maintenance(operator)
    for path in ("/.well-known/jwks.json", "/.well-known/openid-configuration", "/api/saml/metadata"):
        # If PUBLIC_URL is not set, the SAML metadata endpoint returns a different error.
        assert (await platform.anonymous.get(path)).json().get("error") != "maintenance_mode", path
    form = {
        "grant_type": "client_credentials",
        "client_id": oauth_client["client_id"],
        "client_secret": oauth_client["client_secret"],
    }
    assert (await platform.anonymous.post("/oauth/token", data=form)).status_code == 200


async def test_maintenance_waits_for_calls_in_progress(platform: RunningPlatform, operator: Person) -> None:
    client = platform.client(await platform.new_key(operator))
    platform.sql(
        "INSERT INTO model_configs (id, tenant_id, provider, model_id) VALUES (gen_random_uuid(), %s, 'sandbox',"
        " 'slow-1500ms') ON CONFLICT DO NOTHING",
        [DEFAULT_TENANT],
    )
    platform.touch("policy", DEFAULT_TENANT)
    await platform.refresh()
    call = asyncio.create_task(client.post("/v1/chat/completions", json=chat("sandbox/slow-1500ms")))
    while not platform.host.node.report()["active"]:
        await asyncio.sleep(0.01)
    closing = asyncio.create_task(enable_maintenance(operator, 20))
    done, _ = await asyncio.wait({call, closing}, return_when=asyncio.FIRST_COMPLETED)
    assert done == {call}
    assert call.result().status_code == 200
    assert (await closing).json()["active_requests_drained"] == 1


async def test_the_wait_for_calls_has_a_timeout(platform: RunningPlatform, operator: Person) -> None:
    platform.sql(
        "INSERT INTO nodes (id, name, pid, host, revision, status) VALUES (gen_random_uuid(), 'busy', 1, 'elsewhere',"
        " 1000000000, '{\"active\": 3}')"
    )
    try:
        answer = await enable_maintenance(operator, 1)
    finally:
        platform.sql("DELETE FROM nodes WHERE name = 'busy'")
    assert (answer.status_code, answer.json()["active_requests_drained"]) == (200, 0)


async def test_maintenance_waits_for_workers_that_may_still_accept_requests(
    platform: RunningPlatform, operator: Person
) -> None:
    platform.sql("INSERT INTO nodes (id, name, pid, host) VALUES (gen_random_uuid(), 'behind', 1, 'elsewhere')")
    try:
        closing = asyncio.create_task(enable_maintenance(operator, 20))
        # A change waits at most `PROPAGATION_TIMEOUT_SECONDS` (2 seconds) for confirmations. Sleep longer than that.
        await asyncio.sleep(3.5)
        assert not closing.done()
        platform.sql("UPDATE nodes SET revision = 1000000000, seen_at = now() WHERE name = 'behind'")
        answer = await asyncio.wait_for(closing, 3)
    finally:
        platform.sql("DELETE FROM nodes WHERE name = 'behind'")
    assert (answer.status_code, answer.json()["active_requests_drained"]) == (200, 0)


async def test_worker_without_heartbeat_is_skipped_and_its_calls_are_not_counted(
    platform: RunningPlatform, operator: Person
) -> None:
    insert = "INSERT INTO nodes (id, name, pid, host, revision, status, seen_at) VALUES (gen_random_uuid(), 'silent', 1"
    platform.sql(f"{insert}, 'elsewhere', 1000000000, '{{\"active\": 3}}', now() - interval '14 seconds')")
    try:
        answer = await asyncio.wait_for(enable_maintenance(operator, 20), 6)
    finally:
        platform.sql("DELETE FROM nodes WHERE name = 'silent'")
    assert (answer.status_code, answer.json()["active_requests_drained"]) == (200, 0)


async def test_a_second_call_changes_only_the_message(operator: Person) -> None:
    first = (await enable_maintenance(operator)).json()
    body = {"enabled": True, "message": "Back at two.", "drain_timeout_seconds": 0}
    second = (await operator.client.post(PATH, json=body)).json()
    assert (second["message"], second["enabled_at"]) == ("Back at two.", first["enabled_at"])


async def test_maintenance_is_recorded_in_the_audit_log(platform: RunningPlatform, operator: Person) -> None:
    await enable_maintenance(operator)
    await operator.client.post(PATH, json={"enabled": False})
    for action in ("maintenance.enabled", "maintenance.disabled"):
        event = (await platform.audit(DEFAULT_TENANT, action))[-1]
        assert event["actor_id"] == str(operator.id)


async def test_a_worker_that_starts_during_maintenance_refuses_requests(
    platform: RunningPlatform, operator: Person
) -> None:
    await enable_maintenance(operator)
    async with RunningPlatform.start(platform.installed.settings) as restarted:
        assert (await restarted.anonymous.get("/v1/models")).json() == MAINTENANCE_ERROR
        client = restarted.client(operator.token)
        assert (await client.post(PATH, json={"enabled": False})).status_code == 200


async def test_only_operators_with_a_valid_body_change_maintenance(
    platform: RunningPlatform, tenant: Tenant, operator: Person
) -> None:
    body = {"enabled": True}
    anonymous = await platform.anonymous.post(PATH, json=body)
    assert (anonymous.status_code, anonymous.json()["error"]) == (401, "unauthorized")
    organization_client = await platform.new_m2m(tenant.id, "admin:write")
    for client in (tenant.admin.client, tenant.auditor.client, tenant.user.client, organization_client):
        refused = await client.post(PATH, json=body)
        assert (refused.status_code, refused.json()["error"]) == (403, "forbidden")
    for bad, field in [
        ({}, "enabled"),
        ({"enabled": "true"}, "enabled"),
        ({"enabled": True, "drain_timeout_seconds": -1}, "drain_timeout_seconds"),
        ({"enabled": True, "message": 5}, "message"),
    ]:
        answer = await operator.client.post(PATH, json=bad)
        assert (answer.status_code, answer.json()["details"][0]["field"]) == (422, field)
    assert platform.host.replica.maintenance is None


async def test_administrators_and_auditors_read_whether_maintenance_is_on(
    platform: RunningPlatform, tenant: Tenant, operator: Person
) -> None:
    off = {"maintenance_enabled": False, "enabled_at": None, "message": None}
    assert (await tenant.admin.client.get(PATH)).json() == off
    maintenance = (await enable_maintenance(operator)).json()
    for person in (tenant.admin, tenant.auditor, operator):
        answer = await person.client.get(PATH)
        assert answer.status_code == 200
        assert answer.json() == {name: maintenance[name] for name in off}
    assert (await tenant.user.client.get(PATH)).status_code == 403
    assert (await platform.anonymous.get(PATH)).status_code == 401
    await operator.client.post(PATH, json={"enabled": False})
    assert (await tenant.admin.client.get(PATH)).json() == off


async def test_of_two_operators_the_second_does_not_overwrite_the_first_ones_message(
    platform: RunningPlatform, operator: Person
) -> None:
    await operator.client.post(PATH, json={"enabled": False})
    if_off = {"If-Match": (await operator.client.get(PATH)).headers["ETag"]}
    first = {"enabled": True, "message": "Back at noon.", "drain_timeout_seconds": 0}
    answer = await operator.client.post(PATH, json=first, headers=if_off)
    assert answer.status_code == 200
    shown = await operator.client.get(PATH)
    assert shown.headers["ETag"] == answer.headers["ETag"] != if_off["If-Match"]

    second = {**first, "message": "Back at two."}
    refused = await operator.client.post(PATH, json=second, headers=if_off)
    assert (refused.status_code, refused.json()["error"]) == (412, "precondition_failed")
    assert (await operator.client.get(PATH)).json()["message"] == "Back at noon."
    assert platform.host.replica.maintenance is not None
    assert platform.host.replica.maintenance.message == "Back at noon."
    again = await operator.client.post(PATH, json=second, headers={"If-Match": shown.headers["ETag"]})
    assert (again.status_code, again.json()["message"]) == (200, "Back at two.")


async def test_the_state_has_a_version_before_the_first_maintenance(
    platform: RunningPlatform, tenant: Tenant, operator: Person
) -> None:
    platform.sql("DELETE FROM platform_state WHERE key = 'maintenance'")
    version = {"If-Match": (await tenant.auditor.client.get(PATH)).headers["ETag"]}
    body = {"enabled": True, "drain_timeout_seconds": 0}
    results = await asyncio.gather(*(operator.client.post(PATH, json=body, headers=version) for _ in range(3)))
    assert sorted(result.status_code for result in results) == [200, 412, 412]
    # A caller without the right is refused before the version is checked.
    assert (await tenant.admin.client.post(PATH, json=body, headers={"If-Match": '"x"'})).status_code == 403
