"""Samples of an organization's requests: setting, storage, labels and replay."""

import json
from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import pytest
from tests.support.platform import RunningPlatform, Tenant
from tests.support.samples import SAMPLES, SETTING, chat, drained, kept, labelled, sample_every_call

from gatehouse.engine.records.outcome import Sampled, decode_of_platform
from gatehouse.engine.records.outcome import encode as encode_entry
from gatehouse.engine.records.samples import Contents, encode
from gatehouse.engine.stages.calls import sampling
from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.secrets.sealing import Sealer, Tampered
from gatehouse.platform.governance.dlp_samples import contents
from gatehouse.platform.governance.dlp_trials.schemas import Replayed
from gatehouse.platform.keeper.housekeeping import prune

REPLAY = "/api/admin/dlp-rules/replay"
CARD = "For Bob: my card is 4111 1111 1111 1111, or ask Aurora-77."
PROJECT = {
    "detector_name": "Projects", "detector_type": "regex", "entity_type": "project", "action_tier": "block",
    "config_json": {"pattern": "Aurora-[0-9]+"},
}  # fmt: skip


@pytest.fixture
async def sandbox(platform: RunningPlatform, tenant: Tenant) -> Tenant:
    await sample_every_call(platform, tenant)
    return tenant


async def replay_samples(tenant: Tenant, **body: Any) -> dict[str, Any]:
    answer = await tenant.admin.client.post(REPLAY, json=body)
    assert answer.status_code == 200, answer.text
    response_body: dict[str, Any] = answer.json()
    return response_body


# the setting ------------------------------------------------------------------------------------------------------


