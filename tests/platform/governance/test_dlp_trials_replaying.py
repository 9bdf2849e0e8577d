"""Replays of many texts with a draft, compared with the current rules."""

import asyncio
import json
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.detection.findings import Finding
from gatehouse.platform.governance.dlp_trials.schemas import Replayed
from gatehouse.platform.governance.replays import pace

BASE = "/api/admin/dlp-rules"
REPLAY = f"{BASE}/replay"
CARD = "Pay with 4111 1111 1111 1111."
AURORA = "About Aurora."
HARMLESS = "Nothing to see."
PROJECT: dict[str, Any] = {
    "detector_name": "Project names",
    "detector_type": "regex",
    "entity_type": "project",
    "action_tier": "block",
    "config_json": {"pattern": "Aurora"},
}


async def replay_samples(tenant: Tenant, **body: Any) -> dict[str, Any]:
    answer = await tenant.admin.client.post(REPLAY, json=body)
    assert answer.status_code == 200, answer.text
    response_body: dict[str, Any] = answer.json()
    return response_body


async def test_the_response_matches_its_schema(tenant: Tenant) -> None:
    replay = await replay_samples(tenant, rules=[PROJECT], samples=[CARD, {"id": "t-1", "text": AURORA}, HARMLESS])
    assert Replayed.model_validate(replay, extra="forbid").model_dump(mode="json") == replay


async def test_a_draft_is_compared_with_the_current_rules(tenant: Tenant) -> None:
    replay = await replay_samples(
        tenant, rules=[PROJECT], suppressions=["credit-card"], samples=[CARD, {"id": "t-1", "text": AURORA}, HARMLESS]
    )
    assert [
        (result["index"], result["id"], result["action"], result["action_now"], result["rules"])
        for result in replay["results"]
    ] == [
        (0, None, "allow", "redact", []),
        (1, "t-1", "block", "allow", ["Project names"]),
        (2, None, "allow", "allow", []),
    ]
    assert (replay["samples"], replay["complete"], replay["tier_failures"]) == (3, True, 0)
    assert replay["totals"] == {"allow": 2, "log_only": 0, "redact": 0, "prompt": 0, "block": 1}
    assert replay["totals_now"] == {"allow": 2, "log_only": 0, "redact": 1, "prompt": 0, "block": 0}
    assert replay["differences"] == {"stricter": 1, "weaker": 1, "same": 1}
    assert replay["changed"] == ["t-1"]
    project, card = replay["rules"]
    assert project == {
        "rule_name": "Project names",
        "entity_type": "project",
        "detector_type": "regex",
        "source": "organization",
        "action_tier": "block",
        "action_tier_now": None,
        "samples": 1,
        "samples_now": 0,
        "matches": 1,
        "matches_now": 0,
    }
    assert (card["entity_type"], card["action_tier"], card["action_tier_now"]) == ("credit_card", None, "redact")
    assert replay["cost"]["max_us"] >= replay["cost"]["p95_us"] > 0
    assert replay["cost"]["mean_us_now"] > 0
    assert all(result["cost_us"] > 0 for result in replay["results"])


async def test_a_draft_is_neither_stored_nor_applied(platform: RunningPlatform, tenant: Tenant) -> None:
    before = platform.sql("SELECT count(*) FROM changes")
    await replay_samples(tenant, rules=[PROJECT], samples=[AURORA])
    evaluation = await tenant.admin.client.post(f"{BASE}/evaluate", json={"text": AURORA})
    assert evaluation.json()["final_action"] == "allow"
    assert (await tenant.admin.client.get(f"{BASE}/")).json() == []
    assert platform.sql("SELECT count(*) FROM changes") == before


async def test_parts_that_a_draft_omits_are_the_current_ones(tenant: Tenant) -> None:
    client = tenant.admin.client
    pattern = {"name": "Badges", "entity_type": "badge", "pattern": "BADGE-[0-9]+", "action_tier": "redact"}
    assert (await client.post(f"{BASE}/", json=PROJECT)).status_code == 201
    assert (await client.post(f"{BASE}/custom-patterns", json=pattern)).status_code == 201
    assert (await client.post(f"{BASE}/suppressions", json={"pattern_id": "credit-card"})).status_code == 201
    texts = [AURORA, "BADGE-7", CARD]
    replay = await replay_samples(tenant, samples=texts)
    assert [result["action"] for result in replay["results"]] == ["block", "redact", "allow"]
    assert replay["differences"] == {"stricter": 0, "weaker": 0, "same": 3}
    replay = await replay_samples(tenant, rules=[], samples=texts)
    assert [result["action"] for result in replay["results"]] == ["allow", "redact", "allow"]
    replay = await replay_samples(tenant, suppressions=[], samples=texts)
    assert [result["action"] for result in replay["results"]] == ["block", "redact", "redact"]


