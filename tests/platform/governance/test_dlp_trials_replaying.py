"""Replays: the results of a draft for many texts, compared with the current rules."""

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


async def replayed(tenant: Tenant, **body: Any) -> dict[str, Any]:
    answer = await tenant.admin.client.post(REPLAY, json=body)
    assert answer.status_code == 200, answer.text
    response_body: dict[str, Any] = answer.json()
    return response_body


async def test_the_answer_is_as_it_is_described(tenant: Tenant) -> None:
    replay = await replayed(tenant, rules=[PROJECT], samples=[CARD, {"id": "t-1", "text": AURORA}, HARMLESS])
    assert Replayed.model_validate(replay, extra="forbid").model_dump(mode="json") == replay


async def test_a_draft_is_compared_with_what_is_in_force(tenant: Tenant) -> None:
    replay = await replayed(
        tenant, rules=[PROJECT], suppressions=["credit-card"], samples=[CARD, {"id": "t-1", "text": AURORA}, HARMLESS]
    )
    assert [(one["index"], one["id"], one["action"], one["action_now"], one["rules"]) for one in replay["results"]] == [
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
    assert all(one["cost_us"] > 0 for one in replay["results"])


async def test_nothing_of_a_draft_comes_into_force_or_is_stored(platform: RunningPlatform, tenant: Tenant) -> None:
    before = platform.sql("SELECT count(*) FROM changes")
    await replayed(tenant, rules=[PROJECT], samples=[AURORA])
    evaluated = await tenant.admin.client.post(f"{BASE}/evaluate", json={"text": AURORA})
    assert evaluated.json()["final_action"] == "allow"
    assert (await tenant.admin.client.get(f"{BASE}/")).json() == []
    assert platform.sql("SELECT count(*) FROM changes") == before


async def test_what_a_draft_leaves_out_stays_as_it_is(tenant: Tenant) -> None:
    client = tenant.admin.client
    pattern = {"name": "Badges", "entity_type": "badge", "pattern": "BADGE-[0-9]+", "action_tier": "redact"}
    assert (await client.post(f"{BASE}/", json=PROJECT)).status_code == 201
    assert (await client.post(f"{BASE}/custom-patterns", json=pattern)).status_code == 201
    assert (await client.post(f"{BASE}/suppressions", json={"pattern_id": "credit-card"})).status_code == 201
    texts = [AURORA, "BADGE-7", CARD]
    replay = await replayed(tenant, samples=texts)
    assert [one["action"] for one in replay["results"]] == ["block", "redact", "allow"]
    assert replay["differences"] == {"stricter": 0, "weaker": 0, "same": 3}
    replay = await replayed(tenant, rules=[], samples=texts)
    assert [one["action"] for one in replay["results"]] == ["allow", "redact", "allow"]
    replay = await replayed(tenant, suppressions=[], samples=texts)
    assert [one["action"] for one in replay["results"]] == ["block", "redact", "redact"]


async def test_a_draft_is_judged_as_if_dlp_were_on(tenant: Tenant) -> None:
    await tenant.admin.client.patch("/api/v1/admin/org/feature-flags/dlp_enabled", json={"enabled": False})
    replay = await replayed(tenant, samples=[CARD])
    assert [(one["action"], one["action_now"]) for one in replay["results"]] == [("redact", "allow")]


async def test_a_disabled_rule_of_a_draft_is_as_good_as_absent(tenant: Tenant) -> None:
    replay = await replayed(tenant, rules=[{**PROJECT, "enabled": False}], samples=[AURORA])
    assert replay["totals"]["allow"] == 1


async def uploaded(tenant: Tenant, content: str | bytes, draft: Any = None) -> Any:
    files: dict[str, Any] = {"file": ("samples.jsonl", content)}
    data = {} if draft is None else {"draft": draft if isinstance(draft, str) else json.dumps(draft)}
    return await tenant.admin.client.post(REPLAY, files=files, data=data)


async def test_a_file_of_json_lines_is_replayed(tenant: Tenant) -> None:
    lines = [json.dumps(CARD), "", json.dumps({"id": 7, "text": AURORA, "more": [1]}), json.dumps({"text": HARMLESS})]
    answer = await uploaded(tenant, "\n".join(lines), {"rules": [PROJECT]})
    assert answer.status_code == 200, answer.text
    assert [(one["index"], one["id"], one["action"]) for one in answer.json()["results"]] == [
        (0, None, "redact"),
        (1, 7, "block"),
        (2, None, "allow"),
    ]


async def test_the_draft_may_be_a_file_too(tenant: Tenant) -> None:
    files = {"file": ("samples.jsonl", json.dumps(AURORA)), "draft": ("draft.json", json.dumps({"rules": [PROJECT]}))}
    answer = await tenant.admin.client.post(REPLAY, files=files)
    assert answer.json()["totals"]["block"] == 1


@pytest.mark.parametrize(
    ("content", "draft", "place"),
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
async def test_a_bad_file_is_400_that_names_the_line(
    tenant: Tenant, content: str | bytes, draft: Any, place: list[str]
) -> None:
    answer = await uploaded(tenant, content, draft)
    assert answer.status_code == 400, answer.text
    assert answer.json()["detail"][0]["loc"] == ["body", *place]


async def test_a_form_without_a_file_is_400(tenant: Tenant) -> None:
    answer = await tenant.admin.client.post(REPLAY, files={"draft": ("d", b"{}")})
    assert (answer.status_code, answer.json()["detail"][0]["loc"]) == (400, ["body", "file"])
    headers = {"content-type": "multipart/form-data"}
    assert (await tenant.admin.client.post(REPLAY, content=b"x", headers=headers)).status_code == 400


@pytest.mark.parametrize(
    ("body", "place"),
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
async def test_a_bad_body_is_400_and_names_the_field(tenant: Tenant, body: dict[str, Any], place: list[str]) -> None:
    answer = await tenant.admin.client.post(REPLAY, json=body)
    assert answer.status_code == 400, answer.text
    assert answer.json()["detail"][0]["loc"] == ["body", *place]


@pytest.mark.parametrize(
    ("content", "detail"),
    [
        (b"{bad", "The body is not valid JSON."),
        (b"", "The body is not valid JSON."),
        (b"[]", [{"type": "value_error", "loc": ["body"], "msg": "Input should be an object"}]),
    ],
)
async def test_a_body_that_is_no_object_is_400(tenant: Tenant, content: bytes, detail: object) -> None:
    answer = await tenant.admin.client.post(REPLAY, content=content, headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["detail"]) == (400, detail)


async def test_more_than_ten_megabytes_are_413(tenant: Tenant) -> None:
    sample = "x" * 99_000
    answer = await tenant.admin.client.post(REPLAY, json={"samples": [sample] * 102})
    assert answer.status_code == 413
    assert (await uploaded(tenant, (json.dumps(sample) + "\n") * 102)).status_code == 413


async def test_texts_are_in_no_answer(tenant: Tenant) -> None:
    answer = await tenant.admin.client.post(REPLAY, json={"rules": [PROJECT], "samples": [CARD, AURORA]})
    assert "4111" not in answer.text
    assert "Aurora" not in answer.text


class _Slow:
    """A slow entities tier."""

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
    await replayed(tenant, samples=["x"])


@pytest.mark.usefixtures("slow")
async def test_what_time_does_not_allow_is_left_out_and_said_so(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pace, "MAX_REPLAY_SECONDS", 0.3)
    replay = await replayed(tenant, rules=[PEOPLE], samples=["x"] * 100)
    assert not replay["complete"]
    assert 0 < replay["samples"] == len(replay["results"]) < 100


async def test_a_tier_that_gives_no_answer_is_counted(tenant: Tenant) -> None:
    replay = await replayed(tenant, rules=[{**PEOPLE}], samples=["x", "y"])
    assert (replay["tier_failures"], replay["totals"]["block"]) == (2, 2)


async def test_a_replay_rests_as_long_as_it_has_worked(monkeypatch: pytest.MonkeyPatch) -> None:
    rests: list[float] = []

    async def rest(seconds: float) -> None:
        rests.append(seconds)

    monkeypatch.setattr(pace, "asyncio", SimpleNamespace(sleep=rest))
    of_a_replay = pace.Pace()
    for seconds in (0.002, 0.002, 0.004, 0.001, 0.5):
        await of_a_replay.pause_after(seconds)
    assert rests == [pytest.approx(0.008), pytest.approx(0.501)]


async def test_every_sample_is_work_that_is_rested_from(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    worked: list[float] = []

    async def note(_: pace.Pace, seconds: float) -> None:
        worked.append(seconds)

    monkeypatch.setattr(pace.Pace, "pause_after", note)
    replay = await replayed(tenant, rules=[PROJECT], samples=[CARD] * 7)
    assert len(worked) == 7
    assert sum(worked) * 1e6 >= 7 * replay["cost"]["mean_us"]
