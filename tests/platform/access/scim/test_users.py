"""A directory creates, reads, changes and deletes users (docs/scim.md; RFC 7644)."""

import asyncio
from typing import Any
from uuid import uuid4

import pytest
from tests.platform.access.scim.conftest import BASE, USER, Directory, directory_of
from tests.support.platform import PASSWORD, RunningPlatform, Tenant

ENTERPRISE = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"


async def test_a_user_reads_back_as_created(directory: Directory) -> None:
    name = f"{uuid4().hex}@example.test"
    body = {
        "schemas": [USER, ENTERPRISE],
        "externalId": "00u1",
        "userName": name,
        "name": {"formatted": "Ada Lovelace", "familyName": "Lovelace", "givenName": "Ada"},
        "displayName": "Ada",
        "emails": [{"value": name, "type": "work", "primary": True}, {"value": "ada@home.test", "type": "home"}],
        "active": True,
        ENTERPRISE: {"department": "Engines"},
    }
    created = await directory.call("POST", "/Users", body, expect=201)
    assert {key: value for key, value in created.items() if key not in {"id", "meta"}} == {**body, "groups": []}
    assert created["meta"]["resourceType"] == "User"
    assert created["meta"]["location"] == f"http://gatehouse.test{BASE}/Users/{created['id']}"
    assert await directory.call("GET", f"/Users/{created['id']}") == created


async def test_creation_returns_the_location_of_the_user(directory: Directory) -> None:
    body = {"userName": f"{uuid4().hex}@example.test"}
    answer = await directory.client.post(f"{BASE}/Users", json=body)
    assert answer.headers["location"] == answer.json()["meta"]["location"]


async def test_creation_and_changes_of_a_user_are_in_the_audit_chain(
    platform: RunningPlatform, tenant: Tenant, directory: Directory
) -> None:
    created = await directory.user()
    await directory.patch(f"/Users/{created['id']}", {"op": "replace", "path": "displayName", "value": "Ada"})
    for action in ("user.created", "user.updated"):
        (event,) = await platform.audit(tenant, action)
        assert (event["actor_type"], event["actor_id"]) == ("scim", directory.token_id)
        assert event["resource_id"] == created["id"]


async def test_all_users_are_listed_except_service_accounts(tenant: Tenant, directory: Directory) -> None:
    robot = {"email": "robot@example.test", "kind": "service"}
    robot = (await tenant.admin.client.post("/api/admin/users", json=robot)).json()
    listed = await directory.call("GET", "/Users")
    people = {str(person.id) for person in (tenant.admin, tenant.auditor, tenant.user)}
    assert {resource["id"] for resource in listed["Resources"]} == people
    shown = await directory.call("GET", f"/Users/{tenant.user.id}")
    assert shown["userName"] == tenant.user.email
    assert shown["emails"] == [{"value": tenant.user.email, "type": "work", "primary": True}]
    await directory.call("GET", f"/Users/{robot['id']}", expect=404)


async def test_a_directory_creates_users_with_the_lowest_role(platform: RunningPlatform, directory: Directory) -> None:
    created = await directory.user(roles=[{"value": "admin"}], entitlements=[{"value": "admin"}], role="admin")
    assert "roles" not in created
    assert platform.sql("SELECT role, operator, kind FROM users WHERE id = %s", [created["id"]]) == [
        ("user", False, "user")
    ]


async def test_a_password_is_neither_stored_nor_shown(platform: RunningPlatform, directory: Directory) -> None:
    created = await directory.user(password=PASSWORD)
    assert PASSWORD not in str(created)
    (row,) = platform.sql("SELECT password_hash, directory::text FROM users WHERE id = %s", [created["id"]])
    assert row[0] is None
    assert PASSWORD not in row[1]


async def test_a_user_name_is_unique_in_an_organization_regardless_of_case(
    tenant: Tenant, directory: Directory, other_tenant: Tenant, platform: RunningPlatform
) -> None:
    created = await directory.user()
    for name in (created["userName"], created["userName"].upper(), tenant.user.email):
        error = await directory.call("POST", "/Users", {"userName": name}, expect=409)
        assert (error["status"], error["scimType"]) == ("409", "uniqueness")
    second = await directory.user()
    rename = {"op": "replace", "path": "userName", "value": created["userName"]}
    assert (await directory.patch(f"/Users/{second['id']}", rename, expect=409))["scimType"] == "uniqueness"
    other = await directory_of(platform, other_tenant)
    await other.call("POST", "/Users", {"userName": created["userName"]}, expect=201)


