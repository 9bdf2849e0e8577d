"""Records older than the hot window are not shown, whether they were archived or not."""

import pytest
from tests.support.platform import RunningPlatform, Tenant

POLICY = "/api/v1/admin/retention/policy"
LISTS = [
    ("/api/v1/usage/records", "records", lambda body: body["total"]),
    ("/api/v1/dlp/events", "items", lambda body: body["total"]),
    ("/v1/audit/events?action=gateway.request", "events", None),
]


@pytest.mark.parametrize(("path", "items", "total"), LISTS)
async def test_a_shorter_window_hides_older_rows_and_lowers_totals(
    platform: RunningPlatform, tenant: Tenant, past, path: str, items: str, total
) -> None:
    await past(tenant, 100, 50, 20, 0.01)
    shown = (await tenant.admin.client.get(path)).json()
    assert len(shown[items]) == 3
    assert total is None or total(shown) == 3
    await tenant.admin.client.put(POLICY, json={"hot_retention_days": 30})
    shown = (await tenant.admin.client.get(path)).json()
    assert len(shown[items]) == 2
    assert total is None or total(shown) == 2


async def test_a_period_before_the_window_is_empty(platform: RunningPlatform, tenant: Tenant, past) -> None:
    await past(tenant, 100, 99, 1)
    answer = await tenant.admin.client.get("/api/v1/usage/records", params={"from": "2000-01-01T00:00:00Z"})
    assert answer.json()["total"] == 1
    before = {"to": "2001-01-01T00:00:00Z"}
    assert (await tenant.admin.client.get("/api/v1/usage/records", params=before)).json()["total"] == 0


@pytest.mark.parametrize(("path", "items", "total"), LISTS)
async def test_under_a_legal_hold_all_records_are_shown(
    platform: RunningPlatform, tenant: Tenant, past, path: str, items: str, total
) -> None:
    await past(tenant, 100, 1)
    await tenant.admin.client.put("/api/v1/admin/retention/legal-hold", json={"reason": "a case"})
    shown = (await tenant.admin.client.get(path)).json()
    assert len(shown[items]) == 2
    assert total is None or total(shown) == 2
