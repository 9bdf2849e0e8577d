"""Users and their administration (docs/accounts.md)."""

import asyncio
from typing import Any
from uuid import uuid4

import pytest
from tests.support.platform import PASSWORD, Person, RunningPlatform, Tenant

BASE = "/api/admin/users"
LOGIN = "/api/auth/login"
#: Scopes that correspond to the rights of a user.

USER_SCOPES = ("api:read", "api:write", "chat:write")


def address(domain: str = "example.test") -> str:
    return f"ada-{uuid4().hex[:10]}@{domain}"


async def create_user(person: Person, **body: Any) -> dict[str, Any]:
    answer = await person.client.post(BASE, json={"email": address(), **body})
    assert answer.status_code == 201, answer.text
    created: dict[str, Any] = answer.json()
    return created


async def test_a_user_with_a_password_signs_in(platform: RunningPlatform, tenant: Tenant) -> None:
    email = address()
    created = await create_user(
        tenant.admin, email=email.upper(), password=PASSWORD, username="ada", display_name="Ada", role="auditor"
    )
    assert (created["email"], created["username"], created["display_name"]) == (email, "ada", "Ada")
    assert (created["role"], created["kind"], created["is_active"], created["operator"]) == (
        "auditor", "user", True, False,
    )  # fmt: skip
    assert (created["email_verified"], created["invitation_token"], created["last_login_at"]) == (False, None, None)
    assert "password" not in str(created)
    read = await tenant.auditor.client.get(f"{BASE}/{created['id']}")
    shown = {name: value for name, value in created.items() if not name.startswith("invitation")}
    assert (read.status_code, read.json()) == (200, shown)
    signed_in = await platform.anonymous.post(LOGIN, json={"email": email, "password": PASSWORD})
    assert signed_in.json()["user"]["id"] == created["id"]
    # Every worker has loaded the user before the response is sent.
    client = platform.client(signed_in.json()["access_token"])
    assert (await client.get(BASE)).status_code == 200
    (event,) = await platform.audit(tenant, "user.created")
    assert (event["actor_id"], event["resource_id"]) == (str(tenant.admin.id), created["id"])
    assert PASSWORD not in str(event)


async def test_a_user_without_a_password_is_invited(platform: RunningPlatform, tenant: Tenant) -> None:
    created = await create_user(tenant.admin, role="auditor")
    assert created["invitation_token"].startswith("inv_")
    assert created["invitation_expires_at"] is not None
    stored = platform.sql("SELECT * FROM one_time_tokens WHERE tenant_id = %s", [tenant.id])
    assert created["invitation_token"] not in str(stored)
    assert created["invitation_token"] not in str(await platform.audit(tenant, "user.created"))


async def test_a_service_account_has_no_password(platform: RunningPlatform, tenant: Tenant) -> None:
    created = await create_user(tenant.admin, kind="service")
    assert (created["kind"], created["invitation_token"]) == ("service", None)
    refused = await tenant.admin.client.post(BASE, json={"email": address(), "kind": "service", "password": PASSWORD})
    assert (refused.status_code, refused.json()["detail"][0]["loc"]) == (422, ["body", "password"])
    reset = await tenant.admin.client.post(f"{BASE}/{created['id']}/password-reset")
    assert reset.status_code == 409


async def test_an_address_of_a_proven_domain_is_verified(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant
) -> None:
    domain = f"{uuid4().hex[:10]}.test"
    platform.sql(
        "INSERT INTO allowed_domains (tenant_id, domain, verified_at) VALUES (%s, %s, now())", [tenant.id, domain]
    )
    created = await create_user(tenant.admin, email=address(domain))
    assert created["email_verified"] is True
    assert (await create_user(other_tenant.admin, email=address(domain)))["email_verified"] is False
    moved = await tenant.admin.client.patch(f"{BASE}/{created['id']}", json={"email": address()})
    assert moved.json()["email_verified"] is False


