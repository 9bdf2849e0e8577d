"""Records that outposts upload are stored once each, in order, and only for the outpost's own organization
(docs/outpost-protocol.md)."""

import asyncio
import time
from typing import Any
from uuid import UUID, uuid4

import msgspec
import pytest
from tests.support.outposts import Outpost, Portal
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.engine.records.outcome import (
    DlpEvent,
    Failed,
    Opened,
    Outcome,
    Scanned,
)
from gatehouse.foundation.ids import new_id
from gatehouse.platform.operations.outposts.schemas import MAX_RECORDS

DLP_EVENT = DlpEvent(
    rule_id="r", rule_name="e-mail", detector_type="regex", entity_type="email", direction="input", status="redacted",
    action="redact", severity="medium", source="platform", score=0.9, match_count=2,
)  # fmt: skip


def arrived(**changed: Any) -> dict[str, Any]:
    return {
        "id": new_id(), "tenant_id": uuid4(), "timestamp": time.time(), "request_id": uuid4().hex,
        "actor_type": "api_key", "user_id": None, "api_key_id": None, "client_id": None, "ip": "10.1.2.3",
        "requested_model": "one/m", "provider": "one", "model_id": "m", **changed,
    }  # fmt: skip


def outcome(**changed: Any) -> Outcome[UUID]:
    known = {
        "path": "/v1/chat/completions", "outcome": "success", "status": 200, "error_code": None, "stream": False,
        "input_tokens": 3, "output_tokens": 4, "cached_tokens": None, "cost_usd": "0.00025", "latency_ms": 12.5,
        "time_to_first_token_ms": None, "provider_latency_ms": 10.0, "fallbacks": 0, "dlp_action": None,
    }  # fmt: skip
    return Outcome(**{**arrived(), **known, **changed})


def lines(*entries: Any) -> list[Any]:
    return [msgspec.to_builtins(entry) for entry in entries]


def usage(platform: RunningPlatform, tenant: Tenant) -> list[Any]:
    return platform.sql("SELECT id FROM usage_records WHERE tenant_id = %s ORDER BY timestamp, id", [tenant.id])


async def test_an_outposts_request_is_recorded_like_any_other(
    platform: RunningPlatform, tenant: Tenant, outpost: Outpost
) -> None:
    sent = outcome(user_id=tenant.user.id, actor_type="user", dlp_action="REDACT", dlp_events=(DLP_EVENT,))
    answer = await outpost.hand_in(uuid4(), 1, lines(sent))
    assert (answer.status_code, answer.json()) == (200, {"next_sequence": 2, "stored": 1, "rejected": []})
    ((record,),) = usage(platform, tenant)
    assert record == sent.id
    listed = (await tenant.admin.client.get("/api/v1/usage/records")).json()
    assert str(sent.id) in str(listed)
    (event,) = await platform.audit(tenant, "gateway.request")
    assert (event["id"], event["actor_type"], event["actor_id"]) == (sent.id, "user", str(tenant.user.id))
    assert (event["details"]["outpost_id"], event["details"]["cost_usd"]) == (str(outpost.id), "0.00025")
    ((entity, status),) = platform.sql("SELECT entity_type, status FROM dlp_events WHERE tenant_id = %s", [tenant.id])
    assert (entity, status) == ("email", "redacted")
    ((requests, triggers),) = platform.sql(
        "SELECT requests, dlp_triggers FROM usage_minutes WHERE tenant_id = %s", [tenant.id]
    )
    assert (requests, triggers) == (1, 1)
    assert platform.breaks(tenant) == []


async def test_webhooks_are_notified_once_of_an_outposts_request(
    platform: RunningPlatform, tenant: Tenant, outpost: Outpost
) -> None:
    """Findings of the request and the answer are announced, but not at the start of a stream and not for a scan."""
    answer = msgspec.structs.replace(DLP_EVENT, rule_id="s", direction="output", action="block", status="blocked")
    ended = outcome(user_id=tenant.user.id, stream=True, dlp_events=(DLP_EVENT, answer))
    began = Opened(**{name: getattr(ended, name) for name in Opened.__struct_fields__ if name != "dlp_events"})
    scan = Scanned(**arrived(), dlp_events=(DLP_EVENT,))
    journal, sent = uuid4(), lines(msgspec.structs.replace(began, dlp_events=(DLP_EVENT,)), scan, ended)
    for _ in range(2):
        assert (await outpost.hand_in(journal, 1, sent)).status_code == 200
    rows = platform.sql("SELECT payload FROM outbox WHERE tenant_id = %s AND event_type = 'dlp_trigger'", [tenant.id])
    ((row,),) = rows
    assert (row["request_id"], row["action_taken"], row["direction"]) == (ended.request_id, "BLOCK", "output")
    assert [(finding["rule_id"], finding["direction"]) for finding in row["findings"]] == [
        ("r", "input"),
        ("s", "output"),
    ]


