"""Rows that the keeper stores for findings: events, the counts for compliance reports, and the event `dlp_trigger`."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import msgspec
from tests.support.journal import Journal, opened, outcome
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.detection.taxonomy import TAXONOMY
from gatehouse.engine.records.outcome import DlpEvent, Scanned, encode
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.journal import JournalReader
from gatehouse.platform.keeper.housekeeping import prune
from gatehouse.platform.keeper.prepare import decode_batch, prepare

NOON = datetime(2026, 5, 6, 12, tzinfo=UTC).timestamp()
CARD = DlpEvent(
    rule_id="credit-card", rule_name="Cards", detector_type="regex", entity_type="credit_card", direction="input",
    status="redacted", action="redact", severity="medium", source="platform", score=0.9, match_count=2,
)  # fmt: skip
EMAIL = msgspec.structs.replace(
    CARD, rule_id="r-2", rule_name="Mail", entity_type="email", direction="output", status="logged", action="log_only",
    severity="low", source="organization", score=None, match_count=1,
)  # fmt: skip


def blocked(event: DlpEvent) -> DlpEvent:
    return msgspec.structs.replace(event, status="blocked", action="block", severity="critical")


async def test_an_event_is_listed_with_its_fields(platform: RunningPlatform, tenant: Tenant, journal: Journal) -> None:
    group = new_id()
    call = outcome(
        tenant.id, timestamp=NOON, user_id=tenant.user.id, group_ids=(group,), dlp_events=(CARD, EMAIL),
        dlp_action="REDACT",
    )  # fmt: skip
    await journal.append(call)
    await journal.drain()
    page = (await tenant.auditor.client.get("/api/v1/dlp/events")).json()
    assert page["total"] == 2
    result = {item.pop("entity_type"): item for item in page["items"]}
    ids = {item.pop("id") for item in result.values()}
    assert len(ids) == 2
    both = {
        "timestamp": "2026-05-06T12:00:00Z", "request_id": call.request_id, "user_id": str(tenant.user.id),
        "group_ids": [str(group)], "detector_type": "regex", "model": "sandbox/echo",
    }  # fmt: skip
    assert result["credit_card"] == {
        **both, "rule_id": "credit-card", "rule_name": "Cards", "direction": "input", "status": "redacted",
        "score": 0.9, "match_count": 2, "action": "redact", "severity": "medium", "source": "platform",
    }  # fmt: skip
    assert result["email"] == {
        **both, "rule_id": "r-2", "rule_name": "Mail", "direction": "output", "status": "logged", "score": None,
        "match_count": 1, "action": "log_only", "severity": "low", "source": "organization",
    }  # fmt: skip


async def test_an_unresolved_model_is_named_as_in_the_request(
    platform: RunningPlatform, tenant: Tenant, journal: Journal
) -> None:
    call = outcome(tenant.id, provider=None, model_id=None, outcome="refused", dlp_events=(blocked(CARD),))
    await journal.append(call)
    await journal.drain()
    (item,) = (await tenant.admin.client.get("/api/v1/dlp/events")).json()["items"]
    assert (item["model"], item["status"]) == ("sandbox/echo", "blocked")


def hits(platform: RunningPlatform, tenant: Tenant) -> dict[tuple[str, ...], int]:
    rows = platform.sql(
        "SELECT day::text, entity_type, rule_name, action, severity, events FROM dlp_counts WHERE tenant_id = %s",
        [tenant.id],
    )
    return {tuple(row[:5]): row[5] for row in rows}


def requests(platform: RunningPlatform, tenant: Tenant) -> dict[tuple[str, tuple[str, ...]], int]:
    rows = platform.sql(
        "SELECT day::text, entity_types, requests FROM dlp_request_counts WHERE tenant_id = %s", [tenant.id]
    )
    return {(day, tuple(types)): count for day, types, count in rows}


async def test_hits_and_requests_are_counted_by_day(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant, journal: Journal
) -> None:
    one = {"timestamp": NOON}
    await journal.append(
        outcome(tenant.id, **one, dlp_events=(CARD, EMAIL)),
        outcome(tenant.id, **one, dlp_events=(EMAIL, CARD)),
        outcome(tenant.id, **one, dlp_events=(CARD, msgspec.structs.replace(CARD, direction="output"))),
        outcome(tenant.id, **one),
        outcome(other_tenant.id, **one),
    )
    await journal.drain()
    await journal.append(
        outcome(tenant.id, **one, dlp_events=(EMAIL,)),
        outcome(tenant.id, timestamp=NOON + 86_400, dlp_events=(blocked(CARD),)),
    )
    await journal.drain()
    assert hits(platform, tenant) == {
        ("2026-05-06", "credit_card", "Cards", "redact", "medium"): 4,
        ("2026-05-06", "email", "Mail", "log_only", "low"): 3,
        ("2026-05-07", "credit_card", "Cards", "block", "critical"): 1,
    }
    assert requests(platform, tenant) == {
        ("2026-05-06", ("credit_card", "email")): 2,
        ("2026-05-06", ("credit_card",)): 1,
        ("2026-05-06", ("email",)): 1,
        ("2026-05-06", ()): 1,
        ("2026-05-07", ("credit_card",)): 1,
    }
    assert requests(platform, other_tenant) == {("2026-05-06", ()): 1}


async def test_every_type_of_finding_can_be_counted(
    platform: RunningPlatform, tenant: Tenant, journal: Journal
) -> None:
    """A request has findings of all types of the taxonomy, and of a type whose name is too long for an index entry."""
    everything = tuple(msgspec.structs.replace(CARD, entity_type=name) for name in TAXONOMY)
    own = msgspec.structs.replace(CARD, entity_type="x" * 5_000, rule_name="\t\\" * 5_000)
    call = outcome(tenant.id, timestamp=NOON, dlp_events=(*everything, own))
    await journal.append(call)
    drain = await journal.drain()
    assert drain.status.rejected == 0
    assert requests(platform, tenant) == {("2026-05-06", TAXONOMY): 1}
    assert sum(hits(platform, tenant).values()) == len(TAXONOMY) + 1


def triggers(platform: RunningPlatform, tenant: Tenant) -> list[dict[str, Any]]:
    query = (
        "SELECT payload FROM outbox WHERE tenant_id = %s AND event_type = 'dlp_trigger' ORDER BY payload->>'rule_id'"
    )
    return [payload for (payload,) in platform.sql(query, [tenant.id])]


async def test_a_request_is_announced_once_with_all_its_findings(
    platform: RunningPlatform, tenant: Tenant, journal: Journal
) -> None:
    def hit(rule_id: str | None, action: str, status: str) -> DlpEvent:
        return msgspec.structs.replace(CARD, rule_id=rule_id, action=action, status=status)

    call = outcome(
        tenant.id, timestamp=NOON, user_id=tenant.user.id,
        dlp_events=(
            hit("2", "redact", "redacted"), hit("1", "block", "blocked"), hit("3", "log_only", "logged"),
            hit("4", "prompt", "approved"), hit("5", "prompt", "cancelled"), hit("6", "allow", "logged"),
            hit(None, "log_only", "logged"),
        ),
    )  # fmt: skip
    await journal.append(call)
    await journal.drain()
    (trigger,) = triggers(platform, tenant)

    def finding(rule_id: str, action: str) -> dict[str, str]:
        return {"rule_id": rule_id, "entity_type": "credit_card", "action_taken": action, "direction": "input"}

    assert trigger == {
        "request_id": call.request_id, "user_id": str(tenant.user.id), **finding("1", "BLOCK"),
        "timestamp": "2026-05-06T12:00:00Z",
        "findings": [finding("2", "REDACT"), finding("1", "BLOCK"), finding("4", "PROMPT"), finding("5", "CANCEL")],
        "logged": [finding("3", "LOG_ONLY")],
    }  # fmt: skip


async def test_a_request_with_only_logged_findings_is_announced_but_is_no_trigger(
    platform: RunningPlatform, tenant: Tenant, journal: Journal
) -> None:
    logged = msgspec.structs.replace(CARD, action="log_only", status="logged")
    answer = msgspec.structs.replace(logged, direction="output")
    await journal.append(outcome(tenant.id, timestamp=NOON, dlp_events=(logged, answer)))
    await journal.drain()
    (trigger,) = triggers(platform, tenant)
    assert (trigger["action_taken"], trigger["direction"], trigger["findings"]) == ("LOG_ONLY", "input", [])
    assert [item["direction"] for item in trigger["logged"]] == ["input", "output"]
    rows = platform.sql("SELECT requests, dlp_triggers FROM usage_minutes WHERE tenant_id = %s", [tenant.id])
    assert rows == [(1, 0)]


async def test_a_scan_has_only_events(platform: RunningPlatform, tenant: Tenant, journal: Journal) -> None:
    like = outcome(tenant.id, timestamp=datetime(2019, 5, 6, tzinfo=UTC).timestamp(), dlp_events=(CARD,))
    scan = Scanned(**{name: getattr(like, name) for name in Scanned.__struct_fields__})
    await journal.append(encode(scan))
    drain = await journal.drain()
    assert (drain.status.rows, drain.status.rejected) == (0, 0)
    (item,) = (await tenant.admin.client.get("/api/v1/dlp/events")).json()["items"]
    assert (item["request_id"], item["rule_name"]) == (scan.request_id, "Cards")
    assert sum(hits(platform, tenant).values()) == 1
    assert requests(platform, tenant) == {}
    assert triggers(platform, tenant) == []


async def test_a_record_that_is_prepared_twice_gives_the_same_events(tenant: Tenant, journal: Journal) -> None:
    await journal.append(outcome(tenant.id, timestamp=NOON, dlp_events=(CARD, EMAIL)))
    await journal.killed()
    reader = JournalReader(journal.path)
    entries, _ = decode_batch(reader.batch(max_records=10))
    reader.close()
    first, second = prepare(entries, (), {}).dlp, prepare(entries, (), {}).dlp
    assert first.events == second.events
    assert first.triggers == second.triggers
    assert len(first.triggers) == 1


async def test_stored_records_are_not_counted_again(
    platform: RunningPlatform, tenant: Tenant, journal: Journal
) -> None:
    await journal.append(outcome(tenant.id, timestamp=NOON, dlp_events=(CARD,)))
    await journal.drain()
    await journal.drain()
    await journal.killed()
    await journal.drain()
    assert list(hits(platform, tenant).values()) == [1]
    assert len(triggers(platform, tenant)) == 1


async def test_a_streams_events_come_from_its_last_record(
    platform: RunningPlatform, tenant: Tenant, journal: Journal
) -> None:
    call = outcome(tenant.id, timestamp=NOON, stream=True, dlp_events=(CARD,))
    await journal.append(opened(call))
    await journal.drain()
    assert hits(platform, tenant) == {}
    end = msgspec.structs.replace(call, dlp_events=(CARD, EMAIL))
    await journal.append(end)
    await journal.drain()
    assert sum(hits(platform, tenant).values()) == 2


async def test_pending_findings_of_a_dead_worker_are_cancelled(
    platform: RunningPlatform, tenant: Tenant, journal: Journal
) -> None:
    pending = msgspec.structs.replace(CARD, status="pending", action="prompt", severity="high")
    call = outcome(tenant.id, timestamp=NOON, stream=True, dlp_events=(pending, EMAIL))
    await journal.append(opened(call))
    await journal.killed()
    await journal.drain()
    items = (await tenant.admin.client.get("/api/v1/dlp/events")).json()["items"]
    assert {item["rule_name"]: item["status"] for item in items} == {"Cards": "cancelled", "Mail": "logged"}


async def test_the_last_hours_triggers_are_counted(platform: RunningPlatform, tenant: Tenant, journal: Journal) -> None:
    def hit(action: str, status: str) -> DlpEvent:
        return msgspec.structs.replace(CARD, action=action, status=status)

    await journal.append(
        outcome(tenant.id, dlp_action="BLOCK", dlp_events=(hit("block", "blocked"), hit("redact", "redacted"))),
        outcome(tenant.id, dlp_action="PROMPT", dlp_events=(hit("prompt", "approved"),)),
        outcome(tenant.id, dlp_action="ALLOW", dlp_events=(EMAIL,)),
        outcome(tenant.id, dlp_action=None),
    )
    await journal.drain()
    dlp = (await tenant.admin.client.get("/api/admin/system/metrics-summary")).json()["dlp"]
    assert dlp == {
        "requests_scanned": 3, "triggers": {"block": 1, "redact": 1, "flag": 1, "require_approval": 1},
    }  # fmt: skip


async def test_two_keepers_at_once_count_everything(
    platform: RunningPlatform, tenant: Tenant, journal: Journal, tmp_path: Any
) -> None:
    """Two machines store many days and types in different orders. Neither must wait for the other forever."""
    second = Journal(platform.installed.url, tmp_path / "second")
    moments = [NOON + day * 86_400 for day in range(40)]
    for item, days in ((journal, moments), (second, moments[::-1])):
        for _ in range(5):
            await item.append(*(outcome(tenant.id, timestamp=day, dlp_events=(CARD, EMAIL)) for day in days))
    await asyncio.gather(journal.drain(), second.drain())
    await second.killed()
    assert sum(hits(platform, tenant).values()) == 2 * 2 * 5 * 40
    assert sum(requests(platform, tenant).values()) == 2 * 5 * 40


async def test_events_that_nobody_fetched_are_deleted_after_a_week(platform: RunningPlatform, tenant: Tenant) -> None:
    platform.sql(
        "INSERT INTO outbox (id, tenant_id, event_type, payload, created_at) SELECT gen_random_uuid(), %s,"
        " 'dlp_trigger', '{}', now() - n * interval '6 days' FROM generate_series(0, 2) AS n",
        [tenant.id],
    )

    class Tools:
        database = platform.host.database

    await prune(Tools())  # type: ignore[arg-type]
    assert platform.sql("SELECT count(*) FROM outbox WHERE tenant_id = %s", [tenant.id]) == [(2,)]
