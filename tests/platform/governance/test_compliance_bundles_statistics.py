"""Statistics, summary and report of compliance (docs/compliance.md)."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from time import perf_counter
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import event
from tests.support.journal import Journal, outcome
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.detection.taxonomy import TAXONOMY
from gatehouse.engine.records.outcome import DlpEvent

BASE = "/api/admin/compliance"
NOTHING: dict[str, Any] = {"by_action": {"block": 0, "redact": 0, "allow": 0, "require_approval": 0}}


def day(ago: int = 0) -> str:
    return (datetime.now(UTC) - timedelta(days=ago)).date().isoformat()


async def bundle(tenant: Tenant, name: str, *entity_types: str, **fields: Any) -> str:
    body = {
        "name": name, "regulatory_framework": "PCI-DSS", "version": "4", "seed_rule_mappings": list(entity_types),
        **fields,
    }  # fmt: skip
    created: str = (await tenant.admin.client.post("/api/admin/compliance-bundles", json=body)).json()["id"]
    return created


def hit(platform: RunningPlatform, tenant: Tenant, ago: int, entity: str, rule: str, action: str, events: int) -> None:
    severity = {"block": "critical", "prompt": "high", "redact": "medium"}.get(action, "low")
    platform.sql(
        "INSERT INTO dlp_counts VALUES (%s, %s, %s, %s, %s, %s, %s)",
        [tenant.id, day(ago), entity, rule, action, severity, events],
    )


def requests(platform: RunningPlatform, tenant: Tenant, ago: int, entities: Sequence[str], number: int) -> None:
    platform.sql(
        "INSERT INTO dlp_request_counts VALUES (%s, %s, %s, %s)", [tenant.id, day(ago), list(entities), number]
    )


@pytest.fixture
async def bundles(platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant) -> dict[str, str]:
    """Create two bundles that share an entity type, an archived bundle, and events of 31 days."""
    created = {
        "Cards": await bundle(tenant, "Cards", "credit_card", "iban"),
        "People": await bundle(tenant, "People", "email", "iban", enabled=False),
        "Old": await bundle(tenant, "Old", "phone"),
    }
    await tenant.admin.client.post(f"/api/admin/compliance-bundles/{created['Old']}/archive")
    for ago, entity, rule, action, events in [
        (0, "credit_card", "Cards", "block", 5), (0, "credit_card", "Cards", "redact", 3),
        (1, "iban", "IBAN", "prompt", 7), (1, "email", "Mail", "log_only", 11), (1, "email", "Mail", "allow", 2),
        (29, "iban", "IBAN", "redact", 13), (30, "iban", "IBAN", "redact", 1_000),
        (0, "phone", "Phones", "redact", 17), (0, "ssn", "SSN", "block", 19),
    ]:  # fmt: skip
        hit(platform, tenant, ago, entity, rule, action, events)
        hit(platform, other_tenant, ago, entity, rule, action, 1_000_000)
    for ago, entities, number in [
        (0, ["credit_card", "email"], 6), (0, [], 83), (1, ["phone"], 10), (29, ["iban"], 1), (30, ["iban"], 900),
    ]:  # fmt: skip
        requests(platform, tenant, ago, entities, number)
        requests(platform, other_tenant, ago, entities, 1_000_000)
    return created


async def test_the_stats_of_a_bundle_are_complete(tenant: Tenant, bundles: dict[str, str]) -> None:
    body = (await tenant.auditor.client.get(f"{BASE}/bundles/{bundles['Cards']}/stats")).json()
    trend = body.pop("daily_trend")
    assert body == {
        "bundle_id": bundles["Cards"], "bundle_name": "Cards", "total_events": 28,
        "by_severity": {"critical": 5, "high": 7, "medium": 16, "low": 0},
        "by_action": {"block": 5, "redact": 16, "allow": 0, "require_approval": 7},
    }  # fmt: skip
    assert [item["date"] for item in trend] == [day(ago) for ago in reversed(range(30))]
    assert {item["date"]: item["event_count"] for item in trend if item["event_count"]} == {
        day(29): 13, day(1): 7, day(0): 8,
    }  # fmt: skip


@pytest.mark.parametrize(("days", "events"), [(1, 8), (2, 15), (29, 15), (30, 28), (31, 1_028), (365, 1_028)])
async def test_a_period_includes_today(tenant: Tenant, bundles: dict[str, str], days: int, events: int) -> None:
    body = (await tenant.admin.client.get(f"{BASE}/bundles/{bundles['Cards']}/stats", params={"days": days})).json()
    assert body["total_events"] == sum(item["event_count"] for item in body["daily_trend"]) == events
    assert len(body["daily_trend"]) == days


async def test_an_archived_bundle_keeps_its_stats(tenant: Tenant, bundles: dict[str, str]) -> None:
    body = (await tenant.admin.client.get(f"{BASE}/bundles/{bundles['Old']}/stats")).json()
    assert (body["bundle_name"], body["total_events"]) == ("Old", 17)


async def test_a_bundle_without_types_has_empty_stats(tenant: Tenant) -> None:
    empty = await bundle(tenant, "Empty")
    body = (await tenant.admin.client.get(f"{BASE}/bundles/{empty}/stats", params={"days": 1})).json()
    assert body == {
        "bundle_id": empty, "bundle_name": "Empty", "total_events": 0, **NOTHING,
        "by_severity": {"critical": 0, "high": 0, "medium": 0, "low": 0},
        "daily_trend": [{"date": day(), "event_count": 0}],
    }  # fmt: skip


async def test_the_summary_counts_an_event_in_each_bundle_and_once_in_the_total(
    tenant: Tenant, bundles: dict[str, str]
) -> None:
    body = (await tenant.auditor.client.get(f"{BASE}/summary")).json()
    assert body == {
        "days": 30,
        "total_events": 41,
        # Of a hundred requests, six contain a card number or an address, and one contains an IBAN.
        "coverage_percent": 7.0,
        "top_triggers": [
            {"rule_name": "IBAN", "bundle": "Cards", "event_count": 20},
            {"rule_name": "IBAN", "bundle": "People", "event_count": 20},
            {"rule_name": "Mail", "bundle": "People", "event_count": 13},
            {"rule_name": "Cards", "bundle": "Cards", "event_count": 8},
        ],
        "bundles": [
            {
                "bundle_id": bundles["Cards"], "bundle_name": "Cards", "total_events": 28,
                "by_action": {"block": 5, "redact": 16, "allow": 0, "require_approval": 7},
            },
            {
                "bundle_id": bundles["People"], "bundle_name": "People", "total_events": 33,
                "by_action": {"block": 0, "redact": 13, "allow": 13, "require_approval": 7},
            },
        ],
    }  # fmt: skip


async def test_the_summary_lists_the_ten_rules_with_most_findings(platform: RunningPlatform, tenant: Tenant) -> None:
    await bundle(tenant, "Cards", "credit_card")
    for number in range(15):
        hit(platform, tenant, 0, "credit_card", f"Rule {number}", "redact", number + 1)
    triggers = (await tenant.admin.client.get(f"{BASE}/summary")).json()["top_triggers"]
    assert [trigger["rule_name"] for trigger in triggers] == [f"Rule {number}" for number in range(14, 4, -1)]


async def test_a_summary_without_events_is_empty(tenant: Tenant) -> None:
    body = (await tenant.admin.client.get(f"{BASE}/summary", params={"days": 7})).json()
    assert body == {"days": 7, "total_events": 0, "coverage_percent": 0.0, "top_triggers": [], "bundles": []}


async def test_the_report_contains_the_summary_and_the_stats_of_every_active_bundle(
    tenant: Tenant, bundles: dict[str, str]
) -> None:
    client = tenant.auditor.client
    body = (await client.get(f"{BASE}/report", params={"days": 31})).json()
    assert set(body) == {"generated_at", "period_days", "summary", "bundle_details"}
    assert body["period_days"] == 31
    assert body["summary"] == (await client.get(f"{BASE}/summary", params={"days": 31})).json()
    assert body["bundle_details"] == [
        (await client.get(f"{BASE}/bundles/{bundles[name]}/stats", params={"days": 31})).json()
        for name in ("Cards", "People")
    ]


async def test_statistics_count_the_gateways_records(platform: RunningPlatform, tenant: Tenant, tmp_path: Any) -> None:
    result = DlpEvent(
        rule_id="r", rule_name="Cards", detector_type="regex", entity_type="credit_card", direction="input",
        status="blocked", action="block", severity="critical", source="platform", score=1.0, match_count=3,
    )  # fmt: skip
    cards = await bundle(tenant, "Cards", "credit_card")
    journal = Journal(platform.installed.url, tmp_path / "journal")
    await journal.append(
        outcome(tenant.id, dlp_events=(result,)), outcome(tenant.id), outcome(tenant.id), outcome(tenant.id)
    )
    await journal.drain()
    await journal.killed()
    body = (await tenant.admin.client.get(f"{BASE}/report", params={"days": 1})).json()
    assert (body["summary"]["total_events"], body["summary"]["coverage_percent"]) == (1, 25.0)
    (details,) = body["bundle_details"]
    assert (details["bundle_id"], details["by_severity"]["critical"], details["by_action"]["block"]) == (cards, 1, 1)


# HTML report ---------------------------------------------------------------------------------------------------------


class Page(HTMLParser):
    """The elements of a page and their text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


