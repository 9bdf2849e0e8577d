"""Groups, their members and DLP overrides (docs/groups.md)."""

import asyncio
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.support.journal import Journal, opened, outcome
from tests.support.platform import Person, RunningPlatform, Tenant

from gatehouse.foundation.ids import new_id
from gatehouse.platform.keeper.drain import Drain
from gatehouse.platform.live.replica import queries
from gatehouse.platform.live.replica.state import Replica

BASE = "/api/admin/groups"
CARD = "4242 4242 4242 4242"


async def create_group(tenant: Tenant, name: str = "Payments", **fields: Any) -> dict[str, Any]:
    answer = await tenant.admin.client.post(BASE, json={"name": name, **fields})
    assert answer.status_code == 201, answer.text
    group: dict[str, Any] = answer.json()
    return group


async def add_to_group(tenant: Tenant, group: dict[str, Any], person: Person) -> dict[str, Any]:
    answer = await tenant.admin.client.post(f"{BASE}/{group['id']}/members", json={"user_id": str(person.id)})
    assert answer.status_code == 201, answer.text
    member: dict[str, Any] = answer.json()
    return member


async def set_overrides(tenant: Tenant, group: dict[str, Any], **actions: str) -> None:
    body = [{"entity_type": entity_type, "action": action} for entity_type, action in actions.items()]
    answer = await tenant.admin.client.put(f"{BASE}/{group['id']}/dlp", json=body)
    assert answer.status_code == 200, answer.text


async def scan_action(person: Person) -> str:
    """Return the action on a card number in the person's requests."""
    answer = await person.client.post("/v1/scan", json={"text": f"My card is {CARD}.", "model": "none/none"})
    assert answer.status_code == 200, answer.text
    action: str = answer.json()["action"]
    return action


# groups --------------------------------------------------------------------------------------------------------------


async def test_a_group_is_created_read_and_listed_by_name(tenant: Tenant, other_tenant: Tenant) -> None:
    group = await create_group(tenant, description="Card data", external_group_id="g-1")
    first = await create_group(tenant, "Accounts")
    await create_group(other_tenant)
    assert group == {
        "id": group["id"], "name": "Payments", "description": "Card data", "external_group_id": "g-1",
        "tenant_id": str(tenant.id), "member_count": 0, "created_at": group["created_at"],
        "updated_at": group["created_at"],
    }  # fmt: skip
    await add_to_group(tenant, group, tenant.user)
    assert (await tenant.auditor.client.get(f"{BASE}/{group['id']}")).json() == {**group, "member_count": 1}
    listed = (await tenant.auditor.client.get(BASE)).json()
    assert listed == {"groups": [first, {**group, "member_count": 1}], "total": 2}


@pytest.mark.parametrize(
    ("parameters", "names", "total"),
    [
        ({}, ["Accounts", "Cards", "Payments"], 3),
        ({"limit": 2}, ["Accounts", "Cards"], 3),
        ({"limit": 2, "offset": 2}, ["Payments"], 3),
        ({"offset": 1}, ["Cards", "Payments"], 3),
        ({"sort": "-name", "limit": 1}, ["Payments"], 3),
        ({"sort": "-member_count"}, ["Cards", "Accounts", "Payments"], 3),
        ({"sort": "created_at"}, ["Payments", "Accounts", "Cards"], 3),
        ({"search": "CARD"}, ["Cards", "Payments"], 2),
        ({"search": "g-7"}, ["Accounts"], 1),
        ({"search": "%"}, [], 0),
        ({"search": "CARD", "limit": 1, "sort": "-name"}, ["Payments"], 2),
        ({"from_directory": True}, ["Accounts"], 1),
        ({"from_directory": False}, ["Cards", "Payments"], 2),
        ({"allowed_model": "sandbox/large"}, ["Accounts", "Cards"], 2),
        ({"allowed_model": "sandbox/large", "from_directory": False, "search": "card"}, ["Cards"], 1),
        ({"allowed_model": "sandbox/other"}, [], 0),
    ],
)
async def test_the_list_is_paged_searched_and_sorted(
    platform: RunningPlatform,
    tenant: Tenant,
    other_tenant: Tenant,
    parameters: dict[str, Any],
    names: list[str],
    total: int,
) -> None:
    await platform.add_provider(tenant.id, "sandbox", "sandbox", "large")
    await create_group(other_tenant, "Cards")
    payments = await create_group(tenant, description="Card data")
    accounts = await create_group(tenant, "Accounts", external_group_id="g-7")
    cards = await create_group(tenant, "Cards")
    await add_to_group(tenant, cards, tenant.user)
    for group, access in ((payments, "DENY"), (accounts, "ALLOW"), (cards, "ALLOW")):
        rule = {"model_id": "sandbox/large", "access_type": access}
        made = await tenant.admin.client.post(f"{BASE}/{group['id']}/model-access", json=rule)
        assert made.status_code == 201, made.text
    listed = (await tenant.auditor.client.get(BASE, params=parameters)).json()
    assert ([group["name"] for group in listed["groups"]], listed["total"]) == (names, total)


