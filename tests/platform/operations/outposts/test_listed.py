"""The list of an organization's outposts for its administrators (docs/outposts.md)."""

import asyncio
from typing import Any
from uuid import uuid4

import pytest
from tests.platform.operations.outposts.test_handed_in import lines, outcome
from tests.support.outposts import Outpost, Portal
from tests.support.platform import Person, RunningPlatform, Tenant

PATH = "/api/v1/admin/outposts"


async def outposts(person: Person, **query: Any) -> dict[str, Any]:
    answer = await person.client.get(PATH, params=query)
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


async def until_seen(person: Person) -> dict[str, Any]:
    """Return the only outpost after its confirmation was stored, which takes half a second."""
    async with asyncio.timeout(60):
        while True:
            (listed,) = (await outposts(person))["outposts"]
            if listed["seen_at"] is not None:
                return dict(listed)
            await asyncio.sleep(0.05)


async def test_an_outpost_is_listed_from_its_registration_to_its_revocation(
    platform: RunningPlatform, portal: Portal, tenant: Tenant, outpost: Outpost
) -> None:
    serial = f"{outpost.certificate.serial_number:x}"
    body = await outposts(tenant.auditor)
    assert (body["enabled"], body["total"], body["page"], body["page_size"]) == (True, 1, 1, 50)
    assert body["outposts"] == [
        {
            "outpost_id": str(outpost.id), "state": "unseen", "seen_at": None, "policy_version": None,
            "policy_is_current": False, "certificates": 1, "certificate_serial": None, "certificate_ends_at": None,
            "records_stored": 0, "records_stored_at": None,
        }
    ]  # fmt: skip

    etag = (await outpost.bundle()).headers["ETag"]
    assert (await outpost.bundle(etag)).status_code == 304
    await outpost.hand_in(uuid4(), 1, lines(outcome()))
    await outpost.hand_in(uuid4(), 1, lines(outcome(), outcome()))
    seen = await until_seen(tenant.admin)
    assert (seen["state"], seen["certificate_serial"], seen["records_stored"]) == ("connected", serial, 3)
    assert seen["certificate_ends_at"].startswith(outpost.certificate.not_valid_after_utc.date().isoformat())
    assert seen["records_stored_at"] is not None
    query = "UPDATE outpost_nodes SET seen_at = now() - interval '2 minutes' WHERE outpost_id = %s"
    platform.sql(query, [outpost.id])
    assert (await outposts(tenant.admin))["outposts"][0]["state"] == "silent"

    word = portal.word()
    word["outposts"] = [entry for entry in word["outposts"] if entry["outpost_id"] != str(outpost.id)]
    await portal.client.put("/v1/platform/outpost-trust", json=word)
    (revoked,) = (await outposts(tenant.admin))["outposts"]
    assert (revoked["state"], revoked["certificates"], revoked["records_stored"]) == ("revoked", 0, 3)


async def test_a_policy_is_current_until_the_organization_changes_something(
    platform: RunningPlatform, tenant: Tenant, outpost: Outpost
) -> None:
    etag = (await outpost.bundle()).headers["ETag"]
    await outpost.bundle(etag)
    async with asyncio.timeout(60):
        while not (listed := (await until_seen(tenant.admin)))["policy_is_current"]:
            await outpost.bundle(etag)
            await asyncio.sleep(0.05)
    assert listed["policy_version"] > 0
    policy = {"name": "x", "condition": "false", "action": "LOG"}
    assert (await tenant.admin.client.post("/api/admin/policies", json=policy)).status_code == 201
    assert (await outposts(tenant.admin))["outposts"][0]["policy_is_current"] is False


async def test_each_organization_sees_its_own_outposts_by_page(
    portal: Portal, tenant: Tenant, other_tenant: Tenant
) -> None:
    own = {str((await portal.enrol(tenant.id)).id) for _ in range(3)}
    await portal.enrol(other_tenant.id, enabled=False)
    pages = [await outposts(tenant.admin, page=number, page_size=2) for number in (1, 2)]
    assert [page["total"] for page in pages] == [3, 3]
    assert [len(page["outposts"]) for page in pages] == [2, 1]
    assert {outpost["outpost_id"] for page in pages for outpost in page["outposts"]} == own
    others = await outposts(other_tenant.admin)
    assert (others["enabled"], others["total"]) == (False, 1)
    assert others["outposts"][0]["outpost_id"] not in own


@pytest.mark.parametrize(("query", "field"), [({"page": 0}, "page"), ({"page_size": 201}, "page_size")])
async def test_a_bad_parameter_is_named(tenant: Tenant, query: dict[str, int], field: str) -> None:
    answer = await tenant.admin.client.get(PATH, params=query)
    assert answer.status_code == 422
    assert field in answer.text


async def test_users_and_strangers_see_nothing(platform: RunningPlatform, tenant: Tenant) -> None:
    assert (await tenant.user.client.get(PATH)).status_code == 403
    assert (await platform.anonymous.get(PATH)).status_code == 401


async def test_outposts_are_sorted_by_each_column_and_those_without_a_value_come_last(
    platform: RunningPlatform, portal: Portal, tenant: Tenant
) -> None:
    first, second, unseen = sorted([str((await portal.enrol(tenant.id)).id) for _ in range(3)])
    for outpost_id, version, hours in ((first, 7, 3), (second, 9, 1)):
        platform.sql(
            "INSERT INTO outpost_nodes (tenant_id, outpost_id, version, seen_at, certificate_serial, certificate_ends)"
            " VALUES (%s, %s, %s, now() - make_interval(hours => %s), 'a', now() + make_interval(days => %s))",
            [tenant.id, outpost_id, version, hours, hours],
        )
    expected = {
        "-seen_at": [second, first, unseen], "seen_at": [first, second, unseen],
        "-policy_version": [second, first, unseen], "policy_version": [first, second, unseen],
        "certificate_ends_at": [second, first, unseen], "-certificate_ends_at": [first, second, unseen],
        "-outpost_id": [unseen, second, first], "outpost_id": [first, second, unseen],
        "-state": [unseen, first, second], "state": [first, second, unseen],
        "records_stored": [first, second, unseen], "-records_stored": [first, second, unseen],
    }  # fmt: skip
    for sort, ids in expected.items():
        listed = (await outposts(tenant.auditor, sort=sort))["outposts"]
        assert [outpost["outpost_id"] for outpost in listed] == ids, sort
    default = [outpost["outpost_id"] for outpost in (await outposts(tenant.auditor))["outposts"]]
    assert default == expected["-seen_at"]
    assert [
        entry["outpost_id"]
        for entry in (await outposts(tenant.auditor, sort="-seen_at", page=2, page_size=2))["outposts"]
    ] == [unseen]
    assert (await tenant.auditor.client.get(PATH, params={"sort": "version"})).status_code == 422