async def test_the_report_is_available_as_html(tenant: Tenant, bundles: dict[str, str]) -> None:
    answer = await tenant.auditor.client.get(f"{BASE}/report", params={"format": "html"})
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    page = Page(answer.text)
    for item in ("Cards", "People", "PCI-DSS, version 4", "7.00 % of requests", "credit_card, iban", "Enabledno"):
        assert item in page.text
    assert tenant.slug in page.text
    assert "Old" not in page.text


async def test_the_page_has_no_script_and_no_foreign_content(
    platform: RunningPlatform, tenant: Tenant, bundles: dict[str, str]
) -> None:
    evil = "</style><script>alert(1)</script><img src=x onerror=alert(1)>\"'&amp;"
    await bundle(tenant, evil, "credit_card", description=evil, version="<b>4</b>")
    hit(platform, tenant, 0, "credit_card", evil, "block", 1)
    platform.sql("UPDATE tenants SET name = %s WHERE id = %s", [evil, tenant.id])
    answer = await tenant.admin.client.get(f"{BASE}/report", params={"format": "html"})
    page = Page(answer.text)
    assert page.tags <= {
        "html", "head", "meta", "title", "style", "body", "h1", "h2", "h3", "p", "dl", "dt", "dd", "table", "thead",
        "tbody", "tr", "th", "td", "section", "svg", "path",
    }  # fmt: skip
    assert not {name for name in page.attributes if name.startswith("on")} | page.attributes & {"src", "href", "style"}
    # The title, the organization, the bundle (twice), its description, and the rule contain the text.
    assert page.text.count(evil) >= 6
    assert "http" not in answer.text
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'")
    assert "script-src" not in policy
    assert "unsafe" not in policy


