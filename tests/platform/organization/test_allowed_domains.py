"""An organization's mail domains (docs/organization.md, "Mail domains")."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import httpx2
import pytest
from tests.support.dns import NameServer, name_server
from tests.support.platform import PASSWORD, RunningPlatform, Tenant

from gatehouse.foundation.secrets.tokens import mint_api_key

BASE = "/api/v1/admin/org/allowed-domains"


@pytest.fixture
def domain() -> str:
    return f"{uuid4().hex[:12]}.test"


@pytest.fixture
async def names(platform: RunningPlatform) -> AsyncIterator[NameServer]:
    """The name server that the platform queries."""
    before = platform.host.resolver
    async with name_server() as (server, resolver):
        platform.host.resolver = resolver
        yield server
    platform.host.resolver = before


async def add(tenant: Tenant, domain: str, **body: Any) -> dict[str, Any]:
    answer = await tenant.admin.client.post(BASE, json={"domain": domain, **body})
    assert answer.status_code == 201, answer.text
    entry: dict[str, Any] = answer.json()
    return entry


async def verify(tenant: Tenant, domain: str) -> httpx2.Response:
    return await tenant.admin.client.post(f"{BASE}/{domain}/verify")


async def prove(tenant: Tenant, names: NameServer, entry: dict[str, Any]) -> None:
    names.records[entry["txt_record"]["name"]] = [entry["txt_record"]["value"]]
    answer = await verify(tenant, entry["domain"])
    assert (answer.status_code, answer.json()["verified"]) == (200, True), answer.text


async def test_an_added_domain_shows_its_dns_record(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant, domain: str
) -> None:
    entry = await add(tenant, domain.upper(), jit_provisioning=True)
    assert (entry["domain"], entry["verified"], entry["verified_at"]) == (domain, False, None)
    assert entry["txt_record"]["name"] == f"_gatehouse.{domain}"
    listed = (await tenant.auditor.client.get(BASE)).json()
    assert listed == {
        "domains": [domain], "jit_provisioning": True, "self_registration": False, "default_group_id": None,
        "entries": [entry],
    }  # fmt: skip
    # Another organization may add the same domain, with another record.
    assert (await add(other_tenant, domain))["txt_record"]["value"] != entry["txt_record"]["value"]
    (event,) = await platform.audit(tenant, "allowed_domain.added")
    assert (event["resource_id"], event["details"]["jit_provisioning"]) == (domain, True)


async def test_an_organization_without_domains_has_an_empty_list(tenant: Tenant) -> None:
    nothing = {
        "domains": [],
        "jit_provisioning": False,
        "self_registration": False,
        "default_group_id": None,
        "entries": [],
    }
    assert (await tenant.admin.client.get(BASE)).json() == nothing


async def test_the_same_domain_again_is_409(tenant: Tenant, domain: str) -> None:
    await add(tenant, domain)
    again = await tenant.admin.client.post(BASE, json={"domain": domain.title()})
    assert (again.status_code, again.json()["error"]) == (409, "domain_exists")


async def test_a_domain_is_verified_only_by_its_dns_record(
    platform: RunningPlatform, tenant: Tenant, names: NameServer, domain: str
) -> None:
    entry = await add(tenant, domain)
    record = entry["txt_record"]
    for records in ({}, {record["name"]: []}, {record["name"]: ["v=spf1 -all", record["value"] + "0"]}):
        names.records = records
        refused = await verify(tenant, domain)
        assert (refused.status_code, refused.json()["error"]) == (409, "domain_not_proven")
        assert record["name"] in refused.json()["message"]
    names.records = {record["name"]: ["v=spf1 -all", record["value"]]}
    proven = await verify(tenant, domain)
    assert (proven.status_code, proven.json()["verified"]) == (200, True)
    assert names.queried_names[-1] == record["name"]
    assert (await verify(tenant, domain)).json() == proven.json()
    (event,) = await platform.audit(tenant, "allowed_domain.verified")
    assert (event["resource_id"], event["details"]) == (domain, {"by": "dns", "addresses": 0})


async def test_failing_name_servers_are_503_and_verify_nothing(tenant: Tenant, names: NameServer, domain: str) -> None:
    await add(tenant, domain)
    names.broken = True
    answer = await verify(tenant, domain)
    assert (answer.status_code, answer.json()["error"]) == (503, "dns_unavailable")
    assert (await tenant.admin.client.get(BASE)).json()["entries"][0]["verified"] is False


async def test_a_domain_is_verified_for_one_organization(
    tenant: Tenant, other_tenant: Tenant, names: NameServer, domain: str
) -> None:
    await prove(tenant, names, await add(tenant, domain))
    theirs = (await add(other_tenant, domain))["txt_record"]
    names.records[theirs["name"]] = [theirs["value"]]
    refused = await verify(other_tenant, domain)
    assert (refused.status_code, refused.json()["error"]) == (409, "domain_proven_elsewhere")
    assert (await tenant.admin.client.delete(f"{BASE}/{domain}")).status_code == 204
    assert (await verify(other_tenant, domain)).status_code == 200


async def test_an_operator_can_verify_a_domain_of_any_organization(
    platform: RunningPlatform, tenant: Tenant, names: NameServer, domain: str
) -> None:
    await add(tenant, domain)
    operator = await platform.operator()
    answer = await operator.client.post(f"{BASE}/{domain}/verify", params={"tenant_id": str(tenant.id)})
    assert (answer.status_code, answer.json()["verified"]) == (200, True), answer.text
    assert names.queried_names == []
    (event,) = await platform.audit(tenant, "allowed_domain.verified")
    assert (event["details"], event["actor_id"]) == ({"by": "operator", "addresses": 0}, str(operator.id))


async def test_only_operators_name_another_organization(
    tenant: Tenant, other_tenant: Tenant, names: NameServer, domain: str
) -> None:
    entry = await add(tenant, domain)
    names.records[entry["txt_record"]["name"]] = [entry["txt_record"]["value"]]
    for client, params in [
        (other_tenant.admin.client, {"tenant_id": str(tenant.id)}),
        (other_tenant.admin.client, {}),
        (tenant.admin.client, {"tenant_id": str(other_tenant.id)}),
    ]:
        answer = await client.post(f"{BASE}/{domain}/verify", params=params)
        assert (answer.status_code, answer.json()["error"]) == (404, "not_found")
    assert (await other_tenant.admin.client.delete(f"{BASE}/{domain}")).status_code == 404
    own = await tenant.admin.client.post(f"{BASE}/{domain}/verify", params={"tenant_id": str(tenant.id)})
    assert own.status_code == 200


async def test_addresses_of_a_verified_domain_are_verified_until_it_is_removed(
    platform: RunningPlatform, tenant: Tenant, names: NameServer, domain: str
) -> None:
    await prove(tenant, names, await add(tenant, domain))
    users = "/api/admin/users"
    made = (await tenant.admin.client.post(users, json={"email": f"ada@{domain}", "password": PASSWORD})).json()
    assert made["email_verified"] is True
    assert (await tenant.admin.client.delete(f"{BASE}/{domain}")).status_code == 204
    assert (await tenant.admin.client.get(f"{users}/{made['id']}")).json()["email_verified"] is False
    (event,) = await platform.audit(tenant, "allowed_domain.removed")
    assert event["details"] == {"was_proven": True}
    assert (await tenant.admin.client.delete(f"{BASE}/{domain}")).status_code == 404


async def test_a_registered_user_joins_the_domains_group(
    platform: RunningPlatform, tenant: Tenant, names: NameServer, domain: str
) -> None:
    group = (await tenant.admin.client.post("/api/admin/groups", json={"name": "newcomers"})).json()["id"]
    entry = await add(tenant, domain, self_registration=True, default_group_id=group)
    registration = {"email": f"ada@{domain}", "password": PASSWORD}
    assert (await platform.anonymous.post("/api/auth/register", json=registration)).status_code == 403
    await prove(tenant, names, entry)
    registered = await platform.anonymous.post("/api/auth/register", json=registration)
    assert registered.status_code == 202, registered.text
    await platform.host.later.settle()
    ((user_id,),) = platform.sql("SELECT id FROM users WHERE email = %s", [f"ada@{domain}"])
    (member,) = (await tenant.admin.client.get(f"/api/admin/groups/{group}/members")).json()
    assert member["user_id"] == str(user_id)
    # The worker has loaded the user with the group, so the user's first request already has the rights of the group.
    live = platform.host.replica.users[user_id]
    assert [str(group) for group in live.groups] == [group]
    (event,) = await platform.audit(tenant, "group.member_added")
    assert (event["resource_id"], event["details"]["user_id"]) == (group, str(user_id))


async def test_a_removed_group_leaves_the_domain_without_one(
    platform: RunningPlatform, tenant: Tenant, names: NameServer, domain: str
) -> None:
    group = (await tenant.admin.client.post("/api/admin/groups", json={"name": "gone"})).json()["id"]
    await prove(tenant, names, await add(tenant, domain, self_registration=True, default_group_id=group))
    await tenant.admin.client.delete(f"/api/admin/groups/{group}")
    assert (await tenant.admin.client.get(BASE)).json()["entries"][0]["default_group_id"] is None
    registration = {"email": f"ada@{domain}", "password": PASSWORD}
    assert (await platform.anonymous.post("/api/auth/register", json=registration)).status_code == 202


async def test_registration_can_be_switched_on_and_off_without_losing_the_verification(
    platform: RunningPlatform, tenant: Tenant, names: NameServer, domain: str
) -> None:
    group = (await tenant.admin.client.post("/api/admin/groups", json={"name": "newcomers"})).json()["id"]
    await prove(tenant, names, await add(tenant, domain))
    for sent, status in [
        ({"self_registration": True, "default_group_id": group}, 202),
        ({"default_group_id": None}, 202),
        ({"self_registration": False}, 403),
    ]:
        changed = await tenant.admin.client.patch(f"{BASE}/{domain}", json=sent)
        assert (changed.status_code, changed.json()["verified"]) == (200, True), changed.text
        assert {name: changed.json()[name] for name in sent} == sent
        registration = {"email": f"{uuid4().hex}@{domain}", "password": PASSWORD}
        assert (await platform.anonymous.post("/api/auth/register", json=registration)).status_code == status
        await platform.host.later.settle()
    assert len((await tenant.admin.client.get(f"/api/admin/groups/{group}/members")).json()) == 1
    events = await platform.audit(tenant, "allowed_domain.changed")
    assert [event["details"] for event in events][1:] == [{"default_group_id": None}, {"self_registration": False}]


async def test_a_bad_update_names_the_field_and_an_unknown_domain_is_404(tenant: Tenant, domain: str) -> None:
    await add(tenant, domain)
    for body in ({"default_group_id": str(uuid4())}, {"self_registration": None}, {"verified": True}):
        answer = await tenant.admin.client.patch(f"{BASE}/{domain}", json=body)
        assert (answer.status_code, [fault["field"] for fault in answer.json()["details"]]) == (422, list(body))
    assert (await tenant.admin.client.patch(f"{BASE}/x{domain}", json={})).status_code == 404


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "domain"),
        ({"domain": ""}, "domain"),
        ({"domain": "no domain"}, "domain"),
        ({"domain": "localhost"}, "domain"),
        ({"domain": "ada@example.com"}, "domain"),
        ({"domain": "a" * 64 + ".test"}, "domain"),
        ({"domain": "x" * 254}, "domain"),
        ({"domain": 5}, "domain"),
        ({"domain": "a.test", "jit_provisioning": "true"}, "jit_provisioning"),
        ({"domain": "a.test", "self_registration": 1}, "self_registration"),
        ({"domain": "a.test", "default_group_id": "x"}, "default_group_id"),
        ({"domain": "a.test", "default_group_id": str(uuid4())}, "default_group_id"),
        ({"domain": "a.test", "surprise": 1}, "surprise"),
    ],
)
async def test_a_bad_field_is_named_in_details(tenant: Tenant, body: dict[str, Any], field: str) -> None:
    answer = await tenant.admin.client.post(BASE, json=body)
    assert (answer.status_code, answer.json()["error"]) == (422, "validation_error"), answer.text
    assert [fault["field"] for fault in answer.json()["details"]] == [field]


async def test_another_organizations_group_is_refused(tenant: Tenant, other_tenant: Tenant, domain: str) -> None:
    theirs = (await other_tenant.admin.client.post("/api/admin/groups", json={"name": "theirs"})).json()["id"]
    answer = await tenant.admin.client.post(BASE, json={"domain": domain, "default_group_id": theirs})
    assert (answer.status_code, answer.json()["details"][0]["field"]) == (422, "default_group_id")


async def test_callers_without_the_right_are_refused(platform: RunningPlatform, tenant: Tenant, domain: str) -> None:
    await add(tenant, domain)
    calls = [
        ("POST", BASE),
        ("PATCH", f"{BASE}/{domain}"),
        ("DELETE", f"{BASE}/{domain}"),
        ("POST", f"{BASE}/{domain}/verify"),
    ]
    for method, path in calls:
        assert (await platform.anonymous.request(method, path)).status_code == 401
        for person in (tenant.user, tenant.auditor):
            answer = await person.client.request(method, path, json={"domain": "a.test"})
            assert (answer.status_code, answer.json()["error"]) == (403, "forbidden")
    assert (await tenant.user.client.get(BASE)).status_code == 403


async def test_verifying_a_domain_verifies_existing_addresses(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant, names: NameServer, domain: str
) -> None:
    """This includes the address of the portal's owner, who exists before any domain."""
    portal = await platform.new_m2m(None, "admin:write")
    key = mint_api_key()
    owner = {"email": f"owner@{domain}", "key_prefix": key.shown, "key_sha256": key.digest.hex()}
    assert (await portal.put(f"/v1/platform/tenants/{tenant.id}/owner", json=owner)).status_code == 200
    users = "/api/admin/users"
    emails = [f"ada@{domain}", f"ada@sub.{domain}"]
    ids = [(await tenant.admin.client.post(users, json={"email": email})).json()["id"] for email in emails]
    theirs = (await other_tenant.admin.client.post(users, json={"email": f"ada@{domain}"})).json()
    await prove(tenant, names, await add(tenant, domain))
    shown = [(await tenant.admin.client.get(f"{users}/{id_}")).json()["email_verified"] for id_ in ids]
    assert shown == [True, False]
    assert platform.sql("SELECT email_verified FROM users WHERE email = %s", [owner["email"]]) == [(True,)]
    assert (await other_tenant.admin.client.get(f"{users}/{theirs['id']}")).json()["email_verified"] is False
    (event,) = await platform.audit(tenant, "allowed_domain.verified")
    assert event["details"]["addresses"] == 2