async def test_no_sample_is_stored_until_an_administrator_enables_sampling(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    await platform.add_provider(tenant.id, "sandbox", "sandbox", "echo")
    sources = {"share": "default", "retention_days": "default"}
    shown = (await tenant.auditor.client.get(SETTING)).json()
    assert shown == {"share": 0.0, "retention_days": 30, "sources": sources}
    await chat(tenant.user, CARD)
    changed = (await tenant.admin.client.put(SETTING, json={"share": 1})).json()
    assert changed["sources"] == {**sources, "share": "organization"}
    await tenant.admin.client.put(SETTING, json={"share": 0})
    await chat(tenant.user, CARD)
    await drained(platform)
    assert (await tenant.admin.client.get(SAMPLES)).json() == {"samples": [], "total": 0}


async def test_a_change_of_the_setting_is_audited_and_may_be_partial(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant
) -> None:
    answer = await tenant.admin.client.put(SETTING, json={"share": 0.25, "retention_days": 7})
    sources = {"share": "organization", "retention_days": "organization"}
    assert answer.json() == {"share": 0.25, "retention_days": 7, "sources": sources}
    assert (await tenant.admin.client.put(SETTING, json={"share": 0.5})).json()["retention_days"] == 7
    events = [event["details"] for event in await platform.audit(tenant, "dlp_sampling.changed")]
    assert events[0] == {"share": 0.25, "retention_days": 7, "before": {"share": 0.0, "retention_days": 30}}
    assert events[1] == {"share": 0.5, "before": {"share": 0.25}}
    assert (await other_tenant.admin.client.get(SETTING)).json()["share"] == 0


@pytest.mark.parametrize(
    ("body", "field"),
    [({"share": 1.1}, "share"), ({"share": -0.1}, "share"), ({"retention_days": 0}, "retention_days"),
     ({"retention_days": 91}, "retention_days"), ({"colour": 1}, "colour")],
)  # fmt: skip
async def test_a_bad_setting_names_the_field(tenant: Tenant, body: dict[str, Any], field: str) -> None:
    answer = await tenant.admin.client.put(SETTING, json=body)
    assert answer.status_code == 422
    assert field in answer.text


async def test_only_administrators_change_the_setting(platform: RunningPlatform, tenant: Tenant) -> None:
    assert (await platform.client("gk_nobody").put(SETTING, json={"share": 1})).status_code == 401
    for person in (tenant.user, tenant.auditor):
        assert (await person.client.put(SETTING, json={"share": 1})).status_code == 403


# contents of samples ----------------------------------------------------------------------------------------------


async def test_a_sample_is_listed_without_its_texts_and_stored_encrypted(
    platform: RunningPlatform, sandbox: Tenant
) -> None:
    answer = await chat(sandbox.user, "Hello", CARD)
    assert "4111 1111" not in answer.text
    await drained(platform)
    shown = (await sandbox.auditor.client.get(SAMPLES)).json()
    (sample,) = shown["samples"]
    echoed = answer.json()["choices"][0]["message"]["content"]
    assert shown["total"] == 1
    assert sample == {
        "id": sample["id"], "request_id": answer.headers["x-request-id"], "timestamp": sample["timestamp"],
        "user_id": str(sandbox.user.id), "requested_model": "sandbox/echo", "texts": 2,
        "answer_texts": 1, "characters": len(CARD) + 5 + len(echoed), "labels": None,
        "expected_action": None, "labelled_by": None, "labelled_at": None,
    }  # fmt: skip
    (sealed,) = platform.sql("SELECT sealed_key, contents FROM dlp_samples WHERE tenant_id = %s", [sandbox.id])
    assert all(text.startswith("v1.") for text in sealed)
    journal = platform.host.settings.gatehouse_home / "journal"
    assert not any(b"4111 1111" in path.read_bytes() for path in journal.rglob("*") if path.is_file())


async def test_a_request_that_dlp_blocks_is_sampled(platform: RunningPlatform, sandbox: Tenant) -> None:
    await sandbox.admin.client.post("/api/admin/dlp-rules/", json=PROJECT)
    assert (await chat(sandbox.user, CARD)).status_code == 403
    await drained(platform)
    assert (await sandbox.admin.client.get(SAMPLES)).json()["total"] == 1


async def test_the_number_of_samples_per_minute_and_worker_is_limited(
    platform: RunningPlatform, sandbox: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contents, "MAX_PER_MINUTE", 2)
    # The patch is limited to this module, because the event loop's timers use the same clock.
    monkeypatch.setattr(contents, "time", SimpleNamespace(monotonic=lambda: 1e9))
    for _ in range(4):
        assert (await chat(sandbox.user, CARD)).status_code == 200
    await drained(platform)
    assert (await sandbox.admin.client.get(SAMPLES)).json()["total"] == 2


async def test_the_texts_of_a_long_request_are_truncated(platform: RunningPlatform, sandbox: Tenant) -> None:
    await chat(sandbox.user, "x" * 99_990, "y" * 100, "z")
    await drained(platform)
    (sample,) = (await sandbox.admin.client.get(SAMPLES)).json()["samples"]
    assert (sample["texts"], sample["characters"]) == (2, 100_000 + 1)
    revealed = (await sandbox.admin.client.post(f"{SAMPLES}/{sample['id']}/reveal")).json()
    assert [len(text) for text in revealed["contents"]] == [99_990, 10]


def test_a_sealed_sample_is_bound_to_its_row() -> None:
    sealer = Sealer({"k": bytes(32)}, "k")
    tenant_id, sample_id = uuid4(), uuid4()
    sealed = contents.SealingSampler(sealer).seal(tenant_id, sample_id, encode(Contents(texts=["a", "b"])))
    assert contents.decrypt(sealer, tenant_id, sample_id, *sealed).texts == ["a", "b"]
    with pytest.raises(Tampered):
        contents.decrypt(sealer, tenant_id, uuid4(), *sealed)


async def test_a_sample_contains_the_answer_and_the_decisions(platform: RunningPlatform, sandbox: Tenant) -> None:
    """The sample contains the answer of the provider, including text that a rule blocks."""
    await sandbox.admin.client.post("/api/admin/policies", json={"name": "a", "condition": "true", "action": "LOG"})
    # The pattern matches only the answer.
    rule = {**PROJECT, "config_json": {"pattern": '"echo"'}}
    await sandbox.admin.client.post("/api/admin/dlp-rules/", json=rule)
    answer = await chat(sandbox.user, "Hello", response_format={"type": "json_object"})
    assert answer.status_code == 403
    await drained(platform)
    (sample,) = (await sandbox.admin.client.get(SAMPLES)).json()["samples"]
    sample = (await sandbox.admin.client.post(f"{SAMPLES}/{sample['id']}/reveal")).json()
    assert ("Hello" in sample["contents"], sample["answer"]) == (True, ['{"echo":"Hello"}'])
    assert (sample["dlp_action"], sample["policy_action"], sample["answer_texts"]) == ("block", "LOG", 1)
    assert sample["context"]["model"] == "sandbox/echo"
    # Policy rules were evaluated before the answer was inspected.
    assert sample["context"]["dlp"] == {"action": "ALLOW", "entities": [], "counts": {}}


async def test_an_error_of_sampling_does_not_affect_the_request(
    platform: RunningPlatform, sandbox: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(contents.SealingSampler, "seal", fails)
    assert (await chat(sandbox.user, CARD)).status_code == 200
    await drained(platform)
    assert (await sandbox.admin.client.get(SAMPLES)).json()["total"] == 0


def test_a_journal_entry_of_the_previous_version_is_read() -> None:
    sampled = Sampled(
        id=uuid4(), tenant_id=uuid4(), timestamp=1.0, request_id="r", actor_type="user", user_id=None, api_key_id=None,
        client_id=None, ip="", requested_model="m", provider=None, model_id=None, sealed_key="k", contents="c", texts=1,
        characters=2, answer_texts=3,
    )  # fmt: skip
    line = json.dumps(json.loads(encode_entry(sampled))[:-1]).encode()
    entry = decode_of_platform(line)
    assert isinstance(entry, Sampled)
    assert (entry.characters, entry.answer_texts) == (2, None)


async def test_embeddings_are_not_stored_as_answers(platform: RunningPlatform, sandbox: Tenant) -> None:
    await sandbox.user.client.post("/v1/embeddings", json={"model": "sandbox/echo", "input": "Hello"})
    await drained(platform)
    (sample,) = (await sandbox.admin.client.get(SAMPLES)).json()["samples"]
    assert (sample["texts"], sample["answer_texts"]) == (1, None)


@pytest.mark.parametrize(
    ("path", "more"),
    [
        ("/v1/chat/completions", {}), ("/v1/messages", {"max_tokens": 99}), ("/v1/responses", {}),
        ("/v1/chat/completions", {"fallbacks": ["sandbox/echo"]}),
    ],
)  # fmt: skip
async def test_the_answer_of_a_stream_is_stored_as_one_text(
    platform: RunningPlatform, sandbox: Tenant, path: str, more: dict[str, Any]
) -> None:
    text = "My card is 4111 1111 1111 1111."
    field = "input" if path.endswith("responses") else "messages"
    body = {"model": "sandbox/echo", field: [{"role": "user", "content": text}], "stream": True, **more}
    answer = await sandbox.user.client.post(path, json=body)
    assert answer.status_code == 200, answer.text
    await drained(platform)
    (sample,) = (await sandbox.admin.client.get(SAMPLES)).json()["samples"]
    shown = (await sandbox.admin.client.post(f"{SAMPLES}/{sample['id']}/reveal")).json()
    assert shown["contents"] == [text]
    assert shown["answer"].count("My card is [CREDIT_CARD_1].") == 1
    assert (sample["answer_texts"], shown["dlp_action"]) == (len(shown["answer"]), "redact")


async def test_the_answer_of_a_blocked_stream_is_stored_as_the_provider_sent_it(
    platform: RunningPlatform, sandbox: Tenant
) -> None:
    rule = {**PROJECT, "config_json": {"pattern": '"echo"'}}
    await sandbox.admin.client.post("/api/admin/dlp-rules/", json=rule)
    sample_id = await kept(platform, sandbox, "Hello", response_format={"type": "json_object"}, stream=True)
    sample = (await sandbox.admin.client.post(f"{SAMPLES}/{sample_id}/reveal")).json()
    assert (sample["answer"], sample["dlp_action"]) == (['{"echo":"Hello"}'], "block")


@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_that_is_too_long_is_not_stored(
    platform: RunningPlatform, sandbox: Tenant, monkeypatch: pytest.MonkeyPatch, stream: bool
) -> None:
    monkeypatch.setattr(sampling, "MAX_ANSWER_BYTES", 100)
    sample_id = await kept(platform, sandbox, "Hello", stream=stream)
    sample = (await sandbox.admin.client.post(f"{SAMPLES}/{sample_id}/reveal")).json()
    assert (sample["contents"], sample["answer"], sample["answer_texts"]) == (["Hello"], None, None)


async def test_a_users_samples_are_deleted_with_the_user(platform: RunningPlatform, sandbox: Tenant) -> None:
    await kept(platform, sandbox, CARD)
    await chat(sandbox.user, CARD)
    assert (await sandbox.admin.client.delete(f"/api/admin/users/{sandbox.user.id}")).status_code == 204
    # One of the two samples is still in the journal.
    await drained(platform)
    assert (await sandbox.admin.client.get(SAMPLES)).json()["total"] == 0


def add(platform: RunningPlatform, tenant: Tenant, *, days: int = 0) -> UUID:
    sample_id = uuid4()
    platform.sql(
        "INSERT INTO dlp_samples (id, tenant_id, request_id, timestamp, texts, characters, sealed_key, contents)"
        " VALUES (%s, %s, 'r', %s, 1, 1, 'x', 'x')",
        [sample_id, tenant.id, utc_now() - timedelta(days=days)],
    )
    return sample_id


async def test_samples_are_deleted_after_the_retention_period_unless_there_is_a_legal_hold(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant
) -> None:
    class Tools:
        database = platform.host.database

    async def remaining_ids() -> set[UUID]:
        await prune(Tools())  # type: ignore[arg-type]
        query = "SELECT id FROM dlp_samples WHERE tenant_id IN (%s, %s)"
        return {sample_id for (sample_id,) in platform.sql(query, [tenant.id, other_tenant.id])}

    await tenant.admin.client.put(SETTING, json={"retention_days": 7})
    old, recent, foreign = (
        add(platform, tenant, days=8),
        add(platform, tenant, days=6),
        add(platform, other_tenant, days=8),
    )
    hold = "/api/v1/admin/retention/legal-hold"
    assert (await tenant.admin.client.put(hold, json={"reason": "a dispute"})).status_code < 300
    assert await remaining_ids() == {old, recent, foreign}
    assert (await tenant.admin.client.delete(hold)).status_code < 300
    assert await remaining_ids() == {recent, foreign}
    platform.sql("UPDATE tenants SET deleted_at = now() WHERE id = %s", [other_tenant.id])
    assert await remaining_ids() == {recent}


# reading and labelling --------------------------------------------------------------------------------------------


async def test_reading_a_sample_is_audited(platform: RunningPlatform, sandbox: Tenant) -> None:
    sample_id = await kept(platform, sandbox, "Hello", CARD)
    path = f"{SAMPLES}/{sample_id}/reveal"
    for person in (sandbox.auditor, sandbox.user):
        assert (await person.client.post(path)).status_code == 403
    assert await platform.audit(sandbox, "dlp_sample.revealed") == []
    answer = await sandbox.admin.client.post(path)
    assert (answer.status_code, answer.json()["contents"]) == (200, ["Hello", CARD])
    (event,) = await platform.audit(sandbox, "dlp_sample.revealed")
    assert (event["resource_id"], event["actor_id"]) == (sample_id, str(sandbox.admin.id))
    assert "4111 1111" not in str(event)


async def test_a_reviewer_labels_the_entity_types_of_a_sample(platform: RunningPlatform, sandbox: Tenant) -> None:
    sample_id = await kept(platform, sandbox, CARD)
    answer = await labelled(sandbox, sample_id, labels={"credit_card": True, "email": False})
    shown = answer.json()
    assert (answer.status_code, shown["labels"]) == (200, {"credit_card": True, "email": False})
    assert (shown["labelled_by"], shown["labelled_at"] is not None) == (str(sandbox.admin.id), True)
    (event,) = await platform.audit(sandbox, "dlp_sample.labelled")
    assert (event["resource_id"], event["details"]) == (sample_id, {"labels": shown["labels"]})

    async def total(value: str) -> int:
        number: int = (await sandbox.admin.client.get(SAMPLES, params={"labelled": value})).json()["total"]
        return number

    assert (await total("true"), await total("false")) == (1, 0)
    cleared = await sandbox.admin.client.put(f"{SAMPLES}/{sample_id}/labels", json={"labels": None})
    assert (cleared.json()["labels"], cleared.json()["labelled_by"]) == (None, None)
    assert (await total("true"), await total("false")) == (0, 1)


@pytest.mark.parametrize(
    ("body", "field"),
    [({}, "labels"), ({"labels": {"no good!": True}}, "labels"), ({"labels": {"email": "yes"}}, "labels"),
     ({"labels": None, "more": 1}, "more"), ({"expected_action": "REFUSE"}, "expected_action")],
)  # fmt: skip
async def test_bad_labels_name_the_field(tenant: Tenant, platform: RunningPlatform, body: Any, field: str) -> None:
    answer = await tenant.admin.client.put(f"{SAMPLES}/{add(platform, tenant)}/labels", json=body)
    assert (answer.status_code, answer.json()["detail"][0]["loc"][1]) == (400, field)


async def test_a_sample_can_be_deleted(platform: RunningPlatform, tenant: Tenant) -> None:
    sample_id = add(platform, tenant)
    assert (await tenant.admin.client.delete(f"{SAMPLES}/{sample_id}")).status_code == 204
    assert (await tenant.admin.client.delete(f"{SAMPLES}/{sample_id}")).status_code == 404
    (event,) = await platform.audit(tenant, "dlp_sample.deleted")
    assert event["resource_id"] == str(sample_id)


async def test_a_reviewer_labels_the_expected_decision_of_policy_rules(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    sample_id = str(add(platform, tenant))
    shown = (await labelled(tenant, sample_id, expected_action="BLOCK")).json()
    assert (shown["labels"], shown["expected_action"], shown["labelled_by"]) == (None, "BLOCK", str(tenant.admin.id))
    shown = (await labelled(tenant, sample_id, labels={"email": True})).json()
    assert (shown["labels"], shown["expected_action"]) == ({"email": True}, "BLOCK")
    assert (await tenant.admin.client.get(SAMPLES, params={"labelled": "true"})).json()["total"] == 1
    shown = (await labelled(tenant, sample_id, labels=None)).json()
    assert (shown["expected_action"], shown["labelled_by"]) == ("BLOCK", str(tenant.admin.id))
    shown = (await labelled(tenant, sample_id, expected_action=None)).json()
    assert (shown["expected_action"], shown["labelled_by"], shown["labelled_at"]) == (None, None, None)
    details = [event["details"] for event in await platform.audit(tenant, "dlp_sample.labelled")]
    assert details == [
        {"expected_action": "BLOCK"}, {"labels": {"email": True}}, {"labels": None}, {"expected_action": None},
    ]  # fmt: skip


async def test_only_administrators_label(platform: RunningPlatform, tenant: Tenant) -> None:
    path = f"{SAMPLES}/{add(platform, tenant)}/labels"
    assert (await platform.client("gk_nobody").put(path, json={"labels": {}})).status_code == 401
    for person in (tenant.user, tenant.auditor):
        assert (await person.client.put(path, json={"labels": {}})).status_code == 403


async def test_another_organizations_sample_is_not_found(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant
) -> None:
    path = f"{SAMPLES}/{add(platform, other_tenant)}"
    client = tenant.admin.client
    answers = [
        await client.post(f"{path}/reveal"), await client.put(f"{path}/labels", json={"labels": {}}),
        await client.delete(path), await client.post(f"{SAMPLES}/nope/reveal"),
    ]  # fmt: skip
    assert [(answer.status_code, answer.json()) for answer in answers] == [(404, {"detail": "Sample not found"})] * 4
    assert (await client.get(SAMPLES)).json()["total"] == 0


# replay -----------------------------------------------------------------------------------------------------------


async def test_a_draft_rule_is_replayed_on_recorded_requests(platform: RunningPlatform, sandbox: Tenant) -> None:
    await kept(platform, sandbox, "Nothing here")
    sample_id = await kept(platform, sandbox, "Hello", CARD)
    replay = await replay_samples(sandbox, add_rule=PROJECT, recorded={"last": 10})
    assert Replayed.model_validate(replay, extra="forbid").model_dump(mode="json") == replay
    assert (replay["samples"], replay["totals"]["block"], replay["totals_now"]["redact"]) == (2, 1, 1)
    first, second = replay["results"]
    assert (first["id"], first["action"], first["action_now"]) == (sample_id, "block", "redact")
    keys = ("rule_name", "direction", "text", "excerpt")
    assert [tuple(match[key] for key in keys) for match in first["matches"]] == [
        ("Payment card number", "input", 1, "For Bob: my card is 9999 9999 9999 9999, or ask xxxxxx-99."),
        ("Projects", "input", 1, "s 9999 9999 9999 9999, or ask xxxxxx-99."),
        ("Projects", "output", 0, "rd is [CREDIT_CARD_1], or ask xxxxxx-99."),
    ]
    assert (replay["changed"], first["action_then"], second["action_then"]) == ([sample_id], "redact", "allow")
    assert replay["totals_then"] == {"allow": 1, "log_only": 0, "redact": 1, "prompt": 0, "block": 0}
    assert (second["action"], second["matches"]) == ("allow", [])
    (event,) = await platform.audit(sandbox, "dlp_sample.replayed")
    assert event["details"] == {"draft": "dlp_rules", "samples": 2, "last": 10, "days": None, "labelled": None}
    assert (await sandbox.admin.client.get("/api/admin/dlp-rules/")).json() == []


async def test_an_excerpt_masks_findings_of_the_current_rules_that_the_draft_does_not_find(
    platform: RunningPlatform, sandbox: Tenant
) -> None:
    await kept(platform, sandbox, CARD)
    replay = await replay_samples(sandbox, rules=[PROJECT], suppressions=["credit-card"], recorded={})
    match, _ = replay["results"][0]["matches"]
    assert match["excerpt"] == "s 9999 9999 9999 9999, or ask xxxxxx-99."


async def test_a_replay_measures_a_draft_by_the_labels(platform: RunningPlatform, sandbox: Tenant) -> None:
    texts = ("Aurora-1", "Aurora-2", "Project Borealis", "nothing")
    ids = [await kept(platform, sandbox, text) for text in texts]
    for sample_id, there in zip(ids, (True, False, True, False), strict=True):
        await labelled(sandbox, sample_id, labels={"project": there})
    await kept(platform, sandbox, "Aurora-3")
    replay = await replay_samples(sandbox, add_rule=PROJECT, recorded={})
    assert (replay["samples"], replay["labelled"]) == (5, 4)
    assert replay["measures"] == [
        {
            "entity_type": "project", "right": 1, "wrong": 1, "missed": 1, "precision": 0.5, "recall": 0.5,
            "right_now": 0, "wrong_now": 0, "missed_now": 2, "precision_now": None, "recall_now": 0.0,
        }
    ]  # fmt: skip
    latest = await replay_samples(sandbox, add_rule=PROJECT, recorded={"labelled": True, "last": 2})
    assert [result["id"] for result in latest["results"]] == [ids[3], ids[2]]


async def test_a_replay_skips_samples_that_are_too_old_or_cannot_be_decrypted(
    platform: RunningPlatform, sandbox: Tenant
) -> None:
    sample_id = await kept(platform, sandbox, CARD)
    add(platform, sandbox)
    old = platform.sql(
        "INSERT INTO dlp_samples (id, tenant_id, request_id, timestamp, texts, characters, sealed_key, contents)"
        " SELECT gen_random_uuid(), tenant_id, 'r', now() - interval '3 days', 1, 1, sealed_key, contents"
        " FROM dlp_samples WHERE id = %s RETURNING id",
        [sample_id],
    )
    assert old
    replay = await replay_samples(sandbox, recorded={"days": 2})
    assert [result["id"] for result in replay["results"]] == [sample_id]


async def test_a_sample_of_the_previous_version_is_read(platform: RunningPlatform, sandbox: Tenant) -> None:
    """Samples of the earlier version contain only the texts of the request."""
    sample_id = uuid4()
    sealed_key, sealed = contents.SealingSampler(platform.host.sealer).seal(
        sandbox.id, sample_id, json.dumps(["Hello", CARD]).encode()
    )
    platform.sql(
        "INSERT INTO dlp_samples (id, tenant_id, request_id, timestamp, texts, characters, sealed_key, contents)"
        " VALUES (%s, %s, 'r', now(), 2, 1, %s, %s)",
        [sample_id, sandbox.id, sealed_key, sealed],
    )
    shown = (await sandbox.admin.client.post(f"{SAMPLES}/{sample_id}/reveal")).json()
    assert (shown["contents"], shown["answer"], shown["context"]) == (["Hello", CARD], None, None)
    replay = await replay_samples(sandbox, add_rule=PROJECT, recorded={})
    (result,) = replay["results"]
    assert (result["action"], result["action_now"], result["action_then"]) == ("block", "redact", None)
    # The earlier result is unknown, so the draft is compared with the current rules.
    assert (replay["changed"], sum(replay["totals_then"].values())) == ([str(sample_id)], 0)


async def test_a_replay_applies_the_overrides_of_the_callers_groups(platform: RunningPlatform, sandbox: Tenant) -> None:
    created = (await sandbox.admin.client.post("/api/admin/groups", json={"name": "clerks"})).json()
    group = f"/api/admin/groups/{created['id']}"
    member = await sandbox.admin.client.post(f"{group}/members", json={"user_id": str(sandbox.user.id)})
    assert member.status_code < 300, member.text
    overrides = [{"entity_type": "credit_card", "action": "ALLOW"}]
    answer = await sandbox.admin.client.put(f"{group}/dlp", json=overrides)
    assert answer.status_code == 200, answer.text
    await kept(platform, sandbox, CARD)
    (result,) = (await replay_samples(sandbox, recorded={}))["results"]
    assert (result["action"], result["action_then"]) == ("allow", "allow")


@pytest.mark.parametrize(
    ("body", "field"),
    [({"recorded": {"last": 0}}, "recorded.last"), ({"recorded": {"last": 1_001}}, "recorded.last"),
     ({"recorded": {"days": 91}}, "recorded.days"), ({"recorded": {"first": 1}}, "recorded.first"),
     ({"recorded": {}, "add_rule": {**PROJECT, "entity_type": "no good"}}, "add_rule.entity_type"),
     ({"recorded": {}, "add_rule": {**PROJECT, "config_json": {"pattern": "("}}}, "add_rule.config_json.pattern")],
)  # fmt: skip
async def test_a_bad_replay_names_the_field(tenant: Tenant, body: dict[str, Any], field: str) -> None:
    answer = await tenant.admin.client.post(REPLAY, json=body)
    assert answer.status_code == 400, answer.text
    assert ".".join(map(str, answer.json()["detail"][0]["loc"][1:])) == field


async def test_a_replay_needs_either_sent_or_recorded_samples(tenant: Tenant) -> None:
    for body in ({}, {"samples": ["x"], "recorded": {}}):
        answer = await tenant.admin.client.post(REPLAY, json=body)
        assert (answer.status_code, "`recorded`" in answer.text) == (400, True)


async def test_only_administrators_replay(platform: RunningPlatform, tenant: Tenant) -> None:
    assert (await platform.client("gk_nobody").post(REPLAY, json={"recorded": {}})).status_code == 401
    for person in (tenant.user, tenant.auditor):
        assert (await person.client.post(REPLAY, json={"recorded": {}})).status_code == 403