async def test_a_draft_is_evaluated_as_if_dlp_were_enabled(tenant: Tenant) -> None:
    await tenant.admin.client.patch("/api/v1/admin/org/feature-flags/dlp_enabled", json={"enabled": False})
    replay = await replay_samples(tenant, samples=[CARD])
    assert [(result["action"], result["action_now"]) for result in replay["results"]] == [("redact", "allow")]


async def test_a_disabled_rule_of_a_draft_has_no_effect(tenant: Tenant) -> None:
    replay = await replay_samples(tenant, rules=[{**PROJECT, "enabled": False}], samples=[AURORA])
    assert replay["totals"]["allow"] == 1


async def upload(tenant: Tenant, content: str | bytes, draft: Any = None) -> Any:
    files: dict[str, Any] = {"file": ("samples.jsonl", content)}
    data = {} if draft is None else {"draft": draft if isinstance(draft, str) else json.dumps(draft)}
    return await tenant.admin.client.post(REPLAY, files=files, data=data)


async def test_a_file_of_json_lines_is_replayed(tenant: Tenant) -> None:
    lines = [json.dumps(CARD), "", json.dumps({"id": 7, "text": AURORA, "more": [1]}), json.dumps({"text": HARMLESS})]
    answer = await upload(tenant, "\n".join(lines), {"rules": [PROJECT]})
    assert answer.status_code == 200, answer.text
    assert [(result["index"], result["id"], result["action"]) for result in answer.json()["results"]] == [
        (0, None, "redact"),
        (1, 7, "block"),
        (2, None, "allow"),
    ]


async def test_the_draft_may_be_an_uploaded_file(tenant: Tenant) -> None:
    files = {"file": ("samples.jsonl", json.dumps(AURORA)), "draft": ("draft.json", json.dumps({"rules": [PROJECT]}))}
    answer = await tenant.admin.client.post(REPLAY, files=files)
    assert answer.json()["totals"]["block"] == 1


@pytest.mark.parametrize(
    ("content", "draft", "location"),
    [
        ("nonsense", None, ["file", "1"]),
        ('"good"\n{"txt": "x"}', None, ["file", "2"]),
        ('"good"\n\n{"text": 5}', None, ["file", "3"]),
        ('"\\ud800"', None, ["file", "1"]),
        (b'"\xff"', None, ["file", "1"]),
        (json.dumps("x" * 100_001), None, ["file", "1"]),
        ('"x"\n' * 10_001, None, ["file"]),
        ('"x"', "nonsense", ["draft"]),
        ('"x"', {"rule": []}, ["draft", "rule"]),
        ('"x"', {"rules": [{**PROJECT, "config_json": {"pattern": "("}}]}, ["rules", "0", "config_json", "pattern"]),
    ],
)
async def test_a_bad_file_is_400_and_names_the_line(
    tenant: Tenant, content: str | bytes, draft: Any, location: list[str]
) -> None:
    answer = await upload(tenant, content, draft)
    assert answer.status_code == 400, answer.text
    assert answer.json()["detail"][0]["loc"] == ["body", *location]


async def test_a_form_without_a_file_is_400(tenant: Tenant) -> None:
    answer = await tenant.admin.client.post(REPLAY, files={"draft": ("d", b"{}")})
    assert (answer.status_code, answer.json()["detail"][0]["loc"]) == (400, ["body", "file"])
    headers = {"content-type": "multipart/form-data"}
    assert (await tenant.admin.client.post(REPLAY, content=b"x", headers=headers)).status_code == 400