async def test_a_record_belongs_to_the_outposts_tenant_whatever_it_names(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant, outpost: Outpost
) -> None:
    await outpost.hand_in(uuid4(), 1, lines(outcome(tenant_id=other_tenant.id)))
    assert len(usage(platform, tenant)) == 1
    assert usage(platform, other_tenant) == []
    assert await platform.audit(other_tenant, "gateway.request") == []


async def test_a_repeated_upload_is_stored_once(platform: RunningPlatform, tenant: Tenant, outpost: Outpost) -> None:
    journal, sent = uuid4(), [outcome() for _ in range(5)]
    first = await outpost.hand_in(journal, 1, lines(*sent[:3]))
    again = await outpost.hand_in(journal, 1, lines(*sent[:3]))
    assert (first.json()["stored"], again.json()) == (3, {"next_sequence": 4, "stored": 0, "rejected": []})
    more = await outpost.hand_in(journal, 2, lines(*sent[1:]))
    assert more.json() == {"next_sequence": 6, "stored": 2, "rejected": []}
    assert {row[0] for row in usage(platform, tenant)} == {sent_request.id for sent_request in sent}
    events = await platform.audit(tenant, "gateway.request")
    assert [event["id"] for event in events] == [sent_request.id for sent_request in sent]


async def test_concurrent_uploads_are_stored_once_and_in_order(
    platform: RunningPlatform, tenant: Tenant, outpost: Outpost
) -> None:
    journal, sent = uuid4(), [outcome() for _ in range(40)]
    answers = await asyncio.gather(*(outpost.hand_in(journal, 1, lines(*sent[:count])) for count in (10, 40, 25, 40)))
    assert {answer.status_code for answer in answers} == {200}
    assert sum(answer.json()["stored"] for answer in answers) == 40
    events = await platform.audit(tenant, "gateway.request")
    assert [event["id"] for event in events] == [sent_request.id for sent_request in sent]
    assert platform.breaks(tenant) == []


async def test_a_gap_is_409_and_names_the_expected_number(
    platform: RunningPlatform, tenant: Tenant, outpost: Outpost
) -> None:
    journal = uuid4()
    await outpost.hand_in(journal, 1, lines(outcome()))
    answer = await outpost.hand_in(journal, 3, lines(outcome()))
    body = answer.json()
    assert (answer.status_code, body["error"], body["expected_sequence"]) == (409, "sequence_gap", 2)
    assert len(usage(platform, tenant)) == 1
    request = await outpost.hand_in(journal, 2, [])
    assert request.json() == {"next_sequence": 2, "stored": 0, "rejected": []}


async def test_each_journal_has_its_own_numbers(
    platform: RunningPlatform, portal: Portal, tenant: Tenant, outpost: Outpost
) -> None:
    """An outpost that lost its disk starts another journal. Another outpost may have a journal with the same id."""
    journal, second = uuid4(), await portal.enrol(tenant.id)
    for sender, name in ((outpost, journal), (outpost, uuid4()), (second, journal)):
        assert (await sender.hand_in(name, 1, lines(outcome()))).json()["stored"] == 1
    assert len(usage(platform, tenant)) == 3


async def test_a_duplicate_record_is_reported_and_does_not_block_others(
    platform: RunningPlatform, tenant: Tenant, outpost: Outpost
) -> None:
    sent = [outcome() for _ in range(5)]
    await outpost.hand_in(uuid4(), 1, lines(sent[2]))
    answer = (await outpost.hand_in(uuid4(), 1, lines(*sent))).json()
    assert (answer["next_sequence"], answer["stored"]) == (6, 4)
    assert [item["sequence"] for item in answer["rejected"]] == [3]
    assert len(usage(platform, tenant)) == 5
    assert platform.breaks(tenant) == []