async def test_the_list_pages_searches_and_filters(tenant: Tenant) -> None:
    first = await create_user(tenant.admin, email=address(), display_name="100%_Ada")
    second = await create_user(tenant.admin, username="grace.h", role="auditor")
    await tenant.admin.client.patch(f"{BASE}/{second['id']}", json={"is_active": False})

    async def listed(**query: object) -> list[str]:
        body = (await tenant.auditor.client.get(BASE, params=query)).json()
        assert body["total"] >= len(body["items"])
        return [user["id"] for user in body["items"]]

    page = (await tenant.admin.client.get(BASE, params={"page": 2, "page_size": 2})).json()
    assert (page["total"], page["page"], page["page_size"], len(page["items"])) == (5, 2, 2, 2)
    assert (await listed())[:2] == [second["id"], first["id"]]
    assert await listed(search="100%_a") == [first["id"]]
    assert await listed(search="GRACE") == [second["id"]]
    assert await listed(search="%") == [first["id"]]
    assert await listed(active=False) == [second["id"]]
    assert await listed(role="auditor", active=True) == [str(tenant.auditor.id)]
    bot = await create_user(tenant.admin, kind="service")
    assert await listed(kind="service") == [bot["id"]]
    assert bot["id"] not in await listed(kind="user")
    for query in (
        {"role": "king"},
        {"page": 0},
        {"page_size": 201},
        {"active": "perhaps"},
        {"search": "\0"},
        {"kind": "x"},
        {"sort": "email"},
        {"max_total": 0},
    ):
        assert (await tenant.admin.client.get(BASE, params=query)).status_code == 422


@pytest.mark.parametrize(
    ("sort", "names"),
    [
        ("created_at", ["Grace", "ada", "machine", "Linus"]),
        ("-created_at", ["Linus", "machine", "ada", "Grace"]),
        ("name", ["ada", "Grace", "Linus", "machine"]),
        ("-name", ["machine", "Linus", "Grace", "ada"]),
        ("role", ["ada", "Grace", "machine", "Linus"]),
        ("-last_login_at", ["ada", "Linus", "machine", "Grace"]),
        ("last_login_at", ["Grace", "machine", "Linus", "ada"]),
    ],
)
async def test_the_list_is_sorted(platform: RunningPlatform, tenant: Tenant, sort: str, names: list[str]) -> None:
    for minute, (name, role) in enumerate(
        (("Grace", "auditor"), ("ada", "admin"), ("machine", "auditor"), ("Linus", "user"))
    ):
        # A directory's user without an address is sorted by the user name.
        named = {"username": name} if name == "machine" else {"display_name": name}
        user = await create_user(tenant.admin, email=address(), role=role, **named)
        email = f"{user['id']}@no-address.invalid" if name == "machine" else user["email"]
        signed_in = {"ada": "now()", "Linus": "now() - interval '1 day'"}.get(name, "NULL")
        platform.sql(
            f"UPDATE users SET created_at = now() + interval '{minute} minutes', last_login_at = {signed_in},"
            " email = %s WHERE id = %s",
            [email, user["id"]],
        )
    users = (await tenant.admin.client.get(BASE, params={"sort": sort, "page_size": 200})).json()["items"]
    shown = [user["display_name"] or user["username"] for user in users]
    assert [name for name in shown if name in names] == names


async def test_a_search_with_many_matches_selects_the_same_users(platform: RunningPlatform, tenant: Tenant) -> None:
    platform.sql(
        "INSERT INTO users (id, tenant_id, email, display_name) SELECT gen_random_uuid(), %s,"
        " gen_random_uuid() || '@example.test', 'Bulk ' || n FROM generate_series(1, 1200) n",
        [tenant.id],
    )

    async def total(**parameters: object) -> int:
        page = (await tenant.admin.client.get(BASE, params={"sort": "name", "page_size": 3, **parameters})).json()
        assert [user["display_name"] for user in page["items"]] == ["Bulk 1", "Bulk 10", "Bulk 100"]
        return int(page["total"])

    assert await total(search="bulk") == 1200
    assert await total(search="bulk", max_total=1000) == 1000
    assert await total(search="bulk 1") == 312
    assert (await tenant.admin.client.get(BASE, params={"search": "bulk 1200"})).json()["total"] == 1


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "email"),
        ({"email": "nobody"}, "email"),
        ({"email": "a@localhost"}, "email"),
        ({"email": "a\0@b.test"}, "email"),
        ({"email": "a@b.test", "password": "short"}, "password"),
        ({"email": "a@b.test", "password": "x" * 1025}, "password"),
        ({"email": "a@b.test", "username": "a@b"}, "username"),
        ({"email": "a@b.test", "display_name": "x\0"}, "display_name"),
        ({"email": "a@b.test", "role": "operator"}, "role"),
        ({"email": "a@b.test", "operator": True}, "operator"),
        ({"email": "a@b.test", "tenant_id": "x"}, "tenant_id"),
    ],
)
async def test_a_bad_field_is_named(tenant: Tenant, body: dict[str, object], field: str) -> None:
    answer = await tenant.admin.client.post(BASE, json=body)
    assert answer.status_code == 422
    assert [fault["loc"] for fault in answer.json()["detail"]] == [["body", field]]


