"""Invoices: one for each month, which ends at midnight in the organization's time zone, with exactly the recorded
usage."""

from datetime import UTC, datetime
from typing import Any, cast

import pytest
from tests.support.clock import HandClock
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.foundation.ids import new_id
from gatehouse.platform.background.jobs import Tools
from gatehouse.platform.spending.invoices import invoices


def used(platform: RunningPlatform, tenant: Tenant, at: str, model: str | None, cost: str | None) -> None:
    platform.sql(
        "INSERT INTO usage_records (tenant_id, id, timestamp, request_id, model_id, status, stream, cost_usd)"
        " VALUES (%s, %s, %s, 'r', %s, 'success', false, %s)",
        [tenant.id, new_id(), at, model, cost],
    )


async def run_at(platform: RunningPlatform, at: str) -> None:
    clock = HandClock(datetime.fromisoformat(at).astimezone(UTC).timestamp())
    host = platform.host
    tools = Tools(
        settings=host.settings, database=host.database, sealer=host.sealer, outbound=host.outbound, clock=clock,
        **{name: cast("Any", getattr(host, name, None)) for name in Tools.__struct_fields__[5:]},
    )  # fmt: skip
    await invoices(tools)


def announced(platform: RunningPlatform, tenant: Tenant) -> list[Any]:
    query = "SELECT payload FROM outbox WHERE tenant_id = %s AND event_type = 'invoice_generated'"
    return [payload for (payload,) in platform.sql(query, [tenant.id])]


@pytest.fixture
async def sydney(platform: RunningPlatform, tenant: Tenant) -> Tenant:
    platform.sql("UPDATE tenants SET timezone = 'Australia/Sydney' WHERE id = %s", [tenant.id])
    return tenant


async def test_a_months_invoice_lists_its_models_and_is_created_once(platform: RunningPlatform, sydney: Tenant) -> None:
    # March ends in Sydney at 13:00 UTC on its last day.
    used(platform, sydney, "2031-03-31T12:59:59Z", "big", "0.1")
    used(platform, sydney, "2031-03-01T00:00:00Z", "big", "0.2")
    used(platform, sydney, "2031-03-15T00:00:00Z", "small", None)
    used(platform, sydney, "2031-03-31T13:00:00Z", "april", "9")
    used(platform, sydney, "2031-02-28T12:59:59Z", "february", "9")
    used(platform, sydney, "2031-03-15T00:00:00Z", None, None)
    await run_at(platform, "2031-03-31T13:30:00Z")
    assert announced(platform, sydney) == []
    for _ in range(2):
        await run_at(platform, "2031-03-31T14:30:00Z")
    (invoice,) = announced(platform, sydney)
    assert invoice == {
        "invoice_id": invoice["invoice_id"], "org_id": str(sydney.id), "period": "2031-03", "total_usd": 0.3,
        "line_items": [
            {"model_id": "big", "requests": 2, "cost_usd": 0.3}, {"model_id": "small", "requests": 1, "cost_usd": 0.0},
        ],
        "generated_at": "2031-03-31T14:30:00Z",
    }  # fmt: skip


async def test_no_invoice_is_created_for_a_month_without_usage(platform: RunningPlatform, tenant: Tenant) -> None:
    await run_at(platform, "2032-05-01T02:00:00Z")
    assert announced(platform, tenant) == []
