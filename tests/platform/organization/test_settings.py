"""Organization settings (docs/organization.md)."""

import asyncio
from typing import Any

import pytest
from tests.support.platform import RunningPlatform, Tenant

BASE = "/api/v1/admin/org/settings"
FIELDS = {
    "org_id", "display_name", "slug", "allowed_domains", "contact_email", "timezone", "session_timeout_minutes",
    "idle_timeout_minutes", "ip_allowlist", "feature_flags", "sources", "created_at", "updated_at",
}  # fmt: skip


async def test_every_field_is_shown_with_its_value_in_force(tenant: Tenant) -> None:
    answer = await tenant.auditor.client.get(BASE)
    assert answer.status_code == 200
    settings = answer.json()
    assert set(settings) == FIELDS
    assert (settings["org_id"], settings["slug"]) == (str(tenant.id), tenant.slug)
    assert (settings["timezone"], settings["contact_email"], settings["ip_allowlist"]) == ("UTC", None, [])
    assert settings["session_timeout_minutes"] >= settings["idle_timeout_minutes"]
    assert settings["feature_flags"]["dlp_enabled"] is True


async def test_only_the_sent_fields_change_and_are_audited(platform: RunningPlatform, tenant: Tenant) -> None:
    before = (await tenant.admin.client.get(BASE)).json()
    sent = {"display_name": "Analytical Engines", "contact_email": "Ada@Example.com", "timezone": "Europe/Berlin"}
    answer = await tenant.admin.client.put(BASE, json=sent)
    assert answer.status_code == 200, answer.text
    after = answer.json()
    assert after == {**before, **sent, "contact_email": "ada@example.com", "updated_at": after["updated_at"]}
    assert after["updated_at"] > before["updated_at"]
    assert (await tenant.admin.client.get(BASE)).json() == after
    (event,) = await platform.audit(tenant, "organization.changed")
    assert event["details"]["timezone"] == "Europe/Berlin"
    assert event["details"]["before"]["timezone"] == "UTC"
    assert (await tenant.admin.client.put(BASE, json={"contact_email": None})).json()["contact_email"] is None


async def test_an_unchanged_setting_is_not_audited_and_keeps_its_version(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    before = (await tenant.admin.client.get(BASE)).json()
    sent = {name: before[name] for name in FIELDS - {"org_id", "created_at", "updated_at"}}
    answer = await tenant.admin.client.put(BASE, json=sent)
    assert (answer.status_code, answer.json()) == (200, before)
    for action in ("organization.changed", "session_policy.changed", "ip_allowlist.changed", "feature_flag.changed"):
        assert await platform.audit(tenant, action) == []


async def test_flags_sent_with_the_settings_follow_their_rules(platform: RunningPlatform, tenant: Tenant) -> None:
    answer = await tenant.admin.client.put(BASE, json={"feature_flags": {"human_in_loop": True}})
    flags, sources = answer.json()["feature_flags"], answer.json()["sources"]
    assert (sources["feature_flags.human_in_loop"], sources["feature_flags.dlp_enabled"]) == ("organization", "default")
    assert sources["session_timeout_minutes"] == "default"
    assert (flags["human_in_loop"], flags["dlp_enabled"], len(flags)) == (True, True, 9)
    (event,) = await platform.audit(tenant, "feature_flag.changed")
    assert event["resource_id"] == "human_in_loop"
    assert (await platform.host.policies.current(tenant.id)).feature_flags["human_in_loop"] is True


async def test_fields_of_other_families_are_validated_by_their_rules(platform: RunningPlatform, tenant: Tenant) -> None:
    sent: dict[str, Any] = {
        "session_timeout_minutes": 60,
        "ip_allowlist": ["127.0.0.77/8"],
        "allowed_domains": ["Example.com", "example.org"],
    }
    answer = await tenant.admin.client.put(BASE, json=sent)
    assert answer.status_code == 200, answer.text
    settings = answer.json()
    # A shorter session timeout that is sent alone also shortens the idle timeout.
    assert (settings["session_timeout_minutes"], settings["idle_timeout_minutes"]) == (60, 60)
    assert settings["ip_allowlist"] == ["127.0.0.0/8"]
    assert settings["allowed_domains"] == ["example.com", "example.org"]
    for action in ("session_policy.changed", "ip_allowlist.changed", "allowed_domain.added"):
        assert await platform.audit(tenant, action)
    shorter = await tenant.admin.client.put(BASE, json={"allowed_domains": ["example.org"]})
    assert shorter.json()["allowed_domains"] == ["example.org"]
    assert [event["resource_id"] for event in await platform.audit(tenant, "allowed_domain.removed")] == ["example.com"]


async def test_with_one_bad_field_nothing_changes(platform: RunningPlatform, tenant: Tenant) -> None:
    before = (await tenant.admin.client.get(BASE)).json()
    idle = {"display_name": "x", "session_timeout_minutes": 30, "idle_timeout_minutes": 31}
    answer = await tenant.admin.client.put(BASE, json=idle)
    assert (answer.status_code, answer.json()["details"][0]["field"]) == (422, "idle_timeout_minutes")
    assert (await tenant.admin.client.get(BASE)).json() == before
    assert await platform.audit(tenant, "organization.changed") == []


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"display_name": ""}, "display_name"),
        ({"display_name": None}, "display_name"),
        ({"slug": "Not A Slug"}, "slug"),
        ({"contact_email": "nobody"}, "contact_email"),
        ({"timezone": "Europe/Atlantis"}, "timezone"),
        ({"timezone": "../etc/passwd"}, "timezone"),
        ({"session_timeout_minutes": 14}, "session_timeout_minutes"),
        ({"session_timeout_minutes": 1441}, "session_timeout_minutes"),
        ({"session_timeout_minutes": "60"}, "session_timeout_minutes"),
        ({"idle_timeout_minutes": 0}, "idle_timeout_minutes"),
        ({"ip_allowlist": ["10.0.0.0/8", "10.0.0.0/33"]}, "ip_allowlist.1"),
        ({"allowed_domains": ["no domain"]}, "allowed_domains.0"),
        ({"feature_flags": {"nonsense": True}}, "feature_flags.nonsense"),
        ({"feature_flags": {"dlp_enabled": "yes"}}, "feature_flags.dlp_enabled"),
        ({"org_id": "x"}, "org_id"),
        ({"surprise": 1}, "surprise"),
    ],
)
async def test_a_bad_field_is_named_in_details(tenant: Tenant, body: dict[str, Any], field: str) -> None:
    answer = await tenant.admin.client.put(BASE, json=body)
    assert (answer.status_code, answer.json()["error"]) == (422, "validation_error"), answer.text
    assert [fault["field"] for fault in answer.json()["details"]] == [field]