async def test_an_administrator_cannot_reuse_a_user_name_of_the_directory(tenant: Tenant, directory: Directory) -> None:
    name = f"{uuid4().hex}@example.test"
    await directory.user(userName=name, emails=[{"value": f"{uuid4().hex}@example.test"}])
    answer = await tenant.admin.client.post("/api/admin/users", json={"email": name})
    assert answer.status_code == 409


@pytest.mark.parametrize(
    ("fields", "email", "username"),
    [
        ({"userName": "N@example.test"}, "n@example.test", None),
        ({"userName": "n", "emails": [{"value": "a@example.test"}, {"value": "B@example.test", "primary": True}]},
         "b@example.test", "n"),
        ({"userName": "n", "emails": [{"value": "a@example.test"}, {"value": "b@example.test", "type": "work"}]},
         "b@example.test", "n"),
        ({"userName": "n@example.test", "emails": [{"value": "a@example.test"}]}, "a@example.test", None),
    ],
)  # fmt: skip
async def test_the_sign_in_address_comes_from_emails_or_the_user_name(
    platform: RunningPlatform, directory: Directory, fields: dict[str, Any], email: str, username: str | None
) -> None:
    created = await directory.call("POST", "/Users", fields, expect=201)
    assert platform.sql("SELECT email, username FROM users WHERE id = %s", [created["id"]]) == [(email, username)]
    assert created["userName"] == fields["userName"]


async def test_the_stored_size_of_a_user_is_limited_over_all_requests(directory: Directory) -> None:
    """Each request is within the limit, but their sum is not."""
    created = await directory.user(title="x" * 40_000)
    path = f"/Users/{created['id']}"
    refused = await directory.patch(path, {"op": "add", "path": "nickName", "value": "y" * 40_000}, expect=400)
    assert (refused["scimType"], refused["detail"]) == ("invalidValue", "The resource is too large.")
    assert "nickName" not in await directory.call("GET", path)
    assert (await directory.patch(path, {"op": "add", "path": "nickName", "value": "y"}))["nickName"] == "y"


async def test_the_placeholder_of_a_missing_address_is_never_shown(directory: Directory, tenant: Tenant) -> None:
    """The placeholder address in the database is not shown."""
    created = await directory.user(userName=f"name-{uuid4().hex[:8]}")
    shown = (await tenant.admin.client.get(f"/api/admin/users/{created['id']}")).json()
    assert (shown["email"], shown["email_verified"], shown["username"]) == (None, False, created["userName"])
    group = await directory.group(created)
    (listed,) = (await tenant.admin.client.get(f"/api/admin/groups/{group['id']}/members")).json()
    assert (listed["user_id"], listed["user_email"]) == (created["id"], None)
    assert "no-address" not in (await tenant.admin.client.get("/api/admin/users?page_size=200")).text


async def test_a_user_without_an_address_is_shown_without_one(directory: Directory) -> None:
    created = await directory.call("POST", "/Users", {"userName": "no address"}, expect=201)
    assert "emails" not in created
    assert "emails" not in (await directory.call("GET", f"/Users/{created['id']}"))


@pytest.mark.parametrize("proven", [True, False])
async def test_an_address_is_verified_only_in_a_proven_domain(
    platform: RunningPlatform, tenant: Tenant, directory: Directory, proven: bool
) -> None:
    domain = f"{uuid4().hex}.test"
    platform.sql(
        "INSERT INTO allowed_domains (tenant_id, domain, verified_at) VALUES (%s, %s, %s)",
        [tenant.id, domain, "2026-01-01" if proven else None],
    )
    created = await directory.call("POST", "/Users", {"userName": f"ada@{domain}"}, expect=201)
    assert platform.sql("SELECT email_verified FROM users WHERE id = %s", [created["id"]]) == [(proven,)]


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("target", ["theirs", "nobody", "bogus"])
async def test_an_unknown_user_is_404(directory: Directory, other_tenant: Tenant, method: str, target: str) -> None:
    user_id = {"theirs": str(other_tenant.user.id), "nobody": str(uuid4()), "bogus": "x"}[target]
    error = await directory.call(method, f"/Users/{user_id}", {} if method in {"PUT", "PATCH"} else None, expect=404)
    assert error["status"] == "404"


