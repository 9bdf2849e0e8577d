"""Members of an organization (docs/portal.md, Members)."""

import asyncio
import time
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from tests.support.portal import Org, RunningPortal

from gatehouse.foundation.secrets import tokens
from gatehouse.portal.platform_link.openid_provider import Person
from gatehouse.portal.request.callers import partial_token


def someone(role: str = "member") -> dict[str, str]:
    return {"email": f"{uuid4().hex[:12]}@example.test", "role": role}


async def test_a_person_is_invited_by_a_token_stored_as_a_hash(portal: RunningPortal, org: Org) -> None:
    expected = someone("admin")
    answer = await org.client.post(f"{org.path}/members", json=expected)
    assert answer.status_code == 201, answer.text
    member, token = answer.json()["member"], answer.json()["invite_token"]
    assert {"email": member["email"], "role": member["role"]} == expected
    assert (member["org_id"], member["accepted_at"]) == (str(org.id), None)
    assert set(member) == {"id", "org_id", "email", "role", "invited_at", "accepted_at", "created_at", "updated_at"}
    assert token.startswith("inv_")
    assert portal.sql("SELECT invite_digest FROM members WHERE id = %s", [member["id"]]) == [(tokens.digest(token),)]
    assert (await org.client.get(f"{org.path}/members")).json() == [member]


async def test_an_invitation_is_in_the_audit_without_its_token(portal: RunningPortal, org: Org) -> None:
    token = (await org.client.post(f"{org.path}/members", json=someone())).json()["invite_token"]
    (row,) = portal.audit(org.id, "member.invited")
    assert (row["actor_type"], row["actor_id"]) == ("org_token", org.jti)
    assert token not in str(row)


async def test_an_address_has_one_membership_in_an_organization(org: Org, other_org: Org) -> None:
    expected = someone()
    await org.client.post(f"{org.path}/members", json=expected)
    repeated = await org.client.post(f"{org.path}/members", json={**expected, "email": expected["email"].upper()})
    assert (repeated.status_code, repeated.json()["detail"].partition(":")[0]) == (409, "email")
    assert (await other_org.client.post(f"{other_org.path}/members", json=expected)).status_code == 201


@pytest.mark.parametrize(
    ("body", "field"),
    [({"email": "nobody"}, "email"), ({"role": "owner"}, "role"), ({"role": None}, "role"), ({"more": 1}, "more")],
)
async def test_a_bad_field_is_named(org: Org, body: dict[str, Any], field: str) -> None:
    answer = await org.client.post(f"{org.path}/members", json={**someone(), **body})
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith(f"{field}: ")


async def test_a_member_sees_the_other_members(portal: RunningPortal, org: Org) -> None:
    member = await portal.new_member(org)
    (listed,) = (await member.client.get(f"{org.path}/members")).json()
    assert (listed["id"], listed["role"]) == (str(member.id), "member")


async def test_a_changed_role_is_audited(portal: RunningPortal, org: Org) -> None:
    member = await portal.new_member(org)
    changed = await org.client.put(f"{org.path}/members/{member.id}", json={"role": "admin"})
    assert (changed.status_code, changed.json()["role"]) == (200, "admin")
    (row,) = portal.audit(org.id, "member.role_changed")
    assert (row["resource_id"], row["details"]) == (str(member.id), {"role": "admin", "previous": "member"})
    answer = await org.client.put(f"{org.path}/members/{member.id}", json={"role": "owner"})
    assert (answer.status_code, answer.json()["detail"].partition(":")[0]) == (422, "role")


async def test_another_organizations_member_is_not_found(portal: RunningPortal, org: Org, other_org: Org) -> None:
    foreign_member = await portal.new_member(other_org)
    for member_id in (foreign_member.id, uuid4()):
        path = f"{org.path}/members/{member_id}"
        assert (await org.client.put(path, json={"role": "admin"})).status_code == 404
        assert (await org.client.delete(path)).status_code == 404
    assert (await foreign_member.client.get(other_org.path)).status_code == 200


async def test_a_removed_member_is_refused_at_once(portal: RunningPortal, org: Org) -> None:
    member = await portal.new_member(org)
    assert (await member.client.get(org.path)).status_code == 200
    assert (await org.client.delete(f"{org.path}/members/{member.id}")).status_code == 204
    assert (await member.client.get(org.path)).status_code == 403
    (row,) = portal.audit(org.id, "member.removed")
    assert row["resource_id"] == str(member.id)


