"""The policy bundle that an outpost downloads: its contents, and when it changes (docs/outpost-protocol.md)."""

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

import httpx2
import pytest
from tests.support.outposts import Outpost, Portal
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.foundation.jwt import SigningKey
from gatehouse.platform.operations.outposts import polling
from gatehouse.platform.publishing.snapshots import gather
from gatehouse.policy.bundles import signing
from gatehouse.policy.bundles.contents import PolicyBundle


async def taken(outpost: Outpost, answer: httpx2.Response) -> PolicyBundle:
    """Verify a bundle as an outpost does, with the keys that the platform publishes."""
    assert answer.status_code == 200, answer.text
    published = (await outpost.platform.anonymous.get("/.well-known/jwks.json")).json()["keys"]
    assert {entry["kid"] for entry in published} >= set(outpost.platform.host.replica.signing_keys)
    keys: dict[str, SigningKey] = outpost.platform.host.replica.signing_keys
    return signing.verify(answer.text, keys, outpost_id=outpost.id, now=time.time())


async def test_the_bundle_contains_the_policy_in_force(
    platform: RunningPlatform, tenant: Tenant, outpost: Outpost
) -> None:
    await platform.add_provider(tenant.id, "theirs", "openai", "m", base_url="https://models.test")
    platform.sql("UPDATE providers SET sealed_credentials = 'under-a-seal' WHERE tenant_id = %s", [tenant.id])
    group = (await tenant.admin.client.post("/api/admin/groups", json={"name": "g"})).json()["id"]
    override = {"entity_type": "email", "action": "BLOCK"}
    await tenant.admin.client.post(f"/api/admin/groups/{group}/dlp-overrides", json=override)
    answer = await outpost.bundle()
    bundle = await taken(outpost, answer)
    async with platform.host.database.service() as session:
        own = await gather(session, bundle.tenant_id)
    assert own is not None
    provider = own.providers[0]
    assert (provider.sealed_credentials, bundle.policy.providers[0].sealed_credentials) == (
        "under-a-seal",
        None,
    )
    assert (bundle.policy.models, bundle.policy.governance) == (own.models, own.governance)
    assert (bundle.policy.feature_flags, bundle.version) == (own.feature_flags, own.revision)
    assert (answer.headers["content-type"], answer.headers["cache-control"]) == ("application/jose", "no-store")
    assert 6 * 86_400 < bundle.expires_at - time.time() <= 7 * 86_400


async def test_the_bundle_contains_the_callers_and_no_secret(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant, outpost: Outpost
) -> None:
    key = await platform.new_key(tenant.user)
    theirs = await platform.new_key(other_tenant.user)
    machine = await tenant.admin.client.post("/api/admin/oauth-clients/", json={"name": "m", "scopes": ["chat:write"]})
    answer = await outpost.bundle()
    callers = (await taken(outpost, answer)).callers
    (entry,) = callers.keys
    assert (entry.digest, entry.user_id, entry.enabled) == (hashlib.sha256(key.encode()).digest(), tenant.user.id, True)
    people = {tenant.admin.id: "admin", tenant.auditor.id: "auditor", tenant.user.id: "user"}
    assert {user.id: user.role for user in callers.users} == people
    (client,) = callers.clients
    assert (str(client.client_id), client.scopes) == (machine.json()["client_id"], ("chat:write",))
    for secret in (key, theirs, machine.json()["client_secret"]):
        assert secret not in str(callers)


async def test_an_unchanged_bundle_is_not_sent_again(tenant: Tenant, outpost: Outpost) -> None:
    first = await outpost.bundle()
    again = await outpost.bundle(first.headers["etag"])
    assert (again.status_code, again.text, again.headers["etag"]) == (304, "", first.headers["etag"])
    several = await outpost.bundle(f'"0-{"0" * 64}", W/{first.headers["etag"]}')
    assert several.status_code == 304
    for other in ('"x"', "*", f'"1-{"f" * 64}"'):
        assert (await outpost.bundle(other)).status_code == 200


async def test_a_change_is_sent_to_waiting_outposts_with_a_higher_version(tenant: Tenant, outpost: Outpost) -> None:
    before = await outpost.bundle()
    waiting = asyncio.create_task(outpost.bundle(before.headers["etag"], wait=30))
    await asyncio.sleep(0.2)
    assert not waiting.done()
    began = time.monotonic()
    group = await tenant.admin.client.post("/api/admin/groups", json={"name": "g"})
    member = {"user_id": str(tenant.user.id)}
    await tenant.admin.client.post(f"/api/admin/groups/{group.json()['id']}/members", json=member)
    after = await waiting
    assert time.monotonic() - began < 5
    old, new = await taken(outpost, before), await taken(outpost, after)
    assert new.version > old.version
    assert {len(user.groups) for user in new.callers.users} == {0, 1}