@pytest.mark.parametrize("field", ["email", "role", "is_active", "operator"])
async def test_an_update_refuses_null_for_required_fields(tenant: Tenant, field: str) -> None:
    answer = await tenant.admin.client.patch(f"{BASE}/{tenant.user.id}", json={field: None})
    assert (answer.status_code, answer.json()["detail"][0]["loc"]) == (422, ["body", field])


async def test_addresses_and_names_are_unique_within_a_tenant(tenant: Tenant, other_tenant: Tenant) -> None:
    mine = await create_user(tenant.admin, username="Ada")
    for body in ({"email": mine["email"].upper()}, {"email": address(), "username": "aDA"}):
        answer = await tenant.admin.client.post(BASE, json=body)
        assert (answer.status_code, set(answer.json())) == (409, {"detail"})
    second = await create_user(tenant.admin)
    for body in ({"email": mine["email"]}, {"username": "ada"}):
        assert (await tenant.admin.client.patch(f"{BASE}/{second['id']}", json=body)).status_code == 409
    await create_user(other_tenant.admin, email=mine["email"], username="ada")


async def test_an_update_changes_only_the_sent_fields(platform: RunningPlatform, tenant: Tenant) -> None:
    before = await create_user(tenant.admin, username="ada", display_name="Ada")
    path = f"{BASE}/{before['id']}"
    after = (await tenant.admin.client.patch(path, json={"display_name": None, "role": "auditor"})).json()
    assert (after["display_name"], after["role"], after["username"]) == (None, "auditor", "ada")
    (event,) = await platform.audit(tenant, "user.updated")
    assert event["details"] == {"display_name": None, "role": "auditor"}
    assert (await tenant.admin.client.patch(path, json={"role": "auditor"})).status_code == 200
    assert len(await platform.audit(tenant, "user.updated")) == 1


async def test_a_new_role_applies_to_the_next_request(tenant: Tenant) -> None:
    assert (await tenant.user.client.get(BASE)).status_code == 403
    await tenant.admin.client.patch(f"{BASE}/{tenant.user.id}", json={"role": "auditor"})
    assert (await tenant.user.client.get(BASE)).status_code == 200
    await tenant.admin.client.patch(f"{BASE}/{tenant.user.id}", json={"role": "user"})
    assert (await tenant.user.client.get(BASE)).status_code == 403


async def test_deactivation_ends_sessions_and_stops_keys_at_once(platform: RunningPlatform, tenant: Tenant) -> None:
    key = platform.client(await platform.new_key(tenant.user))
    path = f"{BASE}/{tenant.user.id}"
    assert (await tenant.admin.client.patch(path, json={"is_active": False})).status_code == 200
    assert (await key.get("/v1/models")).status_code == 401
    assert (await tenant.user.client.get("/v1/models")).status_code == 401
    await tenant.admin.client.patch(path, json={"is_active": True})
    # Keys become valid again with their user. Ended sessions stay ended.
    assert (await key.get("/v1/models")).status_code == 200
    assert (await tenant.user.client.get("/v1/models")).status_code == 401