async def test_the_last_administrator_cannot_be_removed(portal: RunningPortal, org: Org) -> None:
    last = await portal.new_member(org, "owner")
    path = f"{org.path}/members/{last.id}"
    assert (await org.client.delete(path)).status_code == 409
    refused = await org.client.put(path, json={"role": "member"})
    assert (refused.status_code, refused.json()["error"]) == (409, "conflict")
    # A person who has not accepted the invitation is not counted.
    await org.client.post(f"{org.path}/members", json=someone("admin"))
    assert (await org.client.delete(path)).status_code == 409
    await portal.new_member(org, "admin")
    assert (await org.client.put(path, json={"role": "member"})).json()["role"] == "member"


async def test_two_administrators_do_not_remove_each_other_at_once(portal: RunningPortal, org: Org) -> None:
    first, second = await portal.new_member(org, "admin"), await portal.new_member(org, "admin")
    answers = await asyncio.gather(
        first.client.delete(f"{org.path}/members/{second.id}"), second.client.delete(f"{org.path}/members/{first.id}")
    )
    assert sorted(answer.status_code for answer in answers) in ([204, 403], [204, 409]), [a.text for a in answers]
    assert len((await org.client.get(f"{org.path}/members")).json()) == 1


async def invited(org: Org, role: str = "admin") -> dict[str, Any]:
    answer = await org.client.post(f"{org.path}/members", json=someone(role))
    assert answer.status_code == 201, answer.text
    invitation: dict[str, Any] = answer.json()
    return invitation


async def test_an_open_invitation_can_be_withdrawn(portal: RunningPortal, org: Org) -> None:
    """This also works if the organization has no administrator yet."""
    invitation = await invited(org)
    path = f"{org.path}/members/{invitation['member']['id']}"
    assert (await org.client.put(path, json={"role": "member"})).status_code == 200
    assert (await org.client.put(path, json={"role": "admin"})).status_code == 200
    assert (await org.client.delete(path)).status_code == 204
    digest = tokens.digest(invitation["invite_token"])
    assert portal.sql("SELECT 1 FROM members WHERE invite_digest = %s", [digest]) == []
    (row,) = portal.audit(org.id, "member.removed")
    assert row["resource_id"] == invitation["member"]["id"]


async def test_an_invited_administrator_does_not_count_as_the_last_one(portal: RunningPortal) -> None:
    org = await portal.new_org(contact_email=f"{uuid4().hex[:12]}@example.test")
    (owner,) = (await org.client.get(f"{org.path}/members")).json()
    await invited(org)
    path = f"{org.path}/members/{owner['id']}"
    assert (await org.client.delete(path)).status_code == 409
    assert (await org.client.put(path, json={"role": "member"})).status_code == 409
    await portal.new_member(org, "admin")
    assert (await org.client.delete(path)).status_code == 204


async def arrived(portal: RunningPortal, org: Org, email: str) -> str:
    """Returns the partial token of a person who has just signed in with this address."""
    person = Person(str(uuid4()), org.id, email, int(time.time()), email_verified=True, next="/invitation")
    return await partial_token(portal.host, person, lifetime_seconds=60)


async def test_an_invitation_is_accepted_or_withdrawn_and_never_both(portal: RunningPortal, org: Org) -> None:
    """A person who has accepted is the only administrator and cannot be removed."""
    invitation = await invited(org)
    for _ in range(4):
        path = f"{org.path}/members/{invitation['member']['id']}"
        newcomer = portal.client(await arrived(portal, org, invitation["member"]["email"]))
        accepted, withdrawn = await asyncio.gather(
            newcomer.post("/v1/auth/sso/accept-invite", json={"invite_token": invitation["invite_token"]}),
            org.client.delete(path),
        )
        assert (accepted.status_code, withdrawn.status_code) in {(200, 409), (404, 204)}, accepted.text
        if accepted.status_code == 200:
            break
        invitation = await invited(org)
    assert (await org.client.get(f"{org.path}/members")).status_code == 200


async def test_a_withdrawn_invitation_is_not_accepted_while_it_is_being_withdrawn(
    portal: RunningPortal, org: Org
) -> None:
    """Both change the members of the organization, so they run one after the other."""
    invitation = await invited(org)
    newcomer = portal.client(await arrived(portal, org, invitation["member"]["email"]))
    async with await psycopg.AsyncConnection.connect(portal.installed.owner_url) as connection:
        await connection.execute("SELECT FROM portal.organizations WHERE id = %s FOR NO KEY UPDATE", [org.id])
        accepting = asyncio.create_task(
            newcomer.post("/v1/auth/sso/accept-invite", json={"invite_token": invitation["invite_token"]})
        )
        waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted"
        async with asyncio.timeout(60):
            while (await (await connection.execute(waiting)).fetchone()) == (0,):
                assert not accepting.done()
                await asyncio.sleep(0.01)
        await connection.execute("DELETE FROM portal.members WHERE id = %s", [invitation["member"]["id"]])
        await connection.commit()
    assert (await accepting).status_code == 404