@pytest.mark.parametrize(
    ("name", "value"),
    [("limit", "0"), ("limit", "501"), ("offset", "-1"), ("sort", "tenant_id"), ("search", "x" * 256), ("page", "2")],
)
async def test_an_invalid_parameter_of_the_list_is_named(tenant: Tenant, name: str, value: str) -> None:
    refused = await tenant.admin.client.get(BASE, params={name: value})
    assert (refused.status_code, refused.json()["detail"][0]["loc"]) == (422, ["query", name])


@pytest.mark.parametrize(
    ("parameters", "names", "total"),
    [
        ({}, ["admin", "auditor", "user"], 3),
        ({"limit": 2}, ["admin", "auditor"], 3),
        ({"limit": 2, "offset": 2}, ["user"], 3),
        ({"sort": "-user_email", "limit": 1}, ["user"], 3),
        ({"sort": "joined_at"}, ["user", "admin", "auditor"], 3),
        ({"search": "AUD"}, ["auditor"], 1),
        ({"search": "%"}, [], 0),
    ],
)
async def test_the_members_are_paged_searched_and_sorted(
    platform: RunningPlatform, tenant: Tenant, parameters: dict[str, Any], names: list[str], total: int
) -> None:
    group, other = await create_group(tenant), await create_group(tenant, "Other")
    people = {"user": tenant.user, "admin": tenant.admin, "auditor": tenant.auditor}
    for name, person in people.items():
        platform.sql("UPDATE users SET email = %s WHERE id = %s", [f"{name}-{tenant.slug}@example.test", person.id])
        await add_to_group(tenant, group, person)
    await add_to_group(tenant, other, tenant.user)
    listed = await tenant.auditor.client.get(f"{BASE}/{group['id']}/members", params=parameters)
    assert [member["user_id"] for member in listed.json()] == [str(people[name].id) for name in names]
    assert listed.headers["x-total-count"] == str(total)


@pytest.mark.parametrize(("name", "value"), [("limit", "501"), ("sort", "display"), ("search", "x" * 256)])
async def test_an_invalid_parameter_of_the_members_is_named(tenant: Tenant, name: str, value: str) -> None:
    group = await create_group(tenant)
    refused = await tenant.admin.client.get(f"{BASE}/{group['id']}/members", params={name: value})
    assert (refused.status_code, refused.json()["detail"][0]["loc"]) == (422, ["query", name])


async def test_an_update_changes_the_named_fields_and_null_clears(platform: RunningPlatform, tenant: Tenant) -> None:
    group = await create_group(tenant, description="x", external_group_id="g-1")
    path = f"{BASE}/{group['id']}"
    changed = (await tenant.admin.client.put(path, json={"name": "Cards", "description": None})).json()
    assert changed == {**group, "name": "Cards", "description": None, "updated_at": changed["updated_at"]}
    assert changed["updated_at"] > group["updated_at"]
    (event,) = await platform.audit(tenant, "group.updated")
    assert event["details"] == {"name": "Cards", "description": None}
    assert (await tenant.admin.client.put(path, json={"external_group_id": None})).json()["external_group_id"] is None


async def test_an_update_that_changes_nothing_is_not_audited(platform: RunningPlatform, tenant: Tenant) -> None:
    group = await create_group(tenant)
    assert (await tenant.admin.client.put(f"{BASE}/{group['id']}", json={"name": "Payments"})).json() == group
    assert await platform.audit(tenant, "group.updated") == []