Doing = Callable[[RunningPlatform, Tenant], Awaitable[object]]


async def _kill_switch(platform: RunningPlatform, tenant: Tenant) -> None:
    ((config_id,),) = platform.sql("SELECT id FROM model_configs WHERE tenant_id = %s", [tenant.id])
    path = f"/api/v1/admin/kill-switch/models/{config_id}/disable"
    assert (await tenant.admin.client.post(path, json={"reason": "other"})).status_code == 200


async def _key(platform: RunningPlatform, tenant: Tenant) -> None:
    await platform.new_key(tenant.user)


async def _user(platform: RunningPlatform, tenant: Tenant) -> None:
    answer = await tenant.admin.client.patch(f"/api/admin/users/{tenant.user.id}", json={"is_active": False})
    assert answer.status_code == 200, answer.text


async def _rule(platform: RunningPlatform, tenant: Tenant) -> None:
    rule = {"name": "x", "condition": "false", "action": "LOG"}
    assert (await tenant.admin.client.post("/api/admin/policies", json=rule)).status_code == 201


@pytest.mark.parametrize(
    ("doing", "part"),
    [
        (_kill_switch, lambda bundle: bundle.switched_off),
        (_key, lambda bundle: bundle.callers.keys),
        (_user, lambda bundle: [user.active for user in bundle.callers.users]),
        (_rule, lambda bundle: bundle.policy.governance.policy_rules),
    ],
)
async def test_every_change_that_affects_requests_wakes_waiting_outposts(
    platform: RunningPlatform, tenant: Tenant, outpost: Outpost, doing: Doing, part: Callable[[PolicyBundle], Any]
) -> None:
    await platform.add_provider(tenant.id, "sandbox", "sandbox", "echo")
    before = await outpost.bundle()
    waiting = asyncio.create_task(outpost.bundle(before.headers["etag"], wait=30))
    await asyncio.sleep(0.1)
    await doing(platform, tenant)
    after = await waiting
    assert part(await taken(outpost, after)) != part(await taken(outpost, before))


async def test_changes_that_do_not_affect_outposts_wake_nobody(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant, outpost: Outpost
) -> None:
    etag = (await outpost.bundle()).headers["etag"]
    waiting = asyncio.create_task(outpost.bundle(etag, wait=2))
    await asyncio.sleep(0.1)
    platform.touch("policy", tenant.id)
    await platform.new_key(other_tenant.user)
    await platform.refresh()
    assert (await waiting).status_code == 304


async def test_a_newer_version_of_another_worker_is_never_followed_by_an_older_one(
    platform: RunningPlatform, tenant: Tenant, outpost: Outpost
) -> None:
    """The outpost received a change from another worker that this worker has not received yet."""
    first = await outpost.bundle()
    platform.sql("UPDATE tenants SET timezone = 'Europe/Berlin' WHERE id = %s", [tenant.id])
    ((head,),) = platform.sql("SELECT revision FROM revision_head")
    stale = await outpost.bundle(f'"{head + 1}-{"0" * 64}"')
    assert stale.status_code == 200
    assert (await taken(outpost, stale)).policy.timezone == "Europe/Berlin"
    assert stale.headers["etag"] != first.headers["etag"]


async def test_an_unknown_version_confirms_nothing(platform: RunningPlatform, tenant: Tenant, outpost: Outpost) -> None:
    """This matters for a platform that was restored to an earlier state. Otherwise a kill switch would seem applied
    although the outpost refuses the older policy."""
    (revision,) = platform.sql("SELECT revision FROM revision_head")[0]
    report = "/api/v1/admin/kill-switch/propagation"
    for claimed_revision, known in ((revision + 1000, 0), (revision, revision)):
        answer = await outpost.bundle(f'"{claimed_revision}-{"0" * 64}"')
        assert answer.status_code == 200, answer.text
        async with asyncio.timeout(60):
            while True:
                seen = (await tenant.admin.client.get(report)).json()["outposts"]
                if [item["version"] for item in seen if item["outpost_id"] == str(outpost.id)] == [known]:
                    break
                await asyncio.sleep(0.05)
    confirmed = platform.sql("SELECT version FROM outpost_confirmations WHERE outpost_id = %s", [outpost.id])
    assert confirmed == [(revision,)]