async def test_a_slug_is_unique(platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant) -> None:
    taken = await tenant.admin.client.put(BASE, json={"slug": other_tenant.slug})
    assert (taken.status_code, taken.json()["error"]) == (409, "slug_taken")
    free = f"{tenant.slug}-new"
    assert (await tenant.admin.client.put(BASE, json={"slug": free})).json()["slug"] == free


async def test_the_operators_organization_keeps_its_slug(platform: RunningPlatform) -> None:
    operator = await platform.operator()
    answer = await operator.client.put(BASE, json={"slug": "something-else"})
    assert (answer.status_code, answer.json()["error"]) == (409, "slug_of_operators")


async def test_callers_without_the_right_are_refused(platform: RunningPlatform, tenant: Tenant) -> None:
    anonymous = await platform.anonymous.get(BASE)
    assert (anonymous.status_code, anonymous.json()["error"]) == (401, "unauthorized")
    assert (await tenant.user.client.get(BASE)).json()["error"] == "forbidden"
    for person in (tenant.user, tenant.auditor):
        assert (await person.client.put(BASE, json={"display_name": "x"})).status_code == 403
    reader = await platform.new_m2m(tenant.id, "admin:read")
    assert (await reader.get(BASE)).status_code == 200
    assert (await reader.put(BASE, json={"display_name": "x"})).status_code == 403


async def test_organizations_see_only_their_own_settings(tenant: Tenant, other_tenant: Tenant) -> None:
    await tenant.admin.client.put(BASE, json={"display_name": "Ours", "timezone": "Asia/Tokyo"})
    theirs = (await other_tenant.admin.client.get(BASE)).json()
    assert (theirs["org_id"], theirs["timezone"]) == (str(other_tenant.id), "UTC")


async def test_only_one_of_two_changes_of_the_same_version_is_made(tenant: Tenant) -> None:
    version = (await tenant.admin.client.get(BASE)).headers["ETag"]
    changes = [{"display_name": "One"}, {"timezone": "Europe/Paris"}]
    answers = await asyncio.gather(
        *(tenant.admin.client.put(BASE, json=change, headers={"If-Match": version}) for change in changes)
    )
    assert sorted(answer.status_code for answer in answers) == [200, 412]
    result = next(answer.json() for answer in answers if answer.status_code == 412)
    assert result["error"] == "precondition_failed"
    # The next change succeeds with the version from the answer to the first.
    done = next(answer for answer in answers if answer.status_code == 200)
    again = {"If-Match": done.headers["ETag"]}
    assert (await tenant.admin.client.put(BASE, json={"timezone": "Asia/Tokyo"}, headers=again)).status_code == 200


async def test_two_changes_without_a_version_are_both_kept(tenant: Tenant) -> None:
    changes: list[dict[str, Any]] = [{"display_name": "One"}, {"session_timeout_minutes": 500}]
    await asyncio.gather(*(tenant.admin.client.put(BASE, json=change) for change in changes))
    settings = (await tenant.admin.client.get(BASE)).json()
    assert (settings["display_name"], settings["session_timeout_minutes"]) == ("One", 500)