async def test_a_name_is_unique_in_an_organization(tenant: Tenant, other_tenant: Tenant) -> None:
    await create_group(tenant)
    second = await create_group(tenant, "Second")
    await create_group(other_tenant)
    for answer in (
        await tenant.admin.client.post(BASE, json={"name": "Payments"}),
        await tenant.admin.client.put(f"{BASE}/{second['id']}", json={"name": "Payments"}),
    ):
        assert (answer.status_code, answer.json()["detail"]) == (409, "There is a group called 'Payments' already.")


async def test_a_deleted_group_loses_its_members_and_overrides(platform: RunningPlatform, tenant: Tenant) -> None:
    group = await create_group(tenant)
    await add_to_group(tenant, group, tenant.user)
    await set_overrides(tenant, group, credit_card="BLOCK")
    assert await scan_action(tenant.user) == "BLOCK"
    assert (await tenant.admin.client.delete(f"{BASE}/{group['id']}")).status_code == 204
    assert await scan_action(tenant.user) == "REDACT"
    assert platform.host.replica.users[tenant.user.id].groups == ()
    for table in ("group_members", "group_dlp_overrides"):
        assert platform.sql(f"SELECT count(*) FROM {table} WHERE group_id = %s", [group["id"]]) == [(0,)]
    (event,) = await platform.audit(tenant, "group.deleted")
    assert event["details"] == {"name": "Payments", "members": 1}
    assert (await tenant.admin.client.get(f"/api/admin/users/{tenant.user.id}")).status_code == 200


# members -------------------------------------------------------------------------------------------------------------


async def test_a_member_is_added_listed_and_removed(platform: RunningPlatform, tenant: Tenant) -> None:
    group = await create_group(tenant)
    members = f"{BASE}/{group['id']}/members"
    member = await add_to_group(tenant, group, tenant.user)
    assert member == {
        "id": member["id"], "user_id": str(tenant.user.id), "group_id": group["id"], "user_email": tenant.user.email,
        "joined_at": member["joined_at"],
    }  # fmt: skip
    assert (await tenant.auditor.client.get(members)).json() == [member]
    assert (await tenant.admin.client.delete(f"{members}/{tenant.user.id}")).status_code == 204
    assert (await tenant.auditor.client.get(members)).json() == []
    for action in ("group.member_added", "group.member_removed"):
        (event,) = await platform.audit(tenant, action)
        assert event["resource_id"] == group["id"]
        assert event["details"] == {"name": "Payments", "user_id": str(tenant.user.id)}
    gone = await tenant.admin.client.delete(f"{members}/{tenant.user.id}")
    assert (gone.status_code, gone.json()) == (404, {"detail": "The user is not a member of the group"})


async def test_a_user_is_added_to_a_group_only_once(tenant: Tenant) -> None:
    group = await create_group(tenant)
    await add_to_group(tenant, group, tenant.user)
    again = await tenant.admin.client.post(f"{BASE}/{group['id']}/members", json={"user_id": str(tenant.user.id)})
    assert again.status_code == 409


async def test_only_users_of_the_organization_become_members(tenant: Tenant, other_tenant: Tenant) -> None:
    group = await create_group(tenant)
    for user_id in (other_tenant.user.id, uuid4()):
        answer = await tenant.admin.client.post(f"{BASE}/{group['id']}/members", json={"user_id": str(user_id)})
        assert (answer.status_code, answer.json()) == (404, {"detail": "User not found"})


async def test_a_removed_user_is_no_longer_a_member(tenant: Tenant) -> None:
    group = await create_group(tenant)
    await add_to_group(tenant, group, tenant.user)
    assert (await tenant.admin.client.delete(f"/api/admin/users/{tenant.user.id}")).status_code == 204
    assert (await tenant.admin.client.get(f"{BASE}/{group['id']}/members")).json() == []


async def test_membership_takes_effect_with_the_response(tenant: Tenant) -> None:
    group = await create_group(tenant)
    await set_overrides(tenant, group, credit_card="BLOCK")
    assert await scan_action(tenant.user) == "REDACT"
    await add_to_group(tenant, group, tenant.user)
    assert await scan_action(tenant.user) == "BLOCK"
    await tenant.admin.client.delete(f"{BASE}/{group['id']}/members/{tenant.user.id}")
    assert await scan_action(tenant.user) == "REDACT"


