"""Recorded events reach the receiver in order, each at least once."""

import asyncio
from typing import Any
from uuid import uuid4

import pytest
from aiohttp import web
from tests.platform.operations.siem.conftest import TOKEN, Siem
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.platform.background.jobs import Tools
from gatehouse.platform.operations.siem import forwarding, queue
from gatehouse.platform.operations.siem.forwarding import Forwarding
from gatehouse.platform.operations.siem.queue import ForwardingBacklog


def add_dlp_event(platform: RunningPlatform, tenant: Tenant, **changed: Any) -> str:
    """Insert directly into the partition of the month, like the keeper."""
    event_id = str(uuid4())
    values = {
        "tenant_id": tenant.id, "id": event_id, "timestamp": "now", "request_id": "r-1", "rule_id": "rule-1",
        "rule_name": "Cards", "detector_type": "regex", "entity_type": "credit_card", "direction": "input",
        "status": "blocked", "score": 0.9, "match_count": 2, "model": "sandbox/echo", "action": "block",
        "severity": "critical", "source": "organization", **changed,
    }  # fmt: skip
    month = platform.sql("SELECT to_char(now(), 'YYYYMM')")[0][0]
    names, places = ", ".join(values), ", ".join(["%s"] * len(values))
    platform.sql(f"INSERT INTO dlp_events_{month} ({names}) VALUES ({places})", list(values.values()))
    return event_id


async def test_every_audit_event_since_the_activation_arrives_once_and_in_order(siem: Siem) -> None:
    await siem.record(5)
    await siem.begin()
    head = siem.stored_sequences()[-1]
    await siem.record(2500)
    await siem.forward()
    # The first event is the change that switched forwarding on.
    assert siem.sequences == list(range(head, head + 2501))
    assert siem.events[0]["event"]["action"] == "siem.changed"
    assert len(siem.receiver.got) == 4


async def test_a_collector_gets_its_token_and_events_with_their_time(siem: Siem) -> None:
    await siem.begin(type="hec", url=siem.receiver.url + "my/collector", token=TOKEN, index="audit")
    await siem.forward()
    (got,) = siem.receiver.got
    assert (got.path, got.headers["Authorization"]) == ("/my/collector", f"Splunk {TOKEN}")
    event = got.json
    assert (event["index"], event["source"], event["sourcetype"]) == ("audit", "gatehouse", "gatehouse:audit")
    assert abs(event["time"] - siem.platform.host.clock.now()) < 60


async def test_dlp_events_and_events_of_the_outbox_are_sent(siem: Siem) -> None:
    add_dlp_event(siem.platform, siem.tenant)
    await siem.begin()
    dlp_id = add_dlp_event(siem.platform, siem.tenant)
    await siem.announce("quota_exceeded", {"limit": 5})
    await siem.dispatch()
    await siem.forward()
    dlp, news = siem.events[-2:]
    assert (dlp["event"]["id"], dlp["event"]["dataset"]) == (dlp_id, "gatehouse.dlp")
    assert (news["event"]["action"], news["gatehouse"]["payload"]) == ("quota_exceeded", {"limit": 5})
    assert [event["event"]["dataset"] for event in siem.events].count("gatehouse.dlp") == 1
    assert siem.platform.sql("SELECT count(*) FROM siem_queue WHERE tenant_id = %s", [siem.tenant.id]) == [(0,)]


@pytest.mark.parametrize("status", [301, 400, 403, 500, 503])
async def test_refused_events_are_sent_again_until_the_receiver_accepts_them(siem: Siem, status: int) -> None:
    await siem.begin()
    await siem.record(3)
    siem.receiver.otherwise = status
    await siem.forward()
    result = await siem.status()
    assert (result["backlog"], result["last_sent_at"]) == (4, None)
    assert str(status) in result["last_error"]
    assert result["lag_seconds"] > 0
    # No process sends before the next attempt is due.
    await siem.forward()
    assert len(siem.receiver.got) == 1
    siem.receiver.otherwise = 200
    siem.receiver.got.clear()
    await siem.retry()
    assert siem.sequences == siem.stored_sequences()[-4:]
    result = await siem.status()
    assert (result["backlog"], result["lag_seconds"], result["last_error"]) == (0, None, None)


async def test_the_pause_between_attempts_grows_to_a_minute(siem: Siem) -> None:
    await siem.begin()
    siem.receiver.otherwise = 503
    pauses = []
    for _ in range(9):
        await siem.retry()
        query = "SELECT extract(epoch FROM due_at - last_failed_at) FROM siem_cursors WHERE tenant_id = %s"
        pauses.append(round(siem.platform.sql(query, [siem.tenant.id])[0][0]))
    assert pauses == [1, 2, 4, 8, 15, 30, 60, 60, 60]


