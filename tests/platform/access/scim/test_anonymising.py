"""A user whom the directory deletes is anonymized in the audit chain, which stays valid (docs/scim.md)."""

from uuid import UUID, uuid4

import psycopg
import pytest
from tests.platform.access.scim.conftest import Directory
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.foundation.storage import roles
from gatehouse.foundation.storage.roles import APP_ROLE, SERVICE_ROLE
from gatehouse.platform.access import anonymising as module
from gatehouse.platform.background.jobs import Tools
from gatehouse.platform.keeper import duties


@pytest.fixture
def tools(platform: RunningPlatform) -> Tools:
    host = platform.host
    return Tools(
        settings=host.settings, database=host.database, sealer=host.sealer, outbound=host.outbound, clock=host.clock,
        receivers=host.receivers,
    )  # fmt: skip


async def _new_user_with_events(platform: RunningPlatform, tenant: Tenant, directory: Directory) -> UUID:
    """Create a user named Ada, with events by and about the user. Return the user's id."""
    person = await platform.new_person(tenant.id)
    platform.sql("UPDATE users SET email = %s WHERE id = %s", [f"lovelace-{uuid4().hex}@example.test", person.id])
    await platform.new_key(person)
    await directory.patch(f"/Users/{person.id}", {"op": "replace", "path": "displayName", "value": "Ada"})
    await tenant.admin.client.post(f"/api/admin/users/{person.id}/password-reset")
    return person.id


async def test_the_chain_is_anonymized_and_stays_valid(
    platform: RunningPlatform, tenant: Tenant, directory: Directory, tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A small batch size, so that there are several rounds.
    monkeypatch.setattr(module, "_MAX_EVENTS_PER_BATCH", 2)
    person = await _new_user_with_events(platform, tenant, directory)
    await directory.call("DELETE", f"/Users/{person}", expect=204)
    before = platform.sql("SELECT count(*) FROM audit_events WHERE tenant_id = %s", [tenant.id])
    await module.anonymise(tools, tenant_id=tenant.id, user_id=str(person))
    query = "SELECT * FROM audit_events WHERE tenant_id = %s"
    rows = platform.sql(query, [tenant.id])
    assert before == [(len(rows),)]
    result = str(rows)
    assert not [word for word in ("lovelace-", "@example.test", "'Ada'") if word in result]
    assert platform.sql(f"{query} AND actor_id = %s", [tenant.id, str(person)]) == []
    assert platform.breaks(tenant) == []


async def test_events_of_other_users_are_not_anonymized(
    platform: RunningPlatform, tenant: Tenant, directory: Directory, tools: Tools
) -> None:
    person = await _new_user_with_events(platform, tenant, directory)
    await tenant.admin.client.post("/api/admin/groups", json={"name": "unrelated"})
    await directory.call("DELETE", f"/Users/{person}", expect=204)
    await module.anonymise(tools, tenant_id=tenant.id, user_id=str(person))
    (reset,) = await platform.audit(tenant, "user.password_reset_issued")
    assert (reset["actor_id"], reset["details"], reset["salt"]) == (str(tenant.admin.id), {}, None)
    assert reset["ip"] is not None
    (created,) = await platform.audit(tenant, "api_key.created")
    assert (created["actor_id"], created["ip"], created["salt"]) == (None, None, None)
    (group,) = await platform.audit(tenant, "group.created")
    assert group["details"]["name"] == "unrelated"
    assert group["salt"] is not None


async def test_a_removal_queues_the_job_at_once_and_for_late_events(
    platform: RunningPlatform, tenant: Tenant, directory: Directory
) -> None:
    created = await directory.user()
    await directory.call("DELETE", f"/Users/{created['id']}", expect=204)
    queued = platform.sql(
        "SELECT org_id, run_at <= now() FROM jobs WHERE kind = 'access.anonymise' AND args->>'user_id' = %s"
        " ORDER BY run_at",
        [created["id"]],
    )
    assert [at_once for _, at_once in queued] == [True, False, False]
    assert queued[0][0] == tenant.id
    assert module.__name__ in duties.MODULES


@pytest.mark.parametrize("anonymise", [False, True])
async def test_an_administrator_anonymizes_a_user_only_on_request(
    platform: RunningPlatform, tenant: Tenant, directory: Directory, tools: Tools, anonymise: bool
) -> None:
    person = await _new_user_with_events(platform, tenant, directory)
    query = {"anonymise": "true"} if anonymise else {}
    removed = await tenant.admin.client.delete(f"/api/admin/users/{person}", params=query)
    assert removed.status_code == 204
    queued = "SELECT count(*) FROM jobs WHERE kind = 'access.anonymise' AND args->>'user_id' = %s"
    assert platform.sql(queued, [str(person)]) == [(3 if anonymise else 0,)]
    if anonymise:
        await module.anonymise(tools, tenant_id=tenant.id, user_id=str(person))
    (event,) = await platform.audit(tenant, "user.deleted")
    assert (event["actor_id"], event["resource_id"]) == (str(tenant.admin.id), str(person))
    assert ("email" in event["details"]) is not anonymise
    (created,) = await platform.audit(tenant, "api_key.created")
    assert created["actor_id"] == (None if anonymise else str(person))
    assert platform.breaks(tenant) == []


async def test_a_refused_removal_anonymizes_nobody(platform: RunningPlatform, tenant: Tenant) -> None:
    refused = await tenant.admin.client.delete(f"/api/admin/users/{tenant.admin.id}", params={"anonymise": "true"})
    assert refused.status_code == 409
    queued = "SELECT count(*) FROM jobs WHERE args->>'user_id' = %s"
    assert platform.sql(queued, [str(tenant.admin.id)]) == [(0,)]


async def test_an_existing_user_cannot_be_anonymized(platform: RunningPlatform, tenant: Tenant) -> None:
    statement = "SELECT gatehouse_anonymise(%s, %s, 10)"
    url = platform.installed.url
    with roles.connect(url, SERVICE_ROLE) as service, pytest.raises(psycopg.errors.RaiseException):
        service.execute(statement, [tenant.id, tenant.user.id])
    with roles.connect(url, APP_ROLE) as administration, pytest.raises(psycopg.errors.InsufficientPrivilege):
        administration.execute(statement, [tenant.id, uuid4()])
