"""The portal's organizations (docs/portal.md, Organizations)."""

from typing import Any
from uuid import UUID, uuid4

import pytest
from tests.support.api_keys import looks_like_api_key
from tests.support.portal import Org, RunningPortal

from gatehouse.foundation.secrets import tokens

BASE = "/v1/orgs"


def new(**more: Any) -> dict[str, Any]:
    return {"name": "Analytical Engines", "slug": f"o-{uuid4().hex[:12]}", "plan_tier": "business", **more}


async def test_an_organization_is_created_with_a_key_shown_once(portal: RunningPortal) -> None:
    expected = new(contact_email="Ada@Example.com", billing_email="bills@example.com")
    answer = await portal.admin.post(BASE, json=expected)
    assert answer.status_code == 201, answer.text
    created = answer.json()
    assert set(created) == {"org", "api_key", "provisioning_job_id"}
    org = created["org"]
    assert {name: org[name] for name in ("name", "slug", "plan_tier", "status", "provisioning_status")} == {
        **{name: expected[name] for name in ("name", "slug", "plan_tier")},
        "status": "active",
        "provisioning_status": "provisioning",
    }
    assert (org["contact_email"], org["billing_email"]) == ("ada@example.com", "bills@example.com")
    assert org["tenant_id"] is None
    assert looks_like_api_key(created["api_key"])
    ((digest, prefix),) = portal.sql("SELECT key_digest, key_prefix FROM organizations WHERE id = %s", [org["id"]])
    assert (digest, prefix) == (tokens.digest(created["api_key"]), created["api_key"][:8])
    ((kind, org_id),) = portal.sql("SELECT kind, org_id FROM jobs WHERE id = %s", [created["provisioning_job_id"]])
    assert (kind, str(org_id)) == ("org_provision", org["id"])


async def test_creation_is_in_the_audit_without_the_key(portal: RunningPortal) -> None:
    created = (await portal.admin.post(BASE, json=new(), headers={"X-Request-Id": "the-making"})).json()
    (row,) = portal.audit(UUID(created["org"]["id"]), "organization.created")
    assert (row["actor_type"], row["request_id"]) == ("admin_key", "the-making")
    assert row["details"]["slug"] == created["org"]["slug"]
    assert created["api_key"] not in str(row)


async def test_the_contact_is_its_owner_and_shown_as_an_administrator(portal: RunningPortal) -> None:
    org = await portal.new_org(contact_email="owner@example.com")
    (owner,) = (await org.client.get(f"{org.path}/members")).json()
    assert (owner["email"], owner["role"], owner["accepted_at"]) == ("owner@example.com", "admin", None)
    assert portal.sql("SELECT role FROM members WHERE id = %s", [owner["id"]]) == [("owner",)]


async def test_a_slug_is_never_reused(portal: RunningPortal, org: Org) -> None:
    answer = await portal.admin.post(BASE, json=new(slug=org.slug))
    assert (answer.status_code, answer.json()["error"]) == (409, "conflict")
    await portal.admin.delete(org.path)
    assert (await portal.admin.post(BASE, json=new(slug=org.slug))).status_code == 409


async def test_a_tenant_belongs_to_one_organization_until_it_is_cancelled(portal: RunningPortal) -> None:
    tenant_id = str(uuid4())
    first = await portal.new_org(tenant_id=tenant_id)
    answer = await portal.admin.post(BASE, json=new(tenant_id=tenant_id))
    assert (answer.status_code, answer.json()["detail"].partition(":")[0]) == (409, "tenant_id")
    await portal.admin.delete(first.path)
    assert (await portal.admin.post(BASE, json=new(tenant_id=tenant_id))).status_code == 201


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": None}, "name"),
        ({"name": "a\0b"}, "name"),
        ({"slug": "Upper"}, "slug"),
        ({"slug": "-x"}, "slug"),
        ({"slug": "x" * 64}, "slug"),
        ({"plan_tier": "free"}, "plan_tier"),
        ({"contact_email": "nobody"}, "contact_email"),
        ({"billing_email": 1}, "billing_email"),
        ({"tenant_id": "x"}, "tenant_id"),
        ({"surprise": 1}, "surprise"),
    ],
)
async def test_a_bad_field_is_named(portal: RunningPortal, body: dict[str, Any], field: str) -> None:
    answer = await portal.admin.post(BASE, json={**new(), **body})
    assert (answer.status_code, answer.json()["error"]) == (422, "validation_error")
    assert answer.json()["detail"].startswith(f"{field}: ")


async def test_every_missing_field_is_named(portal: RunningPortal) -> None:
    detail = (await portal.admin.post(BASE, json={})).json()["detail"]
    assert [part.partition(":")[0] for part in detail.split("; ")] == ["name", "slug", "plan_tier"]


async def test_a_token_shows_its_organization(portal: RunningPortal, org: Org) -> None:
    stored = await org.client.get(org.path)
    assert stored.status_code == 200, stored.text
    assert (stored.json()["id"], stored.json()["slug"], stored.json()["status"]) == (str(org.id), org.slug, "active")
    member = await portal.new_member(org)
    assert (await member.client.get(f"{org.path}/")).json()["slug"] == org.slug