async def test_a_too_large_batch_is_split(siem: Siem) -> None:
    await siem.begin()
    await siem.record(99)

    async def small(request: web.Request) -> web.StreamResponse:
        return web.Response(status=413 if (await request.read()).count(b"\n") >= 30 else 200)

    siem.receiver.otherwise = small
    await siem.forward()
    assert (await siem.status())["backlog"] == 0
    taken = [event for got in siem.receiver.got if got.body.count(b"\n") < 30 for event in got.body.splitlines()]
    assert len(taken) == 100


async def test_a_batch_is_bounded_in_bytes(siem: Siem) -> None:
    await siem.begin()
    await siem.record(40, text="x" * 100_000)
    await siem.forward()
    assert max(len(got.body) for got in siem.receiver.got) < queue.MAX_BATCH_BYTES + 200_000
    assert siem.sequences == siem.stored_sequences()[-41:]


async def test_a_dead_receiver_does_not_delay_another_organizations(
    siem: Siem, other_tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forwarding, "_SEND_TIMEOUT_SECONDS", 3.0)

    async def answer(request: web.Request) -> web.StreamResponse:
        return await siem.receiver.silence(request) if request.path == "/dead" else web.Response()

    siem.receiver.otherwise = answer
    await siem.begin(type="hec", url=siem.receiver.url + "dead", token=TOKEN)
    theirs = Siem(siem.platform, other_tenant, siem.receiver, siem.forwarding)
    await theirs.begin()
    await siem.forwarding.take()
    turns = list(siem.forwarding.running)
    assert len(turns) == 2
    async with asyncio.timeout(2.5):
        while (await theirs.status())["backlog"]:
            await asyncio.sleep(0.02)
    await asyncio.gather(*turns)
    assert "not accepted within" in (await siem.status())["last_error"]


async def test_two_processes_share_the_work_and_nothing_is_sent_twice(siem: Siem, tools: Tools) -> None:
    await siem.begin()
    await siem.record(2000)
    second = Siem(siem.platform, siem.tenant, siem.receiver, Forwarding(tools))
    await asyncio.gather(siem.forward(), second.forward())
    assert siem.sequences == siem.stored_sequences()[-2001:]


async def test_the_turn_of_a_dead_process_is_taken_over_after_its_lease(siem: Siem) -> None:
    await siem.begin()
    async with siem.platform.host.database.at_once() as connection:
        (dead,) = await queue.take(connection, 10)
    await siem.forward()
    assert siem.receiver.got == []
    await siem.retry()
    assert len(siem.receiver.got) == 1
    # A process that was suspended beyond its lease stores nothing and sends nothing.
    async with siem.platform.host.database.service() as session:
        assert await queue.advance(session, dead) is None


async def test_events_recorded_while_the_flag_is_off_are_sent_afterwards(siem: Siem) -> None:
    await siem.begin()
    await siem.forward()
    siem.receiver.got.clear()
    await siem.switch(on=False)
    await siem.record(3)
    add_dlp_event(siem.platform, siem.tenant)
    await siem.forward()
    assert siem.receiver.got == []
    assert (await siem.status())["active"] is False
    await siem.switch(on=True)
    await siem.forward()
    assert siem.sequences == siem.stored_sequences()[-5:]
    assert len(siem.events) == 5


async def test_forwarding_that_is_enabled_again_begins_with_new_events(siem: Siem) -> None:
    await siem.begin()
    add_dlp_event(siem.platform, siem.tenant)
    await siem.put(enabled=False)
    await siem.record(3)
    await siem.forward()
    assert siem.receiver.got == []
    status = await siem.status()
    assert (status["active"], status["backlog"], status["lag_seconds"]) == (False, 0, None)
    await siem.put(enabled=True)
    await siem.forward()
    assert [event["event"]["action"] for event in siem.events] == ["siem.changed"]


async def test_a_new_receiver_gets_pending_events_at_once(siem: Siem) -> None:
    await siem.begin()
    siem.receiver.otherwise = 500
    await siem.forward()
    siem.receiver.otherwise = 200
    siem.receiver.got.clear()
    await siem.put(url=siem.receiver.url + "new", token=TOKEN)
    await siem.forward()
    assert {got.path for got in siem.receiver.got} == {"/new"}
    assert siem.sequences == siem.stored_sequences()[-2:]


async def test_removed_events_are_counted_and_skipped(siem: Siem) -> None:
    await siem.begin()
    await siem.record(9)
    key = [siem.tenant.id]
    for sequences in ((3, 4, 5), (8, 9, 10, 11)):
        first = siem.stored_sequences()[0]
        removed = [first + sequence - 1 for sequence in sequences]
        siem.platform.sql("DELETE FROM audit_events WHERE tenant_id = %s AND sequence = ANY(%s)", [*key, removed])
    await siem.forward()
    left = [sequence for sequence in siem.stored_sequences() if sequence >= siem.sequences[0]]
    assert siem.sequences == left
    status = await siem.status()
    assert status["backlog"] == 0
    assert status["skipped"] > 0