async def test_an_unchanged_bundle_is_sent_again_every_day(outpost: Outpost, monkeypatch: pytest.MonkeyPatch) -> None:
    first = await outpost.bundle()
    later = time.time() + 86_400
    monkeypatch.setattr(outpost.platform.host, "clock", _At(later))
    assert (await outpost.bundle(first.headers["etag"])).status_code == 200


class _At:
    def __init__(self, moment: float) -> None:
        self.now = lambda: moment
        self.monotonic = time.monotonic


async def test_each_outpost_of_an_organization_gets_its_own_bundle(
    portal: Portal, tenant: Tenant, outpost: Outpost
) -> None:
    second = await portal.enrol(tenant.id)
    one, two = await outpost.bundle(), await second.bundle()
    assert one.headers["etag"] != two.headers["etag"]
    assert (await taken(outpost, one)).policy == (await taken(second, two)).policy
    with pytest.raises(signing.BundleRefused):
        await taken(second, one)


async def test_calls_are_refused_while_the_flag_is_off(portal: Portal, tenant: Tenant) -> None:
    outpost = await portal.enrol(tenant.id, enabled=False)
    refused = await outpost.bundle()
    assert (refused.status_code, refused.json()["error"]) == (403, "outposts_disabled")
    path = "/api/v1/admin/org/feature-flags/outpost_enabled"
    assert (await tenant.admin.client.patch(path, json={"enabled": True})).status_code == 200
    answer = await outpost.bundle()
    assert answer.status_code == 200
    waiting = asyncio.create_task(outpost.bundle(answer.headers["etag"], wait=30))
    await asyncio.sleep(0.1)
    assert (await tenant.admin.client.patch(path, json={"enabled": False})).status_code == 200
    assert (await waiting).status_code == 403


@pytest.mark.parametrize("wait", [-1, 56])
async def test_a_bad_wait_is_named(outpost: Outpost, wait: int) -> None:
    answer = await outpost.bundle(wait=wait)
    assert answer.status_code == 422
    assert [fault["field"] for fault in answer.json()["details"]] == ["wait"]


async def test_an_outpost_over_the_limit_of_waiters_gets_a_retry_after(
    portal: Portal, tenant: Tenant, outpost: Outpost, monkeypatch: pytest.MonkeyPatch
) -> None:
    second = await portal.enrol(tenant.id)
    monkeypatch.setattr(polling, "MAX_WAITING_OUTPOSTS_PER_TENANT", 1)
    known, other = (await outpost.bundle()).headers["etag"], (await second.bundle()).headers["etag"]
    first = asyncio.create_task(outpost.bundle(known, wait=2))
    await asyncio.sleep(0.2)
    turned_away = await second.bundle(other, wait=30)
    assert (turned_away.status_code, turned_away.headers["retry-after"]) == (304, "5")
    assert (await first).status_code == 304
    began = time.monotonic()
    assert (await second.bundle(other, wait=1)).status_code == 304
    assert time.monotonic() - began >= 0.9


async def test_an_outpost_with_a_revoked_certificate_gets_no_bundle(portal: Portal, tenant: Tenant) -> None:
    outpost = await portal.enrol(tenant.id)
    etag = (await outpost.bundle()).headers["etag"]
    waiting = asyncio.create_task(outpost.bundle(etag, wait=30))
    await asyncio.sleep(0.1)
    portal.outposts.remove(outpost)
    await portal.vouch()
    await tenant.admin.client.post("/api/admin/groups", json={"name": f"g-{uuid4().hex}"})
    key = await portal.platform.new_key(tenant.user)
    assert key
    assert (await waiting).status_code == 401


async def test_a_change_is_read_once_for_many_outposts(
    platform: RunningPlatform, portal: Portal, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    outposts = [await portal.enrol(tenant.id) for _ in range(5)]
    tags = [(await outpost.bundle()).headers["etag"] for outpost in outposts]
    loads = 0
    bundles = platform.host._supply._bundles
    load = bundles._load

    async def counted(tenant_id: Any) -> Any:
        nonlocal loads
        loads += 1
        return await load(tenant_id)

    monkeypatch.setattr(bundles, "_load", counted)
    waiting = [asyncio.create_task(item.bundle(tag, wait=30)) for item, tag in zip(outposts, tags, strict=True)]
    await asyncio.sleep(0.3)
    await platform.new_key(tenant.user)
    answers = await asyncio.gather(*waiting)
    assert [answer.status_code for answer in answers] == [200] * 5
    assert len({(await taken(item, answer)).version for item, answer in zip(outposts, answers, strict=True)}) == 1
    assert loads <= 2