# rights and input ----------------------------------------------------------------------------------------------------


async def test_administrators_and_auditors_read(
    platform: RunningPlatform, tenant: Tenant, bundles: dict[str, str]
) -> None:
    reader = await platform.new_m2m(tenant.id, "admin:read")
    other = await platform.new_m2m(tenant.id, "dlp:read", "admin:write")
    for path in (f"{BASE}/summary", f"{BASE}/report", f"{BASE}/bundles/{bundles['Cards']}/stats"):
        for client, status in [
            (platform.anonymous, 401), (tenant.user.client, 403), (other, 403), (reader, 200),
            (tenant.auditor.client, 200), (tenant.admin.client, 200),
        ]:  # fmt: skip
            assert (await client.get(path)).status_code == status


async def test_a_malformed_id_is_refused_and_an_unknown_one_is_404(
    tenant: Tenant, other_tenant: Tenant, bundles: dict[str, str]
) -> None:
    for client, bundle_id, status, detail in [
        (tenant, "x", 400, "Invalid bundle_id format"), (tenant, str(uuid4()), 404, "Compliance bundle not found"),
        (other_tenant, bundles["Cards"], 404, "Compliance bundle not found"),
    ]:  # fmt: skip
        answer = await client.admin.client.get(f"{BASE}/bundles/{bundle_id}/stats")
        assert (answer.status_code, answer.json()) == (status, {"detail": detail})