async def test_a_members_api_key_has_the_members_groups(platform: RunningPlatform, tenant: Tenant) -> None:
    group = await create_group(tenant)
    await set_overrides(tenant, group, credit_card="BLOCK")
    client = platform.client(await platform.new_key(tenant.user))
    body = {"text": CARD, "model": "none/none"}
    assert (await client.post("/v1/scan", json=body)).json()["action"] == "REDACT"
    await add_to_group(tenant, group, tenant.user)
    assert (await client.post("/v1/scan", json=body)).json()["action"] == "BLOCK"


async def test_a_new_worker_loads_every_membership(platform: RunningPlatform, tenant: Tenant) -> None:
    groups = sorted([(await create_group(tenant, name))["id"] for name in ("A", "B")])
    for group_id in groups:
        await add_to_group(tenant, {"id": group_id}, tenant.user)
    replica = Replica()
    async with platform.host.database.service() as session:
        await queries.users(session, replica, None)
    assert [str(group) for group in replica.users[tenant.user.id].groups] == groups
    assert replica.users[tenant.auditor.id].groups == ()


# overrides -----------------------------------------------------------------------------------------------------------


async def test_overrides_are_replaced_as_a_whole(platform: RunningPlatform, tenant: Tenant) -> None:
    group = await create_group(tenant)
    path = f"{BASE}/{group['id']}/dlp"
    both = [{"entity_type": "ssn", "action": "BLOCK"}, {"entity_type": "credit_card", "action": "ALLOW"}]
    answer = await tenant.admin.client.put(path, json=both)
    assert (answer.status_code, answer.json()) == (200, both[::-1])
    one = [{"entity_type": "email", "action": "REDACT"}]
    assert (await tenant.admin.client.put(path, json=one)).json() == one
    assert (await tenant.auditor.client.get(path)).json() == one
    assert (await tenant.admin.client.put(path, json=[])).json() == []
    assert (await tenant.auditor.client.get(path)).json() == []
    events = [event["details"] for event in await platform.audit(tenant, "group.dlp_overrides_set")]
    body = {"credit_card": "ALLOW", "ssn": "BLOCK"}
    assert [(event["before"], event["overrides"]) for event in events] == [
        ({}, body), (body, {"email": "REDACT"}), ({"email": "REDACT"}, {}),
    ]  # fmt: skip


@pytest.mark.parametrize("action", ["ALLOW", "BLOCK", "REDACT"])
async def test_an_override_applies_only_to_members(tenant: Tenant, action: str) -> None:
    group = await create_group(tenant)
    await add_to_group(tenant, group, tenant.user)
    await set_overrides(tenant, group, credit_card=action)
    assert (await scan_action(tenant.user), await scan_action(tenant.auditor)) == (action, "REDACT")


async def test_overrides_have_the_groups_version(tenant: Tenant) -> None:
    """Each set of overrides replaces the previous set, so the second of two concurrent administrators gets a
    conflict."""
    group = (await create_group(tenant))["id"]
    path = f"{BASE}/{group}/dlp"
    version_before = (await tenant.admin.client.get(path)).headers["ETag"]
    assert version_before == (await tenant.admin.client.get(f"{BASE}/{group}")).headers["ETag"]
    block, allow = ([{"entity_type": "ssn", "action": action}] for action in ("BLOCK", "ALLOW"))
    first = await tenant.admin.client.put(path, json=block, headers={"If-Match": version_before})
    assert first.status_code == 200
    assert (await tenant.admin.client.put(path, json=allow, headers={"If-Match": version_before})).status_code == 412
    assert (await tenant.admin.client.get(path)).json() == block
    version = {"If-Match": first.headers["ETag"]}
    assert (await tenant.admin.client.put(path, json=allow, headers=version)).status_code == 200


async def test_of_several_groups_the_strictest_override_applies(tenant: Tenant) -> None:
    for name, action in (("A", "ALLOW"), ("B", "BLOCK")):
        group = await create_group(tenant, name)
        await add_to_group(tenant, group, tenant.user)
        await set_overrides(tenant, group, credit_card=action)
    assert await scan_action(tenant.user) == "BLOCK"


