"""GET /api/v1/dlp/events (docs/records.md, docs/reference/platform-dlp.md)."""

import random
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from psycopg.types.json import Jsonb
from sqlalchemy import event
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.foundation.ids import new_id
from gatehouse.foundation.storage import roles
from gatehouse.foundation.storage.roles import SERVICE_ROLE

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
    fourth = add(platform, tenant, 4, request_id="one", entity_type="IBAN")
    fifth = add(platform, tenant, 5, request_id="one", direction="output")
    add(platform, other_tenant, 4, request_id="one")
    assert await listed(request_id="one") == ([str(fifth), str(fourth)], 2)
    assert await listed(request_id="one", page=2, page_size=1) == ([str(fourth)], 2)
    assert await listed(request_id="one", entity="IBAN", **{"from": "2026-03-04", "to": "2026-03-05"}) == (
        [str(fourth)], 1,
    )  # fmt: skip
    assert await listed(request_id="two") == ([], 0)
    page = (await tenant.admin.client.get(EVENTS, params={"page": 5, "page_size": 1})).json()
    assert (page["page"], page["page_size"], page["items"][0]["score"]) == (5, 1, 0.9)
    assert set(page["items"][0]) == {
        "id", "timestamp", "request_id", "user_id", "group_ids", "rule_id", "rule_name", "detector_type", "entity_type",
        "direction", "status", "score", "match_count", "model", "action", "severity", "source",
    }  # fmt: skip