@pytest.mark.parametrize("days", ["0", "366", "x", "1.5"])
async def test_a_period_out_of_bounds_is_named(tenant: Tenant, bundles: dict[str, str], days: str) -> None:
    for path in ("summary", "report", f"bundles/{bundles['Cards']}/stats"):
        answer = await tenant.admin.client.get(f"{BASE}/{path}", params={"days": days})
        assert (answer.status_code, answer.json()["detail"][0]["loc"]) == (422, ["query", "days"])


async def test_an_unknown_format_is_named(tenant: Tenant) -> None:
    answer = await tenant.admin.client.get(f"{BASE}/report", params={"format": "pdf"})
    assert (answer.status_code, answer.json()["detail"][0]["loc"]) == (422, ["query", "format"])


# size of queries -----------------------------------------------------------------------------------------------------


async def test_a_report_of_a_year_reads_only_counts(platform: RunningPlatform, tenant: Tenant) -> None:
    """The report reads only the counts of its period, and no events, although other tenants have hundreds of thousands
    of rows."""
    names = list(TAXONOMY)
    for owners, days, rules in (([tenant.id], 730, 2), ([uuid4() for _ in range(15)], 300, 1)):
        platform.sql(
            "INSERT INTO dlp_counts SELECT t, current_date - d, e, 'rule ' || r, 'redact', 'medium', 7"
            " FROM generate_series(0, %s) AS d, unnest(%s::uuid[]) AS t, unnest(%s::text[]) AS e,"
            " generate_series(1, %s) AS r",
            [days - 1, owners, names, rules],
        )
        platform.sql(
            "INSERT INTO dlp_request_counts SELECT t, current_date - d, ARRAY[(%s::text[])[1 + c %% 70], 'z' || c], 5"
            " FROM generate_series(0, %s) AS d, unnest(%s::uuid[]) AS t, generate_series(1, 100) AS c",
            [names, days - 1, owners],
        )
    platform.sql("ANALYZE dlp_counts")
    platform.sql("ANALYZE dlp_request_counts")
    for number in range(12):
        await bundle(tenant, f"Bundle {number}", *names[number * 7 : number * 7 + 14])
    requests: list[tuple[str, Any]] = []

    def record_query(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        if "dlp_" in statement:
            requests.append((statement, parameters))

    engine = platform.host.database._app.sync_engine
    event.listen(engine, "before_cursor_execute", record_query)
    try:
        for days, max_seconds in ((30, 1.0), (365, 5.0)):
            started = perf_counter()
            answer = await tenant.admin.client.get(f"{BASE}/report", params={"days": days})
            assert perf_counter() - started < max_seconds
            assert answer.json()["summary"]["total_events"] == days * 2 * 7 * len(names)
    finally:
        event.remove(engine, "before_cursor_execute", record_query)
    assert len(requests) == 2
    plans = [
        platform.sql(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}", values)[0][0][0] for statement, values in requests
    ]
    assert dict(_rows_read(plans[0]["Plan"])) == {"dlp_counts": 30 * 2 * len(names), "dlp_request_counts": 30 * 100}
    assert set(dict(_rows_read(plans[1]["Plan"]))) == {"dlp_counts", "dlp_request_counts"}


def _rows_read(plan: dict[str, Any]) -> Sequence[tuple[str, int]]:
    """Return the number of rows that a query plan reads from each table, including rows that a filter drops."""
    results = [pair for child in plan.get("Plans", []) for pair in _rows_read(child)]
    if "Relation Name" in plan:
        rows = plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)
        results.append((plan["Relation Name"], round(rows * plan["Actual Loops"])))
    return results