BAD: dict[str, Any] = {
    "no entry": "x",
    "an object": {"type": "outcome"},
    "of another kind": ["strange", 1],
    "cut short": ["outcome", str(uuid4())],
    "a line of COPY in an id": [*lines(outcome())[0][:1], "x\ty\nz", *lines(outcome())[0][2:]],
    "no such actor": lines(outcome(actor_type="root"))[0],
    "no such outcome": lines(outcome(outcome="a\tb"))[0],
    "no such cache": lines(outcome(cache="a\nb"))[0],
    "a column in an event": lines(outcome(dlp_events=(msgspec.structs.replace(DLP_EVENT, status="x\ty"),)))[0],
    "a line in an event": lines(outcome(dlp_events=(msgspec.structs.replace(DLP_EVENT, detector_type="x\n"),)))[0],
    "NUL in an event": lines(outcome(dlp_events=(msgspec.structs.replace(DLP_EVENT, rule_name="a\0b"),)))[0],
    "NUL in an attempt": lines(outcome(attempts=(Failed(provider="a\0", model_id="m", status=None, reason="x"),)))[0],
    "an attempt in the future": lines(
        outcome(attempts=(Failed(provider="a", model_id="m", status=None, reason="x", duration_ms=-1.0),))
    )[0],
    "of 1970": lines(outcome(timestamp=0.0))[0],
    "of next year": lines(outcome(timestamp=time.time() + 370 * 86_400))[0],
    "no money": lines(outcome(cost_usd="-1"))[0],
    "NaN dollars": lines(outcome(cost_usd="NaN"))[0],
    "money in words": lines(outcome(cost_usd="1_0\t2"))[0],
    "a time before the request": lines(outcome(latency_ms=-5.0))[0],
    "endless": lines(outcome(fallbacks=2**40))[0],
    "a large number": [*lines(outcome())[0][:3], 10**400, *lines(outcome())[0][4:]],
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
async def test_an_invalid_record_is_reported_and_does_not_block_others(
    platform: RunningPlatform, tenant: Tenant, outpost: Outpost, bad: Any
) -> None:
    before, after = outcome(), outcome()
    answer = await outpost.hand_in(uuid4(), 1, [*lines(before), bad, *lines(after)])
    body = answer.json()
    assert (answer.status_code, body["next_sequence"], body["stored"]) == (200, 4, 2), body
    ((sequence, reason),) = [(item["sequence"], item["reason"]) for item in body["rejected"]]
    assert (sequence, bool(reason)) == (2, True)
    assert {row[0] for row in usage(platform, tenant)} == {before.id, after.id}


async def test_a_text_with_nul_is_stored_without_it(
    platform: RunningPlatform, tenant: Tenant, outpost: Outpost
) -> None:
    """As in records of gateways, a caller's values may contain any character."""
    answer = await outpost.hand_in(uuid4(), 1, lines(outcome(requested_model="a\0b", provider=None, model_id=None)))
    assert answer.json()["stored"] == 1
    ((model,),) = platform.sql("SELECT requested_model FROM usage_records WHERE tenant_id = %s", [tenant.id])
    assert model == "a\N{REPLACEMENT CHARACTER}b"


async def test_a_stream_that_began_and_ended_in_two_uploads_is_one_record(
    platform: RunningPlatform, tenant: Tenant, outpost: Outpost
) -> None:
    begun, journal = arrived(), uuid4()
    await outpost.hand_in(journal, 1, lines(Opened(**begun)))
    assert usage(platform, tenant) == []
    assert len(platform.sql("SELECT 1 FROM open_streams WHERE id = %s", [begun["id"]])) == 1
    await outpost.hand_in(journal, 2, lines(outcome(**begun, stream=True)))
    assert [row[0] for row in usage(platform, tenant)] == [begun["id"]]
    assert platform.sql("SELECT 1 FROM open_streams WHERE id = %s", [begun["id"]]) == []


async def test_an_outpost_cannot_end_another_outposts_stream(
    platform: RunningPlatform, portal: Portal, other_tenant: Tenant, outpost: Outpost
) -> None:
    begun, other = arrived(), await portal.enrol(other_tenant.id)
    await other.hand_in(uuid4(), 1, lines(Opened(**begun)))
    await outpost.hand_in(uuid4(), 1, lines(outcome(**begun, stream=True)))
    assert len(platform.sql("SELECT 1 FROM open_streams WHERE id = %s", [begun["id"]])) == 1


async def test_findings_of_a_scan_are_events_without_a_request(
    platform: RunningPlatform, tenant: Tenant, outpost: Outpost
) -> None:
    await outpost.hand_in(uuid4(), 1, lines(Scanned(**arrived(), dlp_events=(DLP_EVENT,))))
    nothing = await outpost.hand_in(uuid4(), 1, lines(Scanned(**arrived(), dlp_events=())))
    assert nothing.json() == {"next_sequence": 2, "stored": 1, "rejected": []}
    assert len(platform.sql("SELECT 1 FROM dlp_events WHERE tenant_id = %s", [tenant.id])) == 1
    assert usage(platform, tenant) == []


async def test_a_record_counts_only_for_the_organizations_budgets(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant, outpost: Outpost
) -> None:
    limits = {"scope_type": "tenant", "period": "month", "limit_usd": 9}
    own = (await tenant.admin.client.post("/api/admin/budgets", json=limits)).json()["id"]
    theirs = (await other_tenant.admin.client.post("/api/admin/budgets", json=limits)).json()["id"]
    begins = int(time.time()) // 60 * 60
    counted = ((UUID(own), begins), (UUID(theirs), begins), (other_tenant.id, begins))
    await outpost.hand_in(uuid4(), 1, lines(outcome(budgets=counted), outcome(budgets=counted)))
    rows = platform.sql(
        "SELECT budget_id, recorded_usd, recorded_requests, granted_nano_usd, granted_requests FROM budget_leases"
        " WHERE writer_id = %s",
        [outpost.id],
    )
    assert [(str(row[0]), float(row[1]), row[2], int(row[3]), row[4]) for row in rows] == [(own, 0.0005, 2, 500_000, 2)]


async def test_a_record_marks_only_the_organizations_keys_as_used(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant, outpost: Outpost
) -> None:
    ids = []
    for person in (tenant.user, other_tenant.user):
        await platform.new_key(person)
        ids.append(platform.sql("SELECT id FROM api_keys WHERE user_id = %s", [person.id])[0][0])
    await outpost.hand_in(uuid4(), 1, lines(*(outcome(api_key_id=id_) for id_ in ids)))
    used = [platform.sql("SELECT last_used IS NOT NULL FROM api_keys WHERE id = %s", [id_])[0][0] for id_ in ids]
    assert used == [True, False]


async def test_the_end_user_and_the_tags_come_with_the_record(tenant: Tenant, outpost: Outpost) -> None:
    streamed = Opened(**arrived(), end_user="customer-2", tags=("a",))
    await outpost.hand_in(uuid4(), 1, [*lines(outcome(end_user="customer-1", tags=("a", "b")), streamed), ["ended"]])
    listed = (await tenant.admin.client.get("/api/v1/usage/records", params={"tag": "a"})).json()["records"]
    shown = {(record["status"], record["end_user"], *record["tags"]) for record in listed}
    assert shown == {("success", "customer-1", "a", "b"), ("interrupted", "customer-2", "a")}


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"tags": ("a b",)}, "tags"),
        ({"tags": ("x" * 65,)}, "tags"),
        ({"tags": tuple(map(str, range(11)))}, "tags"),
        ({"end_user": "x" * 257}, "end_user"),
        ({"end_user": "a\0"}, "end_user"),
        ({"end_user": ""}, "end_user"),
    ],
)
async def test_invalid_end_users_and_tags_are_rejected(
    platform: RunningPlatform, tenant: Tenant, outpost: Outpost, changed: dict[str, Any], field: str
) -> None:
    answer = await outpost.hand_in(uuid4(), 1, lines(outcome(**changed), outcome()))
    (rejected,) = answer.json()["rejected"]
    assert (answer.json()["stored"], rejected["sequence"]) == (1, 1)
    assert rejected["reason"].startswith(f"{field}: ")
    assert len(usage(platform, tenant)) == 1