async def test_the_organizations_own_entity_types_can_be_overridden(tenant: Tenant) -> None:
    pattern = {"name": "Badges", "entity_type": "badge", "pattern": "BDG-[0-9]{6}", "action_tier": "redact"}
    rule = {
        "detector_name": "Staff", "detector_type": "regex", "entity_type": "staff_id", "action_tier": "redact",
        "config_json": {"pattern": "EMP-[0-9]{6}"},
    }  # fmt: skip
    own = await tenant.admin.client.post("/api/admin/dlp-rules/custom-patterns", json=pattern)
    assert own.status_code == 201, own.text
    rules = await tenant.admin.client.post("/api/admin/dlp-rules", json=rule)
    assert rules.status_code == 201, rules.text
    await set_overrides(tenant, await create_group(tenant), badge="BLOCK", staff_id="ALLOW", person="REDACT")


async def test_overrides_can_exist_before_and_after_their_rule(tenant: Tenant) -> None:
    client, group = tenant.admin.client, await create_group(tenant)
    path = f"{BASE}/{group['id']}/dlp"
    await set_overrides(tenant, group, employee_no="BLOCK")
    rule = {
        "detector_name": "Employees", "detector_type": "regex", "entity_type": "employee_no", "action_tier": "redact",
        "config_json": {"pattern": "EMP-[0-9]{6}"},
    }  # fmt: skip
    rule_id = (await client.post("/api/admin/dlp-rules", json=rule)).json()["id"]
    assert (await client.delete(f"/api/admin/dlp-rules/{rule_id}")).status_code == 204
    more = [*(await client.get(path)).json(), {"entity_type": "ssn", "action": "ALLOW"}]
    answer = await client.put(path, json=more)
    assert (answer.status_code, answer.json()) == (200, more)


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ([{"entity_type": "credit card", "action": "BLOCK"}], ["body", 0, "entity_type"]),
        (
            [{"entity_type": "ssn", "action": "BLOCK"}, {"entity_type": "ssn", "action": "ALLOW"}],
            ["body", 1, "entity_type"],
        ),
        ([{"entity_type": "ssn", "action": "block"}], ["body", 0, "action"]),
        ([{"entity_type": "ssn"}], ["body", 0, "action"]),
        ([{"action": "BLOCK"}], ["body", 0, "entity_type"]),
        ({"entity_type": "ssn", "action": "BLOCK"}, ["body"]),
    ],
)
async def test_bad_overrides_name_the_field_and_change_nothing(tenant: Tenant, body: Any, place: list[Any]) -> None:
    group = await create_group(tenant)
    await set_overrides(tenant, group, credit_card="BLOCK")
    answer = await tenant.admin.client.put(f"{BASE}/{group['id']}/dlp", json=body)
    assert (answer.status_code, answer.json()["detail"][0]["loc"]) == (422, place)
    stored = (await tenant.admin.client.get(f"{BASE}/{group['id']}/dlp")).json()
    assert stored == [{"entity_type": "credit_card", "action": "BLOCK"}]


# usage ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("memberships", [0, 1, 2])
async def test_usage_is_attributed_to_a_users_only_group(
    platform: RunningPlatform, tenant: Tenant, memberships: int
) -> None:
    groups = [await create_group(tenant, f"Group {number}") for number in range(memberships)]
    for group in groups:
        await add_to_group(tenant, group, tenant.user)
    request_id = f"r-{uuid4().hex}"
    body = {"model": "none/none", "messages": [{"role": "user", "content": "hi"}]}
    await tenant.user.client.post("/v1/chat/completions", json=body, headers={"X-Request-Id": request_id})
    drain = Drain(platform.installed.url, platform.host.settings.gatehouse_home / "journal")
    drain.start()
    await asyncio.to_thread(drain.stop, 20)
    expected = groups[0]["id"] if memberships == 1 else None
    query = "SELECT group_id::text FROM usage_records WHERE request_id = %s"
    assert platform.sql(query, [request_id]) == [(expected,)]


