"""GET /api/v1/dlp/events (reference 1, Paginated read-back lists; decisions, Records)."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from psycopg.types.json import Jsonb
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.foundation.ids import new_id

EVENTS = "/api/v1/dlp/events"


def add(platform: RunningPlatform, tenant: Tenant, day: int, **fields: Any) -> UUID:
    values = {
        "tenant_id": tenant.id, "id": new_id(), "timestamp": datetime(2026, 3, day, tzinfo=UTC), "request_id": "r",
        "group_ids": Jsonb([]), "direction": "input", "status": "redacted", "entity_type": "EMAIL", "match_count": 1,
        **fields,
    }  # fmt: skip
    marks = ", ".join(["%s"] * len(values))
    platform.sql(f"INSERT INTO dlp_events ({', '.join(values)}) VALUES ({marks})", list(values.values()))
    event_id: UUID = values["id"]
    return event_id


async def test_pages_and_filters(platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant) -> None:
    first = add(platform, tenant, 1, user_id=tenant.user.id, score=0.9, model="sandbox/echo")
    second = add(platform, tenant, 2, status="blocked", entity_type="CREDIT_CARD")
    third = add(platform, tenant, 3, direction="output")
    add(platform, other_tenant, 3)

    async def listed(**filters: Any) -> tuple[list[str], int]:
        page = (await tenant.admin.client.get(EVENTS, params=filters)).json()
        return [item["id"] for item in page["items"]], page["total"]

    assert await listed() == ([str(third), str(second), str(first)], 3)
    assert await listed(page=2, page_size=2) == ([str(first)], 3)
    assert await listed(status="blocked") == ([str(second)], 1)
    assert await listed(entity="CREDIT_CARD") == ([str(second)], 1)
    assert await listed(direction="output") == ([str(third)], 1)
    assert await listed(user_id=str(tenant.user.id)) == ([str(first)], 1)
    assert await listed(**{"from": "2026-03-02", "to": "2026-03-03"}) == ([str(second)], 1)
    page = (await tenant.admin.client.get(EVENTS, params={"page": 3, "page_size": 1})).json()
    assert (page["page"], page["page_size"], page["items"][0]["score"]) == (3, 1, 0.9)
    assert set(page["items"][0]) == {
        "id", "timestamp", "request_id", "user_id", "group_ids", "rule_id", "rule_name", "detector_type", "entity_type",
        "direction", "status", "score", "match_count", "model",
    }  # fmt: skip


async def test_who_may_read(platform: RunningPlatform, tenant: Tenant) -> None:
    reader = await platform.new_m2m(tenant.id, "dlp:read")
    other = await platform.new_m2m(tenant.id, "admin:read", "api:read", "audit:read")
    for client, status in [
        (platform.anonymous, 401), (tenant.user.client, 403), (other, 403),
        (reader, 200), (tenant.auditor.client, 200), (tenant.admin.client, 200),
    ]:  # fmt: skip
        assert (await client.get(EVENTS)).status_code == status


@pytest.mark.parametrize(
    ("name", "value"),
    [("page", "0"), ("page_size", "201"), ("status", "odd"), ("direction", "up"), ("user_id", "x"), ("to", "x")],
)
async def test_a_bad_parameter_is_named(tenant: Tenant, name: str, value: str) -> None:
    answer = await tenant.admin.client.get(EVENTS, params={name: value})
    assert answer.status_code == 422
    assert [fault["loc"] for fault in answer.json()["detail"]] == [["query", name]]