async def test_the_first_unsent_event_is_known_only_while_forwarding_is_enabled(siem: Siem) -> None:
    def first_unsent() -> int | None:
        ((sequence,),) = siem.platform.sql("SELECT gatehouse_unsent_from(%s)", [siem.tenant.id])
        return sequence

    assert first_unsent() is None
    await siem.begin()
    assert first_unsent() == siem.stored_sequences()[-1]
    await siem.forward()
    assert first_unsent() == siem.stored_sequences()[-1] + 1
    await siem.switch(on=False)
    assert first_unsent() is None


async def test_metrics_show_the_backlog_and_failing_receivers(siem: Siem, tools: Tools) -> None:
    backlog = ForwardingBacklog()
    await siem.begin()
    await siem.record(6)
    add_dlp_event(siem.platform, siem.tenant)
    siem.receiver.otherwise = 500
    await siem.forward()
    await backlog.measure(tools)
    assert (backlog.events, backlog.failing) == (8, 1)
    siem.receiver.otherwise = 200
    await siem.retry()
    await backlog.measure(tools)
    assert (backlog.events, backlog.failing) == (0, 0)


async def test_an_unreadable_secret_is_reported_and_nothing_is_sent(siem: Siem) -> None:
    await siem.begin()
    siem.platform.sql("UPDATE siem_targets SET sealed_secret = 'v1.gone.x' WHERE tenant_id = %s", [siem.tenant.id])
    await siem.forward()
    assert "set the secret again" in (await siem.status())["last_error"]
    assert siem.receiver.got == []


async def test_no_connection_is_made_to_an_address_that_became_private(siem: Siem, tools: Tools) -> None:
    await siem.begin()
    guarded = siem.receiver.trusted(allowlist=())
    siem.forwarding._senders = forwarding.SealedSenders(guarded, tools.sealer, tools.settings.gatehouse_home)
    for body in ({}, {"type": "syslog_tcp", "host": "localhost", "port": int(siem.receiver.url.split(":")[2][:-1])}):
        await siem.put(**body)
        await siem.forward()
        assert "address guard" in (await siem.status())["last_error"]
    assert siem.receiver.got == []
    await guarded.close()


async def test_one_query_finds_the_organization_with_pending_events_among_a_thousand(
    siem: Siem, platform: RunningPlatform, tools: Tools
) -> None:
    platform.sql(
        "WITH t AS (INSERT INTO tenants (id, slug, name, feature_flags) SELECT gen_random_uuid(), 'idle-' || n, 'x',"
        " '{\"audit_log_streaming\": true}' FROM generate_series(1, 1000) n RETURNING id),"
        " s AS (INSERT INTO siem_targets (tenant_id, type, enabled) SELECT id, 'file', true FROM t RETURNING 1),"
        " h AS (INSERT INTO audit_heads (tenant_id, sequence) SELECT id, 5 FROM t)"
        " SELECT count(*) FROM s"
    )
    platform.sql(
        "INSERT INTO siem_cursors (tenant_id, sequence) SELECT s.tenant_id, 5 FROM siem_targets s"
        " JOIN tenants t ON t.id = s.tenant_id AND t.slug LIKE 'idle-%'"
    )
    async with tools.database.at_once() as connection:
        assert await queue.take(connection, 32) == []
    await siem.begin()
    async with tools.database.at_once() as connection:
        assert [turn.tenant_id for turn in await queue.take(connection, 32)] == [siem.tenant.id]
    idle = "tenant_id IN (SELECT id FROM tenants WHERE slug LIKE 'idle-%')"
    platform.sql(f"DELETE FROM siem_targets WHERE {idle}")
    platform.sql(f"DELETE FROM audit_heads WHERE {idle}")
    platform.sql("DELETE FROM tenants WHERE slug LIKE 'idle-%'")


async def test_the_backlog_is_counted_only_up_to_a_limit(siem: Siem, tools: Tools) -> None:
    await siem.begin()
    siem.platform.sql(
        "INSERT INTO siem_queue (tenant_id, id, kind, at, body) SELECT %s, gen_random_uuid(), 'event',"
        " now() - interval '1 hour', '{}' FROM generate_series(1, 100100)",
        [siem.tenant.id],
    )
    backlog = ForwardingBacklog()
    await backlog.measure(tools)
    status = await siem.status()
    assert 100_000 <= status["backlog"] < 100_100
    assert status["lag_seconds"] >= 3600
    assert backlog.events == status["backlog"]
    siem.platform.sql("DELETE FROM siem_queue WHERE tenant_id = %s", [siem.tenant.id])