async def test_a_users_sessions_and_keys_are_deleted_with_the_user(platform: RunningPlatform, tenant: Tenant) -> None:
    key = platform.client(await platform.new_key(tenant.user))
    platform.sql(
        "INSERT INTO oauth_clients (id, client_id, tenant_id, name, secret_digest, created_by)"
        " VALUES (%s, %s, %s, 'a machine', '', %s)",
        [uuid4(), (client_id := uuid4()), tenant.id, tenant.user.id],
    )
    assert (await tenant.admin.client.delete(f"{BASE}/{tenant.user.id}")).status_code == 204
    assert (await key.get("/v1/models")).status_code == 401
    assert (await tenant.user.client.get("/v1/models")).status_code == 401
    assert (await tenant.admin.client.get(f"{BASE}/{tenant.user.id}")).status_code == 404
    for table in ("api_keys", "sessions"):
        assert platform.sql(f"SELECT 1 FROM {table} WHERE user_id = %s", [tenant.user.id]) == []
    assert platform.sql("SELECT created_by FROM oauth_clients WHERE client_id = %s", [client_id]) == [(None,)]
    (event,) = await platform.audit(tenant, "user.deleted")
    assert event["resource_id"] == str(tenant.user.id)


async def test_the_last_active_administrator_cannot_be_removed(tenant: Tenant) -> None:
    path = f"{BASE}/{tenant.admin.id}"
    service = await create_user(tenant.admin, kind="service", role="admin")
    for attempt in (
        tenant.admin.client.patch(path, json={"role": "user"}),
        tenant.admin.client.patch(path, json={"is_active": False}),
        tenant.admin.client.delete(path),
    ):
        answer = await attempt
        assert (answer.status_code, set(answer.json())) == (409, {"detail"})
    assert (await tenant.admin.client.delete(f"{BASE}/{service['id']}")).status_code == 204
    await create_user(tenant.admin, role="admin")
    assert (await tenant.admin.client.patch(path, json={"role": "user"})).status_code == 200


