"""Organizations are created on the platform (docs/portal.md, Organizations). The platform runs in processes of its own
and is unavailable for a while. The portal's tables are in the same database as the platform's."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any
from uuid import UUID, uuid4

import httpx2
import pytest
from tests.support.portal import ADMIN_KEY, MASTER_KEY, RunningPortal
from tests.support.server import GatehouseServer

from gatehouse.foundation.settings import BadSettings
from gatehouse.portal.jobs import MAX_ATTEMPTS
from gatehouse.portal.settings import PortalSettings

BASE = "/v1/orgs"


@pytest.fixture(scope="module")
def server() -> Iterator[GatehouseServer]:
    with GatehouseServer() as running:
        yield running


@pytest.fixture(scope="module")
def settings(server: GatehouseServer, tmp_path_factory: pytest.TempPathFactory) -> PortalSettings:
    key = server.key
    server.settled()
    created = httpx2.post(
        f"{server.url}/api/admin/oauth-clients/",
        json={"name": "the portal", "tenant_id": None, "scopes": ["admin:write"]},
        headers={"X-API-Key": key},
    )
    assert created.status_code == 201, created.text
    return PortalSettings.from_environment(
        {
            "GATEHOUSE_HOME": str(tmp_path_factory.mktemp("portal")),
            "GATEHOUSE_MASTER_KEY": MASTER_KEY,
            "PORTAL_DATABASE_URL": server.database_url,
            "PORTAL_ADMIN_API_KEY": ADMIN_KEY,
            "PLATFORM_URL": server.url,
            "PLATFORM_CLIENT_ID": created.json()["client_id"],
            "PLATFORM_CLIENT_SECRET": created.json()["client_secret"],
            "TRUSTED_PROXIES": "127.0.0.0/8",
        }
    )


@pytest.fixture(scope="module")
async def portal(settings: PortalSettings) -> AsyncIterator[RunningPortal]:
    async with RunningPortal.start(settings) as running:
        yield running


def new(**more: Any) -> dict[str, Any]:
    return {"name": "Analytical Engines", "slug": f"o-{uuid4().hex[:12]}", "plan_tier": "starter", **more}


async def made(portal: RunningPortal, **more: Any) -> dict[str, Any]:
    answer = await portal.admin.post(BASE, json=new(**more))
    assert answer.status_code == 201, answer.text
    body: dict[str, Any] = answer.json()
    return body


def status(portal: RunningPortal, org_id: str) -> str:
    return str(portal.sql("SELECT provisioning_status FROM organizations WHERE id = %s", [org_id])[0][0])


async def until(portal: RunningPortal, org_id: str, expected: str, *, patience: float = 60.0) -> None:
    deadline = time.monotonic() + patience
    while status(portal, org_id) != expected:
        assert time.monotonic() < deadline, portal.sql("SELECT * FROM jobs WHERE org_id = %s", [org_id])
        await asyncio.sleep(0.05)


async def settled(portal: RunningPortal, org_id: str, *, patience: float = 60.0) -> None:
    """Returns when the organization has no unfinished jobs."""
    deadline = time.monotonic() + patience
    while unfinished := portal.sql(
        "SELECT * FROM jobs WHERE org_id = %s AND status IN ('queued', 'running')", [org_id]
    ):
        assert time.monotonic() < deadline, unfinished
        await asyncio.sleep(0.05)


def now(portal: RunningPortal, org_id: str) -> None:
    """Makes waiting jobs run immediately."""
    portal.sql("UPDATE jobs SET run_at = now() WHERE org_id = %s AND status = 'queued'", [org_id])
    portal.host.jobs.wake()


def called(server: GatehouseServer, key: str) -> httpx2.Response:
    return httpx2.get(f"{server.url}/api/admin/users", headers={"X-API-Key": key})


async def test_an_organization_is_provisioned_with_its_owner_and_their_key(
    portal: RunningPortal, server: GatehouseServer
) -> None:
    email = f"ada-{uuid4().hex[:8]}@example.test"
    created = await made(portal, plan_tier="business", contact_email=email)
    org_id = created["org"]["id"]
    await until(portal, org_id, "active")
    ((slug, plan, limit),) = server.sql("SELECT slug, plan, monthly_request_limit FROM tenants WHERE id = %s", [org_id])
    assert (slug, plan, limit) == (created["org"]["slug"], "business", 1_000_000)
    users = called(server, created["api_key"]).json()["items"]
    assert [(user["email"], user["role"]) for user in users] == [(email, "admin")]
    bound = portal.sql("SELECT platform_sub, platform_tenant_id, accepted_at FROM members WHERE org_id = %s", [org_id])
    assert bound == [(users[0]["id"], UUID(org_id), None)]
    (row,) = portal.audit(UUID(org_id), "organization.provisioned")
    assert row["actor_type"] == "system"
    repeated = await portal.admin.post(f"{BASE}/{org_id}/provision")
    assert (repeated.status_code, repeated.json()["error"]) == (409, "conflict")


async def test_without_a_contact_the_key_belongs_to_a_service_account(
    portal: RunningPortal, server: GatehouseServer
) -> None:
    created = await made(portal)
    await until(portal, created["org"]["id"], "active")
    (user,) = called(server, created["api_key"]).json()["items"]
    assert (user["kind"], user["role"]) == ("service", "admin")


async def test_a_new_plan_takes_effect_on_the_platform(portal: RunningPortal, server: GatehouseServer) -> None:
    org_id = (await made(portal))["org"]["id"]
    await until(portal, org_id, "active")
    await portal.admin.patch(f"{BASE}/{org_id}", json={"plan_tier": "enterprise"})
    await settled(portal, org_id)
    assert server.sql("SELECT plan, monthly_request_limit FROM tenants WHERE id = %s", [org_id]) == [
        ("enterprise", None)
    ]


async def test_a_cancelled_organizations_tenant_is_deleted(portal: RunningPortal, server: GatehouseServer) -> None:
    created = await made(portal)
    org_id = created["org"]["id"]
    await until(portal, org_id, "active")
    assert (await portal.admin.delete(f"{BASE}/{org_id}")).status_code == 204
    await settled(portal, org_id)
    assert called(server, created["api_key"]).status_code == 401
    ((deleted_at,),) = server.sql("SELECT deleted_at FROM tenants WHERE id = %s", [org_id])
    assert deleted_at is not None


async def test_an_organization_adopts_a_named_tenant(portal: RunningPortal, server: GatehouseServer) -> None:
    tenant_id, slug = uuid4(), f"t-{uuid4().hex[:8]}"
    there = httpx2.post(
        f"{server.url}/v1/platform/tenants",
        json={"id": str(tenant_id), "slug": slug, "name": "There before"},
        headers={"X-API-Key": server.key},
    )
    assert there.status_code == 201
    created = await made(portal, tenant_id=str(tenant_id), plan_tier="business")
    await until(portal, created["org"]["id"], "active")
    assert server.sql("SELECT slug, plan FROM tenants WHERE id = %s", [tenant_id]) == [(slug, "business")]
    assert called(server, created["api_key"]).status_code == 200


async def test_a_refused_provisioning_has_failed_until_it_is_retried(
    portal: RunningPortal, server: GatehouseServer
) -> None:
    slug = f"t-{uuid4().hex[:8]}"
    server.sql("INSERT INTO tenants (id, slug, name) VALUES (%s, %s, 'x')", [uuid4(), slug])
    created = await made(portal, slug=slug)
    org_id = created["org"]["id"]
    await until(portal, org_id, "failed")
    ((error,),) = portal.sql("SELECT error FROM jobs WHERE id = %s", [created["provisioning_job_id"]])
    assert error.startswith("409: slug")
    assert len(portal.audit(UUID(org_id), "organization.provisioning_failed")) == 1
    notified = "SELECT type, severity, subject_id, resolved_at IS NULL FROM notifications WHERE org_id = %s"
    assert portal.sql(notified, [org_id]) == [("provisioning_failed", "critical", UUID(org_id), True)]
    server.sql("UPDATE tenants SET slug = slug || '-old' WHERE slug = %s", [slug])
    answer = await portal.admin.post(f"{BASE}/{org_id}/provision")
    assert (answer.status_code, answer.json()["org"]["provisioning_status"]) == (202, "provisioning")
    await until(portal, org_id, "active")
    assert portal.sql(notified, [org_id]) == [("provisioning_failed", "critical", UUID(org_id), False)]


async def test_a_lost_response_creates_no_duplicates(portal: RunningPortal, server: GatehouseServer) -> None:
    """The portal is killed after the platform has processed all calls."""
    created = await made(portal)
    org_id = created["org"]["id"]
    await until(portal, org_id, "active")
    await settled(portal, org_id)
    portal.sql(
        "UPDATE organizations SET provisioning_status = 'provisioning', tenant_id = NULL WHERE id = %s", [org_id]
    )
    portal.sql(
        "UPDATE jobs SET status = 'running', leased_until = now() WHERE id = %s", [created["provisioning_job_id"]]
    )
    await until(portal, org_id, "active")
    assert server.sql("SELECT count(*) FROM users WHERE tenant_id = %s", [org_id]) == [(1,)]
    assert server.sql("SELECT count(*) FROM api_keys WHERE tenant_id = %s", [org_id]) == [(1,)]


async def test_jobs_continue_after_the_platform_was_unavailable(portal: RunningPortal, server: GatehouseServer) -> None:
    before = (await made(portal))["org"]["id"]
    await until(portal, before, "active")
    cancelled = (await made(portal))["org"]["id"]
    await until(portal, cancelled, "active")
    # A job that loses the database at its end occupies the lane of its organization until its lease expires.
    for item in (before, cancelled):
        await settled(portal, item)
    assert server.stop() == 0
    server.stop_database()
    try:
        server.start_database()  # the portal's, too
        created = await made(portal)
        org_id = created["org"]["id"]
        changed = await portal.admin.patch(f"{BASE}/{before}", json={"plan_tier": "enterprise"})
        assert changed.status_code == 200, changed.text
        assert (await portal.admin.delete(f"{BASE}/{cancelled}")).status_code == 204
        deadline = time.monotonic() + 60
        org_ids = [[org_id, before, cancelled]]
        retried_jobs = "SELECT count(*) FROM jobs WHERE org_id = ANY(%s) AND status = 'queued' AND attempts > 1"
        while portal.sql(retried_jobs, org_ids) != [(3,)]:
            assert time.monotonic() < deadline, portal.sql("SELECT * FROM jobs WHERE org_id = ANY(%s)", org_ids)
            await asyncio.sleep(0.1)
        assert status(portal, org_id) == "provisioning"
        ((error, pause),) = portal.sql(
            "SELECT error, run_at - updated_at FROM jobs WHERE id = %s", [created["provisioning_job_id"]]
        )
        assert error == "connect_failed"
        assert pause.total_seconds() > 3
    finally:
        server.start()
    for item in (org_id, before, cancelled):
        now(portal, item)
        await settled(portal, item)
    assert status(portal, org_id) == "active"
    assert called(server, created["api_key"]).status_code == 200
    assert server.sql("SELECT plan FROM tenants WHERE id = %s", [before]) == [("enterprise",)]
    assert server.sql("SELECT deleted_at IS NULL FROM tenants WHERE id = %s", [cancelled]) == [(False,)]


async def test_provisioning_has_failed_after_the_last_attempt(settings: PortalSettings, portal: RunningPortal) -> None:
    """A secret that the platform refuses may be corrected. So the job is retried, and fails after the last attempt."""
    wrong = settings.model_copy(update={"platform_client_secret": settings.gatehouse_master_key})
    portal.host.platform._secret, right = wrong.platform_client_secret, portal.host.platform._secret
    portal.host.platform._token_until = 0.0
    try:
        created = await made(portal)
        org_id, job_id = created["org"]["id"], created["provisioning_job_id"]
        deadline = time.monotonic() + 60
        while portal.sql("SELECT attempts FROM jobs WHERE id = %s AND status = 'queued'", [job_id]) in ([], [(0,)]):
            assert time.monotonic() < deadline
            await asyncio.sleep(0.05)
        assert status(portal, org_id) == "provisioning"
        portal.sql("UPDATE jobs SET attempts = %s WHERE id = %s", [MAX_ATTEMPTS - 1, job_id])
        now(portal, org_id)
        await until(portal, org_id, "failed")
        ((error,),) = portal.sql("SELECT error FROM jobs WHERE id = %s", [job_id])
        assert error.startswith("no token for PLATFORM_CLIENT_ID: 401")
    finally:
        portal.host.platform._secret = right
    assert (await portal.admin.post(f"{BASE}/{org_id}/provision")).status_code == 202
    await until(portal, org_id, "active")


async def test_a_tenant_is_deleted_however_long_the_platform_was_unavailable(
    portal: RunningPortal, server: GatehouseServer
) -> None:
    """The keys of a cancelled organization must become invalid."""
    created = await made(portal)
    org_id = created["org"]["id"]
    await until(portal, org_id, "active")
    platform = portal.host.platform
    late = (
        "SELECT status, attempts, run_at - updated_at > interval '40 minutes' FROM jobs"
        " WHERE org_id = %s AND kind = 'org_deprovision'"
    )
    platform._base, base_url = "http://127.0.0.1:9", platform._base
    try:
        assert (await portal.admin.delete(f"{BASE}/{org_id}")).status_code == 204
        for attempts in (MAX_ATTEMPTS, 5000):
            portal.sql("UPDATE jobs SET attempts = %s WHERE org_id = %s AND status = 'queued'", [attempts, org_id])
            now(portal, org_id)
            deadline = time.monotonic() + 60
            while portal.sql(late, [org_id]) != [("queued", attempts + 1, True)]:
                assert time.monotonic() < deadline, portal.sql("SELECT * FROM jobs WHERE org_id = %s", [org_id])
                await asyncio.sleep(0.05)
    finally:
        platform._base = base_url
    now(portal, org_id)
    await settled(portal, org_id)
    assert called(server, created["api_key"]).status_code == 401


async def test_an_organization_cancelled_before_provisioning_leaves_nothing(
    portal: RunningPortal, server: GatehouseServer
) -> None:
    created = await made(portal)
    org_id = created["org"]["id"]
    assert (await portal.admin.delete(f"{BASE}/{org_id}")).status_code == 204
    await settled(portal, org_id)
    assert server.sql("SELECT 1 FROM tenants WHERE id = %s AND deleted_at IS NULL", [org_id]) == []
    assert called(server, created["api_key"]).status_code == 401


async def test_name_and_contact_reach_the_platform(portal: RunningPortal, server: GatehouseServer) -> None:
    email = f"ada-{uuid4().hex[:8]}@example.test"
    created = await made(portal, contact_email=email)
    org_id = created["org"]["id"]
    await until(portal, org_id, "active")
    query = "SELECT name, contact_email FROM tenants WHERE id = %s"
    assert server.sql(query, [org_id]) == [("Analytical Engines", email)]
    new_email = f"charles-{uuid4().hex[:8]}@example.test"
    changed = await portal.admin.patch(
        f"{BASE}/{org_id}", json={"name": "Difference Engines", "contact_email": new_email}
    )
    assert changed.status_code == 200, changed.text
    await settled(portal, org_id)
    assert server.sql(query, [org_id]) == [("Difference Engines", new_email)]
    token = (await portal.admin.post(f"{BASE}/{org_id}/tokens", json={})).json()["token"]
    renamed = await portal.client(token).patch(f"{BASE}/{org_id}/settings", json={"name": "Engines"})
    assert renamed.status_code == 200, renamed.text
    await settled(portal, org_id)
    assert server.sql(query, [org_id]) == [("Engines", new_email)]
    # The owner is a person and does not change.
    owner = portal.sql("SELECT email FROM members WHERE org_id = %s AND role = 'owner'", [org_id])
    assert owner == [(email,)]


async def test_an_unknown_tenant_is_refused(portal: RunningPortal) -> None:
    body = new(tenant_id=str(uuid4()))
    answer = await portal.admin.post(BASE, json=body)
    assert (answer.status_code, answer.json()["detail"].partition(":")[0]) == (422, "tenant_id")
    # The slug can still be used.
    assert (await portal.admin.post(BASE, json={**body, "tenant_id": None})).status_code == 201


async def test_a_plans_limit_of_scans_reaches_the_platform(
    portal: RunningPortal, settings: PortalSettings, server: GatehouseServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def limits(**by_plan: int) -> PortalSettings:
        """Returns the limits, including those that the portal of the other tests has sent: it uses the same database
        and also runs jobs."""
        monkeypatch.setattr(portal.host.platform, "scan_limits", by_plan)
        return settings.model_copy(update={"portal_scan_rate_limits": by_plan})

    query = "SELECT scan_rate_limit_rpm FROM tenants WHERE id = %s"
    async with RunningPortal.start(limits(starter=5, business=50)) as restarted:
        org_id = (await made(restarted))["org"]["id"]
        await until(portal, org_id, "active")
        assert server.sql(query, [org_id]) == [(5,)]
        for plan, limit in (("business", 50), ("enterprise", None)):
            await restarted.admin.patch(f"{BASE}/{org_id}", json={"plan_tier": plan})
            await settled(portal, org_id)
            assert server.sql(query, [org_id]) == [(limit,)]
    # A changed setting applies after the next start.
    async with RunningPortal.start(limits(enterprise=500)):
        deadline = time.monotonic() + 60
        while server.sql(query, [org_id]) != [(500,)]:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("text", ["starter", "starter=x", "free=5", "starter=0"])
def test_an_invalid_limit_of_a_plan_is_named(text: str) -> None:
    with pytest.raises(BadSettings, match="PORTAL_SCAN_RATE_LIMITS"):
        PortalSettings.from_environment({"PORTAL_SCAN_RATE_LIMITS": text})