async def test_an_interrupted_stream_is_attributed_to_the_group_too(
    platform: RunningPlatform, tenant: Tenant, tmp_path: Path
) -> None:
    journal, group_id = Journal(platform.installed.url, tmp_path / "journal"), new_id()
    call = outcome(tenant.id, stream=True, group_ids=(group_id,))
    await journal.append(opened(call))
    await journal.killed()
    await journal.drain()
    assert platform.sql("SELECT group_id FROM usage_records WHERE id = %s", [call.id]) == [(group_id,)]


# callers -------------------------------------------------------------------------------------------------------------


async def test_machines_need_the_groups_scopes(platform: RunningPlatform, tenant: Tenant) -> None:
    reader = await platform.new_m2m(tenant.id, "groups:read")
    writer = await platform.new_m2m(tenant.id, "groups:write")
    admin = await platform.new_m2m(tenant.id, "admin:read", "admin:write")
    assert [(await client.get(BASE)).status_code for client in (reader, writer, admin)] == [200, 403, 403]
    codes = [(await client.post(BASE, json={"name": "M"})).status_code for client in (reader, writer, admin)]
    assert codes == [403, 201, 403]


def calls(group_id: object, user_id: object) -> list[tuple[str, str, Any]]:
    one = f"{BASE}/{group_id}"
    return [
        ("GET", one, None), ("PUT", one, {"name": "x"}), ("DELETE", one, None), ("GET", f"{one}/members", None),
        ("POST", f"{one}/members", {"user_id": str(user_id)}), ("DELETE", f"{one}/members/{user_id}", None),
        ("GET", f"{one}/dlp", None), ("PUT", f"{one}/dlp", []),
    ]  # fmt: skip


async def test_users_see_no_groups_and_auditors_change_none(platform: RunningPlatform, tenant: Tenant) -> None:
    group = await create_group(tenant)
    all_calls = [*calls(group["id"], tenant.user.id), ("GET", BASE, None), ("POST", BASE, {"name": "x"})]
    for method, path, body in all_calls:
        assert (await platform.anonymous.request(method, path, json=body)).status_code == 401
        assert (await tenant.user.client.request(method, path, json=body)).status_code == 403
        expected = 200 if method == "GET" else 403
        assert (await tenant.auditor.client.request(method, path, json=body)).status_code == expected


async def test_another_organizations_group_is_not_found(tenant: Tenant, other_tenant: Tenant) -> None:
    theirs = await create_group(other_tenant)
    await add_to_group(other_tenant, theirs, other_tenant.user)
    for group_id in (theirs["id"], uuid4()):
        for method, path, body in calls(group_id, other_tenant.user.id):
            answer = await tenant.admin.client.request(method, path, json=body)
            assert (answer.status_code, answer.json()) == (404, {"detail": "Group not found"})
    assert (await other_tenant.admin.client.get(f"{BASE}/{theirs['id']}")).json()["member_count"] == 1


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "name"),
        ({"name": ""}, "name"),
        ({"name": "two\nlines"}, "name"),
        ({"name": "x" * 256}, "name"),
        ({"name": None}, "name"),
        ({"name": "x", "description": 5}, "description"),
        ({"name": "x", "external_group_id": ""}, "external_group_id"),
        ({"name": "x", "members": []}, "members"),
    ],
)
async def test_bad_input_names_the_field(tenant: Tenant, body: dict[str, Any], field: str) -> None:
    answer = await tenant.admin.client.post(BASE, json=body)
    assert (answer.status_code, answer.json()["detail"][0]["loc"]) == (422, ["body", field])
    group = await create_group(tenant)
    if body:
        changed = await tenant.admin.client.put(f"{BASE}/{group['id']}", json=body)
        assert (changed.status_code, changed.json()["detail"][0]["loc"]) == (422, ["body", field])


@pytest.mark.parametrize("body", [{}, {"user_id": "me"}, {"user_id": None}])
async def test_a_bad_member_names_the_field(tenant: Tenant, body: dict[str, Any]) -> None:
    group = await create_group(tenant)
    answer = await tenant.admin.client.post(f"{BASE}/{group['id']}/members", json=body)
    assert (answer.status_code, answer.json()["detail"][0]["loc"]) == (422, ["body", "user_id"])