@pytest.mark.parametrize(
    ("body", "kind", "word"),
    [
        ({}, "invalidValue", "userName"),
        ({"userName": ""}, "invalidValue", "userName"),
        ({"userName": 5}, "invalidValue", "userName"),
        ({"userName": "x" * 256}, "invalidValue", "userName"),
        ({"userName": "a\u0000b"}, "invalidValue", "NUL"),
        ({"userName": "x", "active": "perhaps"}, "invalidValue", "active"),
        ({"userName": "x", "emails": "a@example.test"}, "invalidValue", "emails"),
        ({"userName": "x", "emails": [{"value": "not an address"}]}, "invalidValue", "emails"),
        ({"userName": "x", "displayName": "x" * 256}, "invalidValue", "displayName"),
        ({"userName": "x", "emails": [{"value": f"{n}@example.test"} for n in range(21)]}, "invalidValue", "emails"),
        ([], "invalidSyntax", "object"),
    ],
)
async def test_a_bad_user_is_400_and_the_error_names_the_field(
    directory: Directory, body: Any, kind: str, word: str
) -> None:
    error = await directory.call("POST", "/Users", body, expect=400)
    assert (error["status"], error["scimType"]) == ("400", kind)
    assert word in error["detail"]


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b'{"userName": "\\ud800"}', b"[" * 60_000])
async def test_malformed_json_is_400(directory: Directory, body: bytes) -> None:
    answer = await directory.client.post(f"{BASE}/Users", content=body)
    assert (answer.status_code, answer.json()["scimType"]) == (400, "invalidSyntax")


async def test_a_user_of_many_kilobytes_is_413(directory: Directory) -> None:
    await directory.call("POST", "/Users", {"userName": "x", "title": "x" * 70_000}, expect=413)


async def test_put_removes_omitted_attributes(directory: Directory) -> None:
    created = await directory.user(displayName="Ada", title="Countess", externalId="00u1", name={"givenName": "Ada"})
    put = await directory.call("PUT", f"/Users/{created['id']}", {"userName": created["userName"], "nickName": "A"})
    assert set(put) == {"schemas", "id", "userName", "nickName", "active", "groups", "meta"}
    assert put["meta"]["created"] == created["meta"]["created"]
    assert put["meta"]["lastModified"] > created["meta"]["lastModified"]


async def test_put_without_active_does_not_reactivate_a_user(directory: Directory) -> None:
    created = await directory.user(active=False)
    assert created["active"] is False
    assert (await directory.call("PUT", f"/Users/{created['id']}", {"userName": created["userName"]}))[
        "active"
    ] is False


async def test_a_deactivated_users_sessions_and_keys_end_and_the_row_remains(
    platform: RunningPlatform, tenant: Tenant, directory: Directory
) -> None:
    key = platform.client(await platform.new_key(tenant.user))
    gone = await directory.patch(f"/Users/{tenant.user.id}", {"op": "replace", "path": "active", "value": False})
    assert gone["active"] is False
    assert (await key.get("/v1/models")).status_code == 401
    assert (await tenant.user.client.get("/api/auth/api-keys")).status_code == 401
    revoked = "SELECT revoked_at IS NOT NULL FROM sessions WHERE id = %s"
    assert platform.sql(revoked, [tenant.user.session_id]) == [(True,)]
    back = await directory.patch(f"/Users/{tenant.user.id}", {"op": "replace", "path": "active", "value": True})
    assert back["active"] is True
    # Deactivation suspended the keys, but ended the sessions.
    assert (await key.get("/v1/models")).status_code == 200
    assert (await tenant.user.client.get("/api/auth/api-keys")).status_code == 401


async def test_removing_a_user_removes_sessions_and_keys(
    platform: RunningPlatform, tenant: Tenant, directory: Directory
) -> None:
    key = platform.client(await platform.new_key(tenant.user))
    await directory.call("DELETE", f"/Users/{tenant.user.id}", expect=204)
    assert (await key.get("/v1/models")).status_code == 401
    assert (await tenant.user.client.get("/api/auth/api-keys")).status_code == 401
    await directory.call("GET", f"/Users/{tenant.user.id}", expect=404)
    for table in ("users WHERE id", "sessions WHERE user_id", "api_keys WHERE user_id"):
        assert platform.sql(f"SELECT 1 FROM {table} = %s", [tenant.user.id]) == []


async def test_the_last_administrator_cannot_be_removed(tenant: Tenant, directory: Directory) -> None:
    inactive = {"op": "replace", "path": "active", "value": False}
    error = await directory.patch(f"/Users/{tenant.admin.id}", inactive, expect=409)
    assert "last active administrator" in error["detail"]
    await directory.call("DELETE", f"/Users/{tenant.admin.id}", expect=409)
    assert (await tenant.admin.client.get("/api/admin/users")).status_code == 200