async def test_an_entry_of_an_earlier_version_has_no_end_user_and_tags(tenant: Tenant, outpost: Outpost) -> None:
    answer = await outpost.hand_in(uuid4(), 1, [lines(outcome())[0][:-3]])
    assert answer.json()["stored"] == 1
    (record,) = (await tenant.admin.client.get("/api/v1/usage/records")).json()["records"]
    assert (record["end_user"], record["tags"]) == (None, [])


async def test_calls_are_refused_while_the_flag_is_off(
    platform: RunningPlatform, portal: Portal, tenant: Tenant
) -> None:
    outpost = await portal.enrol(tenant.id, enabled=False)
    refused = await outpost.hand_in(uuid4(), 1, lines(outcome()))
    assert (refused.status_code, refused.json()["error"]) == (403, "outposts_disabled")
    assert usage(platform, tenant) == []


async def test_too_many_entries_are_413(outpost: Outpost) -> None:
    answer = await outpost.hand_in(uuid4(), 1, ["x"] * (MAX_RECORDS + 1))
    assert (answer.status_code, answer.json()["error"]) == (413, "too_many_records")


async def test_a_too_large_body_is_413_before_it_is_read(outpost: Outpost) -> None:
    answer = await outpost.hand_in(uuid4(), 1, ["x" * 11_000_000])
    assert (answer.status_code, answer.json()["error"]) == (413, "request_too_large")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"sequence": 1, "entries": []}, "journal_id"),
        ({"journal_id": "x", "sequence": 1, "entries": []}, "journal_id"),
        ({"journal_id": str(uuid4()), "sequence": 0, "entries": []}, "sequence"),
        ({"journal_id": str(uuid4()), "sequence": "1", "entries": []}, "sequence"),
        ({"journal_id": str(uuid4()), "sequence": 1, "entries": {}}, "entries"),
        ({"journal_id": str(uuid4()), "sequence": 1, "entries": [], "surprise": 1}, "surprise"),
    ],
)
async def test_a_bad_field_is_named(outpost: Outpost, body: dict[str, Any], field: str) -> None:
    answer = await outpost.platform.anonymous.post("/v1/outposts/records", json=body, headers=outpost.headers)
    assert answer.status_code == 422
    assert [fault["field"] for fault in answer.json()["details"]] == [field]


