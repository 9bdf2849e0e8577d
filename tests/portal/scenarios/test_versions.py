"""Two concurrent changes of the same row do not overwrite each other unnoticed (`ETag`, `If-Match`; RFC 9110, 13.1.1).

The tests cover every path of the portal that shows and changes a row."""

import asyncio
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import httpx2
import pytest
from tests.portal.scenarios.test_rights import OPERATIONS
from tests.support.portal import Org, RunningPortal

CHANGES = {"PUT", "PATCH", "DELETE"}
NAMES = {(method, path) for method, path, _ in OPERATIONS}
CHANGEABLE = sorted(
    path for method, path in NAMES if method == "GET" and any((change, path) in NAMES for change in CHANGES)
)
ORG, MEMBER, OUTPOST = (
    "/v1/orgs/{org_id}", "/v1/orgs/{org_id}/members/{user_id}", "/v1/orgs/{org_id}/outposts/{outpost_id}",
)  # fmt: skip
#: Operations below a row that check the version of this row.
CHECKED_BELOW = {
    ("PATCH", f"{ORG}/settings"), ("POST", f"{ORG}/provision"), ("POST", f"{ORG}/tokens"),
    ("POST", f"{ORG}/tokens/revoke"), ("POST", f"{OUTPOST}/renew"),
}  # fmt: skip
STALE = ('"0"', f'"{uuid4().hex}"', 'W/"0"', '"0", "1"', "0")


class Rows:
    """An organization with a member and an outpost, and two clients: one that reads, and one that changes."""

    def __init__(self, portal: RunningPortal, org: Org, member: str, outpost: str) -> None:
        self._portal = portal
        self.org = org
        self._ids = {"{org_id}": str(org.id), "{user_id}": member, "{outpost_id}": outpost}

    def path(self, template: str) -> str:
        for name, value in self._ids.items():
            template = template.replace(name, value)
        return template

    async def shown(self, template: str) -> httpx2.Response:
        answer = await self.org.client.get(self.path(template))
        assert answer.status_code == 200, answer.text
        return answer

    async def change(self, method: str, template: str, body: Any = None, version: str | None = None) -> httpx2.Response:
        client = self._portal.admin if template == ORG else self.org.client
        headers = {} if version is None else {"If-Match": version}
        return await client.request(method, self.path(template), json=body or {}, headers=headers)


@pytest.fixture
async def rows(portal: RunningPortal, org: Org) -> Rows:
    member = (await portal.new_member(org)).id
    body = {"outpost_name": "warehouse", "region": "eu-central-1", "deployment_env": "production"}
    outpost = (await portal.admin.post(f"{org.path}/outposts", json=body)).json()["outpost"]["id"]
    return Rows(portal, org, str(member), outpost)


def test_these_rows_can_be_shown_and_changed() -> None:
    assert CHANGEABLE == [ORG, MEMBER, OUTPOST]


def test_the_document_offers_if_match_where_it_is_checked() -> None:
    for method, path, operation in OPERATIONS:
        offered = [parameter for parameter in operation.get("parameters", ()) if parameter["name"] == "If-Match"]
        expected = (method != "GET" and path in CHANGEABLE) or (method, path) in CHECKED_BELOW
        assert (len(offered), "412" in operation["responses"]) == (expected, expected), (method, path)


@pytest.mark.parametrize("path", CHANGEABLE)
async def test_a_change_of_another_version_is_412_and_changes_nothing(
    portal: RunningPortal, rows: Rows, path: str
) -> None:
    before = await rows.shown(path)
    recorded = portal.sql("SELECT count(*) FROM audit WHERE org_id = %s", [rows.org.id])
    for method in sorted(CHANGES):
        if (method, path) not in NAMES:
            continue
        for stale in STALE:
            answer = await rows.change(method, path, version=stale)
            assert (answer.status_code, answer.json()["error"]) == (412, "precondition_failed"), (method, stale)
            assert "Read it again" in answer.json()["detail"]
    after = await rows.shown(path)
    assert (after.json(), after.headers["etag"]) == (before.json(), before.headers["etag"])
    assert portal.sql("SELECT count(*) FROM audit WHERE org_id = %s", [rows.org.id]) == recorded