async def test_one_of_two_administrators_who_demote_each_other_remains(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    other = await platform.new_person(tenant.id, "admin")
    answers = await asyncio.gather(
        tenant.admin.client.patch(f"{BASE}/{other.id}", json={"role": "user"}),
        other.client.patch(f"{BASE}/{tenant.admin.id}", json={"role": "user"}),
    )
    assert sorted(answer.status_code for answer in answers) in ([200, 403], [200, 409])
    admins = "SELECT count(*) FROM users WHERE tenant_id = %s AND role = 'admin' AND is_active"
    assert platform.sql(admins, [tenant.id]) == [(1,)]


async def test_only_administrators_have_access(platform: RunningPlatform, tenant: Tenant) -> None:
    path = f"{BASE}/{tenant.user.id}"
    calls: list[tuple[str, str, dict[str, Any] | None]] = [
        ("GET", BASE, None),
        ("GET", path, None),
        ("POST", BASE, {"email": address()}),
        ("PATCH", path, {"role": "admin"}),
        ("DELETE", path, None),
        ("POST", f"{path}/password-reset", None),
    ]
    reader = await platform.new_m2m(tenant.id, "admin:read")
    for method, target, body in calls:
        assert (await platform.anonymous.request(method, target, json=body)).status_code == 401
        assert (await tenant.user.client.request(method, target, json=body)).status_code == 403
        expected = {200} if method == "GET" else {403}
        assert (await tenant.auditor.client.request(method, target, json=body)).status_code in expected
        assert (await reader.request(method, target, json=body)).status_code in expected


async def test_another_organizations_user_is_not_found(tenant: Tenant, other_tenant: Tenant) -> None:
    path = f"{BASE}/{tenant.user.id}"
    for method, target in (("GET", path), ("PATCH", path), ("DELETE", path), ("POST", f"{path}/password-reset")):
        body = {"role": "admin"} if method == "PATCH" else None
        answer = await other_tenant.admin.client.request(method, target, json=body)
        assert (answer.status_code, answer.json()) == (404, {"detail": "User not found"})
    listed = (await other_tenant.admin.client.get(BASE)).json()["items"]
    assert str(tenant.user.id) not in {user["id"] for user in listed}


async def test_a_machine_cannot_create_administrators(platform: RunningPlatform, tenant: Tenant) -> None:
    machine = await platform.new_m2m(tenant.id, "admin:write", *USER_SCOPES)
    assert (await machine.post(BASE, json={"email": address(), "role": "admin"})).status_code == 403
    assert (await machine.post(BASE, json={"email": address(), "role": "auditor"})).status_code == 403
    user = await machine.post(BASE, json={"email": address()})
    assert user.status_code == 201
    path = f"{BASE}/{user.json()['id']}"
    assert (await machine.patch(path, json={"role": "admin"})).status_code == 403
    assert (await machine.patch(path, json={"display_name": "Ada"})).status_code == 200
    # The machine also cannot change the address or reset the password of an administrator or auditor.
    for admin in (f"{BASE}/{tenant.admin.id}", f"{BASE}/{tenant.auditor.id}"):
        assert (await machine.patch(admin, json={"email": address()})).status_code == 403
        assert (await machine.post(f"{admin}/password-reset")).status_code == 403


@pytest.mark.parametrize("missing_scope", USER_SCOPES)
async def test_a_machine_cannot_become_a_user_with_more_rights(
    platform: RunningPlatform, tenant: Tenant, missing_scope: str
) -> None:
    scopes = [scope for scope in USER_SCOPES if scope != missing_scope]
    machine = await platform.new_m2m(tenant.id, "admin:write", *scopes)
    assert (await machine.post(BASE, json={"email": address(), "password": "a long password"})).status_code == 403
    assert (await machine.post(BASE, json={"email": address()})).status_code == 403
    theirs = f"{BASE}/{tenant.user.id}"
    assert (await machine.post(f"{theirs}/password-reset")).status_code == 403
    assert (await machine.patch(theirs, json={"email": address()})).status_code == 403


async def test_a_key_with_few_scopes_cannot_create_administrators(platform: RunningPlatform, tenant: Tenant) -> None:
    platform.sql("UPDATE tenants SET feature_flags = '{\"api_key_scoping\": true}' WHERE id = %s", [tenant.id])
    scoped = platform.client(await platform.new_key(tenant.admin, scopes=["admin:write"]))
    full_key = platform.client(await platform.new_key(tenant.admin))
    assert (await scoped.post(BASE, json={"email": address(), "role": "admin"})).status_code == 403
    assert (await scoped.patch(f"{BASE}/{tenant.user.id}", json={"role": "admin"})).status_code == 403
    assert (await full_key.post(BASE, json={"email": address(), "role": "admin"})).status_code == 201


async def test_only_operators_change_operators(platform: RunningPlatform) -> None:
    operator = await platform.operator()
    default = platform.sql("SELECT tenant_id FROM users WHERE id = %s", [operator.id])[0][0]
    admin = await platform.new_person(default, "admin")
    theirs, mine = f"{BASE}/{operator.id}", f"{BASE}/{admin.id}"
    assert (await admin.client.patch(theirs, json={"display_name": "x"})).status_code == 403
    assert (await admin.client.delete(theirs)).status_code == 403
    assert (await admin.client.post(f"{theirs}/password-reset")).status_code == 403
    assert (await admin.client.patch(mine, json={"operator": True})).status_code == 403
    promoted = await operator.client.patch(mine, json={"operator": True})
    assert (promoted.status_code, promoted.json()["operator"]) == (200, True)
    demoted = await operator.client.patch(mine, json={"role": "user"})
    assert (demoted.json()["role"], demoted.json()["operator"]) == ("user", False)
    assert (await operator.client.patch(mine, json={"operator": True})).status_code == 409


async def test_an_administrator_of_another_organization_cannot_become_an_operator(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    answer = await tenant.admin.client.patch(f"{BASE}/{tenant.admin.id}", json={"operator": True})
    assert answer.status_code == 403


async def test_a_platform_wide_client_has_no_users(platform: RunningPlatform) -> None:
    machine = await platform.new_m2m(None, "admin:write", "admin:read")
    assert (await machine.get(BASE)).status_code == 403


async def test_step_up_is_required_if_the_policy_requires_it(platform: RunningPlatform, tenant: Tenant) -> None:
    await platform.require_mfa(tenant.id)
    platform.touch("tenant", tenant.id)
    await platform.refresh()
    answer = await tenant.admin.client.post(BASE, json={"email": address()})
    assert (answer.status_code, answer.json()["error"]) == (403, "mfa_required")