@pytest.mark.parametrize(
    ("body", "location"),
    [
        ({}, ["samples"]),
        ({"samples": CARD}, ["samples"]),
        ({"samples": ["x"], "colour": "red"}, ["colour"]),
        ({"samples": ["x"], "suppressions": ["no-such"]}, ["suppressions", "0"]),
        ({"samples": ["x"], "rules": [{}]}, ["rules", "0", "detector_name"]),
        ({"samples": ["x"], "rules": [{**PROJECT, "config_json": {}}]}, ["rules", "0", "config_json", "pattern"]),
        (
            {"samples": ["x"], "rules": [PROJECT, {**PROJECT, "config_json": {"pattern": "("}}]},
            ["rules", "1", "config_json", "pattern"],
        ),
        ({"samples": ["x"] * 10_001}, ["samples"]),
    ],
)
async def test_a_bad_body_is_400_and_names_the_field(tenant: Tenant, body: dict[str, Any], location: list[str]) -> None:
    answer = await tenant.admin.client.post(REPLAY, json=body)
    assert answer.status_code == 400, answer.text
    assert answer.json()["detail"][0]["loc"] == ["body", *location]


@pytest.mark.parametrize(
    ("content", "detail"),
    [
        (b"{bad", "The body is not valid JSON."),
        (b"", "The body is not valid JSON."),
        (b"[]", [{"type": "value_error", "loc": ["body"], "msg": "Input should be an object"}]),
    ],
)
async def test_a_body_that_is_not_an_object_is_400(tenant: Tenant, content: bytes, detail: object) -> None:
    answer = await tenant.admin.client.post(REPLAY, content=content, headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["detail"]) == (400, detail)


async def test_a_replay_of_more_than_ten_megabytes_is_413(tenant: Tenant) -> None:
    sample = "x" * 99_000
    answer = await tenant.admin.client.post(REPLAY, json={"samples": [sample] * 102})
    assert answer.status_code == 413
    assert (await upload(tenant, (json.dumps(sample) + "\n") * 102)).status_code == 413


async def test_the_response_does_not_contain_the_texts(tenant: Tenant) -> None:
    answer = await tenant.admin.client.post(REPLAY, json={"rules": [PROJECT], "samples": [CARD, AURORA]})
    assert "4111 1111" not in answer.text
    assert "Aurora" not in answer.text


class _Slow:
    """Detectors whose search for entities takes 50 ms."""

    async def entities(self, texts: Sequence[str], labels: Sequence[str] = ()) -> list[list[Finding]]:
        await asyncio.sleep(0.05)
        return [[] for _ in texts]

    async def semantic(self, texts: Sequence[str], labels: Sequence[str]) -> list[dict[str, float]]:
        raise NotImplementedError


@pytest.fixture
def slow(platform: RunningPlatform) -> Iterator[None]:
    before = platform.host.ports.detectors
    platform.host.ports.detectors = _Slow()
    yield
    platform.host.ports.detectors = before


PEOPLE = {"detector_name": "people", "detector_type": "ner", "entity_type": "person", "action_tier": "redact"}


async def test_one_replay_runs_at_a_time_and_the_next_is_429(tenant: Tenant) -> None:
    async with pace.one_at_a_time():
        answer = await tenant.admin.client.post(REPLAY, json={"samples": ["x"]})
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "10")
    await replay_samples(tenant, samples=["x"])


@pytest.mark.usefixtures("slow")
async def test_a_replay_that_takes_too_long_is_incomplete(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "MAX_REPLAY_SECONDS", 0.3)
    replay = await replay_samples(tenant, rules=[PEOPLE], samples=["x"] * 100)
    assert not replay["complete"]
    assert 0 < replay["samples"] == len(replay["results"]) < 100


async def test_failures_of_a_tier_are_counted(tenant: Tenant) -> None:
    replay = await replay_samples(tenant, rules=[{**PEOPLE}], samples=["x", "y"])
    assert (replay["tier_failures"], replay["totals"]["block"]) == (2, 2)


async def test_a_replay_pauses_as_long_as_it_has_worked(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    async def record_pause(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(pace, "asyncio", SimpleNamespace(sleep=record_pause))
    replay_pace = pace.Pace()
    for seconds in (0.002, 0.002, 0.004, 0.001, 0.5):
        await replay_pace.pause_after(seconds)
    assert pauses == [pytest.approx(0.008), pytest.approx(0.501)]


async def test_a_replay_pauses_after_every_sample(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    work_seconds: list[float] = []

    async def record_work(_: pace.Pace, seconds: float) -> None:
        work_seconds.append(seconds)

    monkeypatch.setattr(pace.Pace, "pause_after", record_work)
    replay = await replay_samples(tenant, rules=[PROJECT], samples=[CARD] * 7)
    assert len(work_seconds) == 7
    assert sum(work_seconds) * 1e6 >= 7 * replay["cost"]["mean_us"]