@pytest.mark.parametrize(
    ("method", "path", "shown", "one", "other"),
    [
        ("PATCH", ORG, ORG, {"name": "first"}, {"plan_tier": "starter"}),
        ("PATCH", f"{ORG}/settings", ORG, {"name": "first"}, {"name": "second"}),
        ("PUT", MEMBER, MEMBER, {"role": "admin"}, {"role": "admin"}),
    ],
)
async def test_of_two_concurrent_changes_one_is_refused_and_none_is_lost(
    rows: Rows, method: str, path: str, shown: str, one: dict[str, Any], other: dict[str, Any]
) -> None:
    before = await rows.shown(shown)
    version = before.headers["etag"]
    answers = await asyncio.gather(*(rows.change(method, path, body, version) for body in (one, other)))
    assert sorted(answer.status_code for answer in answers) == [200, 412], [answer.text for answer in answers]
    won, lost = (one, other) if answers[0].status_code == 200 else (other, one)
    made = next(answer for answer in answers if answer.status_code == 200)
    after = await rows.shown(shown)
    assert before.json() | won | {"updated_at": after.json()["updated_at"]} == after.json()
    assert made.headers["etag"] == after.headers["etag"] != version
    # The refused administrator reads the row again, and can then make the change too.
    again = await rows.change(method, path, lost, after.headers["etag"])
    assert again.status_code == 200, again.text
    assert (await rows.shown(shown)).json().items() >= lost.items()


@pytest.mark.parametrize("named", ["{}", "*", '"0", {}', "W/{}"])
@pytest.mark.parametrize("path", CHANGEABLE)
async def test_a_deletion_of_the_present_version_is_made(rows: Rows, path: str, named: str) -> None:
    version = named.replace("{}", (await rows.shown(path)).headers["etag"])
    answer = await rows.change("DELETE", path, version=version)
    assert (answer.status_code, answer.content) == (204, b"")


async def test_a_row_of_a_list_shows_its_version(rows: Rows) -> None:
    """Its version is `updated_at` in microseconds, in hexadecimal (docs/organization.md)."""
    for family, path in (("members", MEMBER), ("outposts", OUTPOST)):
        listed = (await rows.org.client.get(f"{rows.org.path}/{family}")).json()
        shown = await rows.shown(path)
        assert shown.json() in [row for row in listed if row["id"] in rows.path(path)]
        assert shown.headers["etag"] == version_of(shown.json()["updated_at"])


def version_of(updated_at: str) -> str:
    since = datetime.fromisoformat(updated_at) - datetime.fromisoformat("1970-01-01T00:00:00Z")
    return f'"{since // timedelta(microseconds=1):x}"'


async def test_a_renewal_replaces_an_outposts_version_and_a_heartbeat_does_not(
    portal: RunningPortal, rows: Rows
) -> None:
    first = (await rows.shown(OUTPOST)).headers["etag"]
    portal.sql("UPDATE outposts SET last_seen_at = now() WHERE org_id = %s RETURNING id", [rows.org.id])
    assert (await rows.shown(OUTPOST)).headers["etag"] == first
    renewed = await rows.change("POST", f"{OUTPOST}/renew", version=first)
    assert renewed.status_code == 200
    assert (await rows.change("POST", f"{OUTPOST}/renew", version=first)).status_code == 412
    assert (await rows.change("DELETE", OUTPOST, version=first)).status_code == 412
    second = (await rows.shown(OUTPOST)).headers["etag"]
    assert (await rows.change("DELETE", OUTPOST, version=second)).status_code == 204
    assert (await rows.shown(OUTPOST)).headers["etag"] not in {first, second}


@pytest.mark.parametrize("path", CHANGEABLE)
async def test_rights_are_checked_before_the_version(
    portal: RunningPortal, rows: Rows, other_org: Org, path: str
) -> None:
    """401, 403 and 404 come before 412."""
    stale = {"If-Match": '"0"'}
    member = await portal.new_member(rows.org)
    for method in sorted(CHANGES):
        if (method, path) not in NAMES:
            continue
        here = rows.path(path)
        assert (await portal.anonymous.request(method, here, json={}, headers=stale)).status_code == 401
        if path != ORG:
            assert (await member.client.request(method, here, json={}, headers=stale)).status_code == 403
            there = here.replace(str(rows.org.id), str(other_org.id))
            assert (await other_org.client.request(method, there, json={}, headers=stale)).status_code == 404


async def test_members_read_one_member(portal: RunningPortal, rows: Rows, other_org: Org) -> None:
    member = await portal.new_member(rows.org)
    path = f"{rows.org.path}/members/{member.id}"
    shown = await member.client.get(path)
    assert (shown.status_code, shown.json()["id"], shown.json()["role"]) == (200, str(member.id), "member")
    for unknown in (uuid4(), "nonsense"):
        assert (await member.client.get(f"{rows.org.path}/members/{unknown}")).status_code == 404
    assert (await other_org.client.get(path)).status_code == 403
    assert (await other_org.client.get(f"{other_org.path}/members/{member.id}")).status_code == 404