async def test_a_full_upload_is_stored_in_one_transaction(
    platform: RunningPlatform, tenant: Tenant, outpost: Outpost
) -> None:
    answer = await outpost.hand_in(uuid4(), 1, lines(*(outcome() for _ in range(MAX_RECORDS))))
    assert answer.json() == {"next_sequence": MAX_RECORDS + 1, "stored": MAX_RECORDS, "rejected": []}
    assert len(usage(platform, tenant)) == MAX_RECORDS


async def test_open_requests_of_a_dead_process_are_recorded_as_interrupted(
    platform: RunningPlatform, tenant: Tenant, outpost: Outpost
) -> None:
    before, begun, over, living = arrived(), arrived(), arrived(), arrived()
    dead, alive = uuid4(), uuid4()
    await outpost.hand_in(alive, 1, lines(Opened(**living)))
    await outpost.hand_in(dead, 1, lines(Opened(**before)))
    ends = [*lines(Opened(**begun), Opened(**over), outcome(**over, stream=True)), ["ended"]]
    answer = await outpost.hand_in(dead, 2, ends)
    assert (answer.json()["stored"], answer.json()["rejected"]) == (4, [])
    events = {event["id"]: event for event in await platform.audit(tenant, "gateway.request")}
    assert {key: event["outcome"] for key, event in events.items()} == {
        before["id"]: "interrupted", begun["id"]: "interrupted", over["id"]: "success"
    }  # fmt: skip
    assert {event["details"]["outpost_id"] for event in events.values()} == {str(outpost.id)}
    # The process of the other journal is alive.
    assert len(platform.sql("SELECT 1 FROM open_streams WHERE id = %s", [living["id"]])) == 1


async def test_lost_records_of_an_outpost_are_in_the_audit_chain(
    platform: RunningPlatform, tenant: Tenant, outpost: Outpost
) -> None:
    journal = uuid4()
    answer = await outpost.hand_in(journal, 1, [*lines(outcome()), ["lost", "damaged", None, 412], *lines(outcome())])
    assert (answer.json()["next_sequence"], answer.json()["rejected"]) == (4, [])
    (event,) = await platform.audit(tenant, "outpost.records_lost")
    assert (event["actor_type"], event["resource_id"], event["reason"]) == ("outpost", str(outpost.id), "damaged")
    assert event["details"] == {"journal_id": str(journal), "sequence": 2, "records": None, "bytes": 412}
    assert len(usage(platform, tenant)) == 2
    assert platform.breaks(tenant) == []


@pytest.mark.parametrize(
    "bad",
    [
        ["lost"],
        ["lost", "stolen\t"],
        ["lost", "gone", -1],
        ["lost", "gone", 2**60],
        ["ended", 1],
        ["operated", str(uuid4()), 0.0, "kill_switch", "10.0.0.5"],
        ["operated", str(uuid4()), time.time(), "Kill the switch", "10.0.0.5"],
        ["operated", "x", time.time(), "kill_switch", "10.0.0.5"],
        ["operated", str(uuid4()), time.time(), "kill_switch", "10.0.0.5" * 20],
        ["operated", str(uuid4()), time.time(), "kill_switch", "10.0.0.5", None, {"x": "y" * 301}],
        ["operated", str(uuid4()), time.time(), "kill_switch", "10.0.0.5", None, {"x": "\x00"}],
        ["operated", str(uuid4()), time.time(), "kill_switch", "10.0.0.5", None, {str(item): 1 for item in range(21)}],
    ],
)
async def test_an_invalid_notice_is_reported(outpost: Outpost, bad: Any) -> None:
    body = (await outpost.hand_in(uuid4(), 1, [bad])).json()
    assert [item["sequence"] for item in body["rejected"]] == ([] if bad[0] == "ended" else [1])