async def test_pages_of_any_size_contain_every_event_once_newest_first(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    chance = random.Random(5)
    moments = [datetime(2026, 3, 1, tzinfo=UTC) + timedelta(hours=chance.random() * 200) for _ in range(30)]
    expected = [str(add(platform, tenant, 1, timestamp=moment)) for moment in sorted(moments, reverse=True)]
    for size in (1, 7, 30, 200):
        seen: list[str] = []
        for number in range(1, 31):
            page = (await tenant.admin.client.get(EVENTS, params={"page": number, "page_size": size})).json()
            assert page["total"] == 30
            seen += [item["id"] for item in page["items"]]
        assert seen == expected


async def test_a_period_that_starts_or_ends_within_a_day_is_counted_exactly(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    for day in (1, 2, 3):
        for hour in (1, 11, 13, 23):
            add(platform, tenant, day, timestamp=datetime(2026, 3, day, hour, tzinfo=UTC))

    async def total(since: str, until: str, **filters: str) -> int:
        page = (await tenant.admin.client.get(EVENTS, params={"from": since, "to": until, **filters})).json()
        assert len(page["items"]) == page["total"]
        return int(page["total"])

    assert await total("2026-03-01T12:00:00Z", "2026-03-03T12:00:00Z") == 8
    assert await total("2026-03-02T12:00:00Z", "2026-03-02T13:00:00Z") == 0
    assert await total("2026-03-02T12:00:00Z", "2026-03-02T13:00:01Z") == 1
    assert await total("2026-03-02T12:00:00Z", "2026-03-02T13:00:01Z", status="blocked") == 0
    assert await total("2026-03-03", "2026-03-01") == 0


async def test_events_are_counted_for_every_way_of_insertion(platform: RunningPlatform, tenant: Tenant) -> None:
    """Events are inserted one by one, copied directly into a month's partition, as the keeper does it, and inserted
    before their partition exists."""
    add(platform, tenant, 1)
    columns = "tenant_id, id, timestamp, request_id, direction, status"
    with roles.connect(platform.installed.url, SERVICE_ROLE) as service:
        service.execute("SELECT gatehouse_ensure_partitions('2026-04-01', 1)")
        with service.cursor() as cursor, cursor.copy(f"COPY dlp_events_202604 ({columns}) FROM STDIN") as copy:
            for _ in range(3):
                copy.write_row((tenant.id, new_id(), "2026-03-31 23:30-05", "r", "output", "blocked"))
        for _ in range(2):
            early = f"INSERT INTO dlp_events ({columns}) VALUES (%s, %s, '2016-02-03', 'r', 'input', 'logged')"
            service.execute(early, [tenant.id, new_id()])
        service.execute("SELECT gatehouse_ensure_partitions('2016-02-01', 1)")
        moved = service.execute("SELECT count(*) FROM dlp_events_201602 WHERE tenant_id = %s", [tenant.id])
        assert moved.fetchone() == (2,)
    counts = "SELECT day::text, status, records FROM dlp_event_counts WHERE tenant_id = %s ORDER BY day"
    assert platform.sql(counts, [tenant.id]) == [
        ("2016-02-03", "logged", 2), ("2026-03-01", "redacted", 1), ("2026-04-01", "blocked", 3),
    ]  # fmt: skip
    page = (await tenant.admin.client.get(EVENTS)).json()
    assert (page["total"], len(page["items"])) == (6, 6)


async def test_a_page_does_not_read_more_rows_if_there_are_more_events(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant
) -> None:
    read = {}
    platform.show_all(other_tenant)
    for owner, days in ((tenant, 10), (other_tenant, 1000)):
        platform.sql(
            "INSERT INTO dlp_events (tenant_id, id, timestamp, request_id, direction, status, entity_type)"
            " SELECT %s, gen_random_uuid(), timestamptz '2020-01-01 UTC' + n * interval '1 hour', 'r', 'input',"
            " CASE WHEN n %% 100 = 0 THEN 'blocked' ELSE 'redacted' END, 'EMAIL' FROM generate_series(0, %s) AS n",
            [owner.id, days * 24 - 1],
        )
        platform.sql("ANALYZE dlp_events")
        for name, params in {
            "first": {"page_size": 20},
            "last": {"page_size": 20, "page": days * 24 // 20},
            "rare": {"page_size": 2, "status": "blocked", "page": days * 24 // 100 // 2},
        }.items():
            with statements(platform) as statements_run:
                page = (await owner.admin.client.get(EVENTS, params=params)).json()
            assert page["total"] == (days * 24 if name != "rare" else -(-days * 24 // 100))
            assert len(page["items"]) == params["page_size"]
            read[name, days] = sum(events_read(platform, *statement) for statement in statements_run)
    for name in ("first", "last", "rare"):
        assert 0 < read[name, 1000] <= 2 * read[name, 10] + 100, read


@contextmanager
def statements(platform: RunningPlatform) -> Iterator[list[tuple[str, Any]]]:
    """The statements about events that administration runs, with their parameters."""
    statements_run: list[tuple[str, Any]] = []

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        if "dlp_event" in statement:
            statements_run.append((statement, parameters))

    engine = platform.host.database._app.sync_engine
    event.listen(engine, "before_cursor_execute", note)
    try:
        yield statements_run
    finally:
        event.remove(engine, "before_cursor_execute", note)


def events_read(platform: RunningPlatform, statement: str, parameters: Any) -> int:
    """Return the number of event rows that PostgreSQL reads for a statement, including rows that a filter drops."""
    explained = platform.sql(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}", parameters)
    nodes, read = [explained[0][0][0]["Plan"]], 0
    while nodes:
        node = nodes.pop()
        nodes += node.get("Plans", [])
        if re.fullmatch(r"dlp_events_(other|\d+)", node.get("Relation Name", "")):
            read += node["Actual Loops"] * (node["Actual Rows"] + node.get("Rows Removed by Filter", 0))
    return int(read)


async def test_only_permitted_roles_read(platform: RunningPlatform, tenant: Tenant) -> None:
    reader = await platform.new_m2m(tenant.id, "dlp:read")
    other = await platform.new_m2m(tenant.id, "admin:read", "api:read", "audit:read")
    for client, status in [
        (platform.anonymous, 401), (tenant.user.client, 403), (other, 403),
        (reader, 200), (tenant.auditor.client, 200), (tenant.admin.client, 200),
    ]:  # fmt: skip
        assert (await client.get(EVENTS)).status_code == status


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("page", "0"),
        ("page_size", "201"),
        ("status", "odd"),
        ("direction", "up"),
        ("user_id", "x"),
        ("to", "x"),
        ("request_id", "a\0b"),
    ],
)
async def test_a_bad_parameter_is_named(tenant: Tenant, name: str, value: str) -> None:
    answer = await tenant.admin.client.get(EVENTS, params={name: value})
    assert answer.status_code == 422
    assert [fault["loc"] for fault in answer.json()["detail"]] == [["query", name]]