async def test_a_directory_cannot_change_operators(platform: RunningPlatform) -> None:
    operator = await platform.operator()
    created = await operator.client.post("/api/admin/scim/token", json={"description": "x"})
    directory = Directory(platform.client(created.json()["token"]), created.json()["token"], created.json()["token_id"])
    path = f"/Users/{operator.id}"
    assert (await directory.call("GET", path))["userName"] == operator.email
    await directory.patch(path, {"op": "replace", "path": "active", "value": False}, expect=403)
    await directory.call("PUT", path, {"userName": "x@example.test"}, expect=403)
    await directory.call("DELETE", path, expect=403)


async def test_a_changed_name_changes_the_sign_in_address_and_the_user_name(
    platform: RunningPlatform, directory: Directory
) -> None:
    old, new = f"a{uuid4().hex}", f"b{uuid4().hex}"
    created = await directory.user(userName=old, emails=[{"value": f"{old}@example.test", "primary": True}])
    await directory.patch(
        f"/Users/{created['id']}",
        {"op": "replace", "path": "userName", "value": new},
        {"op": "replace", "path": "emails[primary eq true].value", "value": f"{new}@example.test"},
    )
    query = "SELECT user_name, username, email FROM users WHERE id = %s"
    assert platform.sql(query, [created["id"]]) == [(new, new, f"{new}@example.test")]


async def test_a_directory_changes_the_address_of_a_user_that_existed_before(
    platform: RunningPlatform, tenant: Tenant, directory: Directory
) -> None:
    """The request has the form of Entra ID, with only the entry of type work. Single sign-on has linked the account."""
    platform.sql("UPDATE users SET linked_at = now() WHERE id = %s", [tenant.user.id])
    address = f"{uuid4().hex}@example.test"
    change = {"op": "Replace", "path": 'emails[type eq "work"].value', "value": address}
    shown = await directory.patch(f"/Users/{tenant.user.id}", change)
    assert shown["emails"] == [{"value": address, "type": "work", "primary": True}]
    assert platform.sql("SELECT email FROM users WHERE id = %s", [tenant.user.id]) == [(address,)]


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        # The first value is the example of the manual.
        ("manager", [{"$ref": "http://x.test/scim/Users/m-1", "value": "m-1"}], {"value": "m-1"}),
        (f"{ENTERPRISE}:manager", [{"$ref": "http://x.test/scim/Users/m-1", "value": "m-1"}], {"value": "m-1"}),
        (f"{ENTERPRISE}:manager", "m-1", {"value": "m-1"}),
        (f"{ENTERPRISE}:manager", {"value": "m-1"}, {"value": "m-1"}),
        (f"{ENTERPRISE}:manager", "", None),
        (f"{ENTERPRISE}:manager", [], None),
        (f"{ENTERPRISE}:manager", None, None),
        (f"{ENTERPRISE}:manager", {"value": None}, None),
    ],
)
@pytest.mark.parametrize("verb", ["Add", "Replace"])
async def test_a_manager_is_accepted_in_several_formats(
    directory: Directory, verb: str, path: str, value: Any, expected: dict[str, str] | None
) -> None:
    created = await directory.user(**{ENTERPRISE: {"department": "Engines", "manager": "m-0"}})
    assert created[ENTERPRISE]["manager"] == {"value": "m-0"}
    patched = await directory.patch(f"/Users/{created['id']}", {"op": verb, "path": path, "value": value})
    assert patched[ENTERPRISE].get("manager") == expected
    assert patched[ENTERPRISE]["department"] == "Engines"


async def test_concurrent_changes_of_a_user_are_not_lost(directory: Directory) -> None:
    created = await directory.user()
    names = ("title", "nickName", "displayName", "userType", "name.givenName", "name.familyName", "locale")
    path = f"/Users/{created['id']}"
    await asyncio.gather(*(directory.patch(path, {"op": "add", "path": name, "value": "x"}) for name in names))
    shown = await directory.call("GET", path)
    assert {shown[name] for name in names if "." not in name} == {"x"}
    assert shown["name"] == {"givenName": "x", "familyName": "x"}


async def test_a_directorys_change_of_other_attributes_keeps_the_administrators_address(
    platform: RunningPlatform, tenant: Tenant, directory: Directory
) -> None:
    created = await directory.user()
    address = f"{uuid4().hex}@example.test"
    await tenant.admin.client.patch(f"/api/admin/users/{created['id']}", json={"email": address})
    await directory.patch(f"/Users/{created['id']}", {"op": "replace", "path": "title", "value": "x"})
    assert platform.sql("SELECT email FROM users WHERE id = %s", [created["id"]]) == [(address,)]