async def test_only_the_sent_fields_change(portal: RunningPortal) -> None:
    org = await portal.new_org("starter", billing_email="bills@example.com")
    changed = await portal.admin.patch(org.path, json={"name": "Renamed"})
    assert changed.status_code == 200
    assert (changed.json()["name"], changed.json()["billing_email"]) == ("Renamed", "bills@example.com")
    cleared = await portal.admin.patch(org.path, json={"billing_email": None})
    assert (cleared.json()["name"], cleared.json()["billing_email"]) == ("Renamed", None)
    assert [row["details"] for row in portal.audit(org.id, "organization.updated")] == [
        {"name": "Renamed"},
        {"billing_email": None},
    ]
    # The name is sent to the platform. The billing address is not.
    assert portal.sql("SELECT kind FROM jobs WHERE org_id = %s AND kind <> 'org_provision'", [org.id]) == [
        ("org_update",)
    ]


async def test_another_plan_is_queued_for_the_platform(portal: RunningPortal) -> None:
    org = await portal.new_org("starter")
    changed = await portal.admin.patch(org.path, json={"plan_tier": "enterprise"})
    assert changed.json()["plan_tier"] == "enterprise"
    assert portal.sql("SELECT count(*) FROM jobs WHERE org_id = %s AND kind = 'entitlement_update'", [org.id]) == [(1,)]


@pytest.mark.parametrize(
    ("body", "field"), [({"plan_tier": "free"}, "plan_tier"), ({"name": None}, "name"), ({"slug": "other"}, "slug")]
)
async def test_a_bad_change_names_the_field(portal: RunningPortal, org: Org, body: dict[str, Any], field: str) -> None:
    answer = await portal.admin.patch(org.path, json=body)
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith(f"{field}: ")


async def test_an_administrator_of_the_organization_changes_only_its_name(portal: RunningPortal, org: Org) -> None:
    admin = await portal.new_member(org, "admin")
    changed = await admin.client.patch(f"{org.path}/settings", json={"name": "By ourselves"})
    assert (changed.status_code, changed.json()["name"]) == (200, "By ourselves")
    for body in ({"plan_tier": "business"}, {"name": "x", "plan_tier": "business"}, {}):
        assert (await admin.client.patch(f"{org.path}/settings", json=body)).status_code == 422
    (row,) = portal.audit(org.id, "organization.updated")
    assert (row["actor_type"], row["actor_id"]) == ("member", str(admin.id))


async def test_a_cancelled_organization_and_its_tokens_are_refused(portal: RunningPortal, org: Org) -> None:
    assert (await portal.admin.delete(org.path)).status_code == 204
    assert (await org.client.get(org.path)).status_code == 404
    assert (await portal.admin.patch(org.path, json={"name": "x"})).status_code == 404
    repeated = await portal.admin.delete(org.path)
    assert (repeated.status_code, repeated.json()["error"]) == (409, "conflict")
    assert (await portal.admin.delete(f"{BASE}/{uuid4()}")).status_code == 404
    assert (await portal.admin.delete(f"{BASE}/nonsense")).status_code == 404
    assert len(portal.audit(org.id, "organization.cancelled")) == 1
    assert portal.sql("SELECT count(*) FROM jobs WHERE org_id = %s AND kind = 'org_deprovision'", [org.id]) == [(1,)]


async def test_an_organization_and_a_member_can_be_written_back_as_read(portal: RunningPortal, org: Org) -> None:
    admin = (await portal.new_member(org, "admin")).client
    stored = (await admin.get(org.path)).json()
    answer = await admin.patch(f"{org.path}/settings", json=stored)
    assert answer.status_code == 200, answer.text
    changed = await admin.patch(f"{org.path}/settings", json={**stored, "slug": "another"})
    assert (changed.status_code, "slug" in changed.json()["detail"]) == (422, True)
    unknown = await admin.patch(f"{org.path}/settings", json={**stored, "nobodys_field": 1})
    assert (unknown.status_code, "nobodys_field" in unknown.json()["detail"]) == (422, True)
    after = (await org.client.get(org.path)).json()
    moving = {"provisioning_status": None, "updated_at": None}
    assert {**after, **moving} == {**stored, **moving}
    member = await portal.new_member(org, "member")
    members = (await org.client.get(f"{org.path}/members")).json()
    (stored,) = [item for item in members if item["id"] == str(member.id)]
    answer = await org.client.put(f"{org.path}/members/{member.id}", json=stored)
    assert answer.status_code == 200, answer.text


async def test_unknown_parameters_are_refused_and_malformed_ids_unknown(org: Org) -> None:
    for path in (org.path, f"{org.path}/members", f"{org.path}/notifications"):
        answer = await org.client.get(path, params={"nobodys_parameter": "1"})
        assert (answer.status_code, "nobodys_parameter" in answer.json()["detail"]) == (422, True)
    answer = await org.client.patch(f"{org.path}/settings", json={"name": "x"}, params={"nobodys_parameter": "1"})
    assert (answer.status_code, "nobodys_parameter" in answer.json()["detail"]) == (422, True)
    answer = await org.client.get(f"{org.path}/outposts/nope")
    assert (answer.status_code, answer.json()["error"]) == (404, "not_found")
    assert (await org.client.put(f"{org.path}/members/nope", json={"role": "admin"})).status_code == 404


async def test_browsers_must_not_sniff_json(org: Org) -> None:
    assert (await org.client.get(org.path)).headers["x-content-type-options"] == "nosniff"
