"""The retention policy: storage and validation (docs/organization.md, "Retention")."""

from typing import Any

import pytest
from tests.support.platform import RunningPlatform, Tenant

BASE = "/api/v1/admin/retention/policy"


async def test_a_new_organization_has_the_defaults_and_was_not_archived_yet(tenant: Tenant) -> None:
    assert (await tenant.auditor.client.get(BASE)).json() == {
        "hot_retention_days": 90,
        "warm_retention_days": 365,
        "cold_retention_years": 7,
        "archiver_schedule": "0 2 * * *",
        "sources": dict.fromkeys(
            ("hot_retention_days", "warm_retention_days", "cold_retention_years", "archiver_schedule"), "default"
        ),
        "last_archival_run": None,
        "last_archival_status": None,
        "rows_archived_last_run": None,
    }


async def test_only_the_sent_fields_change_and_are_audited(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant
) -> None:
    before = (await tenant.admin.client.get(BASE)).json()
    answer = await tenant.admin.client.put(BASE, json={"hot_retention_days": 30})
    assert (answer.status_code, answer.json()) == (
        200,
        {**before, "hot_retention_days": 30, "sources": {**before["sources"], "hot_retention_days": "organization"}},
    )
    assert (await tenant.admin.client.get(BASE)).json() == answer.json()
    assert (await other_tenant.admin.client.get(BASE)).json() == before
    await tenant.admin.client.put(BASE, json={"hot_retention_days": 30})
    (event,) = await platform.audit(tenant, "retention_policy.changed")
    assert event["details"] == {"hot_retention_days": 30, "before": {"hot_retention_days": 90}}


@pytest.mark.parametrize(
    ("schedule", "kept"),
    [("*/15 * * * *", "*/15 * * * *"), ("  0   3 * jan-mar 1-5 ", "0 3 * jan-mar 1-5"), ("0 0 29 2 *", "0 0 29 2 *")],
)
async def test_a_schedule_is_a_cron_expression(tenant: Tenant, schedule: str, kept: str) -> None:
    answer = await tenant.admin.client.put(BASE, json={"archiver_schedule": schedule})
    assert (answer.status_code, answer.json()["archiver_schedule"]) == (200, kept)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"hot_retention_days": 0}, "hot_retention_days"),
        ({"hot_retention_days": 3651}, "hot_retention_days"),
        ({"hot_retention_days": "30"}, "hot_retention_days"),
        ({"warm_retention_days": -1}, "warm_retention_days"),
        ({"cold_retention_years": 101}, "cold_retention_years"),
        ({"archiver_schedule": "daily"}, "archiver_schedule"),
        ({"archiver_schedule": "@daily"}, "archiver_schedule"),
        ({"archiver_schedule": "60 * * * *"}, "archiver_schedule"),
        ({"archiver_schedule": "0 0 2 * * *"}, "archiver_schedule"),
        # A date that never occurs.
        ({"archiver_schedule": "0 0 30 2 *"}, "archiver_schedule"),
        ({"archiver_schedule": "R R * * *"}, "archiver_schedule"),
        ({"archiver_schedule": None}, "archiver_schedule"),
        ({"last_archival_run": "2026-01-01T00:00:00Z"}, "last_archival_run"),
    ],
)
async def test_a_bad_field_is_named_in_details(tenant: Tenant, body: dict[str, Any], field: str) -> None:
    answer = await tenant.admin.client.put(BASE, json=body)
    assert (answer.status_code, answer.json()["error"]) == (422, "validation_error"), answer.text
    assert [fault["field"] for fault in answer.json()["details"]] == [field]


async def test_callers_without_the_right_are_refused(platform: RunningPlatform, tenant: Tenant) -> None:
    anonymous = await platform.anonymous.put(BASE, json={})
    assert (anonymous.status_code, anonymous.json()["error"]) == (401, "unauthorized")
    assert (await tenant.user.client.get(BASE)).status_code == 403
    for person in (tenant.user, tenant.auditor):
        answer = await person.client.put(BASE, json={})
        assert (answer.status_code, answer.json()["error"]) == (403, "forbidden")
