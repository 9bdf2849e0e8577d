"""Replays of an organization's samples with drafts of policy rules."""

from typing import Any

import pytest
from tests.support.platform import RunningPlatform, Tenant
from tests.support.samples import chat, drained, kept, labelled, sample_every_call

from gatehouse.platform.governance.policies.schemas import PoliciesReplayed
from gatehouse.platform.governance.replays import pace

BASE = "/api/admin/policies"
REPLAY = f"{BASE}/replay"
CARD = "My card is 4111 1111 1111 1111."
#: Drafts of rules.

CARDS: dict[str, Any] = {"name": "No cards", "condition": '"credit_card" in dlp.entities', "action": "BLOCK"}
ECHO: dict[str, Any] = {"name": "No echo", "condition": 'model == "sandbox/echo"', "action": "BLOCK"}


@pytest.fixture
async def sandbox(platform: RunningPlatform, tenant: Tenant) -> Tenant:
    await sample_every_call(platform, tenant, "echo", "slow-1ms")
    return tenant


async def replay_samples(tenant: Tenant, **body: Any) -> dict[str, Any]:
    answer = await tenant.admin.client.post(REPLAY, json={"recorded": {}, **body})
    assert answer.status_code == 200, answer.text
    response_body: dict[str, Any] = answer.json()
    return response_body


def actions(replay: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(result["action"], result["action_now"], result["action_then"]) for result in replay["results"]]


async def test_a_draft_of_policies_is_replayed_on_recorded_requests(platform: RunningPlatform, sandbox: Tenant) -> None:
    harmless = await kept(platform, sandbox, "Hello")
    card = await kept(platform, sandbox, CARD)
    replay = await replay_samples(sandbox, add_rule=CARDS, recorded={"last": 10})
    assert PoliciesReplayed.model_validate(replay).model_dump(mode="json") == replay
    assert [result["id"] for result in replay["results"]] == [card, harmless]
    assert actions(replay) == [("BLOCK", "ALLOW", "ALLOW"), ("ALLOW", "ALLOW", "ALLOW")]
    assert (replay["samples"], replay["complete"], replay["left_out"], replay["changed"]) == (2, True, 0, [card])
    nothing = {"LOG": 0, "REQUIRE_APPROVAL": 0, "ROUTE": 0}
    assert replay["totals"] == {**nothing, "ALLOW": 1, "BLOCK": 1}
    assert replay["totals_now"] == replay["totals_then"] == {**nothing, "ALLOW": 2, "BLOCK": 0}
    assert replay["differences"] == {"stricter": 1, "weaker": 0, "same": 1}
    assert replay["results"][0]["rules"] == ["No cards"]
    assert replay["rules"] == [
        {"rule_name": "No cards", "action": "BLOCK", "action_now": None, "samples": 1, "samples_now": 0, "failed": 0}
    ]
    (event,) = await platform.audit(sandbox, "dlp_sample.replayed")
    assert event["details"] == {"draft": "policies", "samples": 2, "last": 10, "days": None, "labelled": None}
    assert event["actor_id"] == str(sandbox.admin.id)
    # The replay neither stores nor applies the draft.
    assert (await sandbox.admin.client.get(BASE)).json() == []
    assert (await chat(sandbox.user, CARD)).status_code == 200


async def test_a_replay_shows_the_recorded_the_current_and_the_draft_decision(
    platform: RunningPlatform, sandbox: Tenant
) -> None:
    rule = (await sandbox.admin.client.post(BASE, json=ECHO)).json()
    blocked = await kept(platform, sandbox, "Hello")
    await sandbox.admin.client.put(f"{BASE}/{rule['id']}", json={"action": "LOG", "terminal": False})
    replay = await replay_samples(sandbox, rules=[])
    assert (actions(replay), replay["changed"]) == ([("ALLOW", "LOG", "BLOCK")], [blocked])
    replay = await replay_samples(sandbox, add_rule=CARDS)
    assert actions(replay) == [("LOG", "LOG", "BLOCK")]
    replay = await replay_samples(sandbox, rules=[{**ECHO, "action": "ROUTE", "route_to": "sandbox/slow-1ms"}])
    assert replay["results"][0]["route_to"] == "sandbox/slow-1ms"


async def test_a_replay_uses_the_model_that_the_caller_requested(platform: RunningPlatform, sandbox: Tenant) -> None:
    """The model is the one that the caller requested, even if another model answered."""
    await sandbox.admin.client.post(BASE, json={**ECHO, "action": "ROUTE", "route_to": "sandbox/slow-1ms"})
    await kept(platform, sandbox, "Hello", fallbacks=["sandbox/slow-1ms"])
    replay = await replay_samples(sandbox, rules=[ECHO])
    assert actions(replay) == [("BLOCK", "ROUTE", "ROUTE")]
    assert replay["results"][0]["model"] == "sandbox/echo"


@pytest.mark.parametrize(
    "condition",
    [
        'model == "sandbox/echo" && provider == "sandbox"',
        'model_risk_tier == "tier_4" && validation_status == "unregistered"',
        "cost_usd > 0.00019 && cost_usd < 0.0003",
        'user.role == "user" && user.kind == "user" && user.email.contains("@") && user.id != ""',
        "size(groups) == 0",
        'dlp.action == "REDACT" && dlp.counts.credit_card == 1',
        "tokens > 3 && tokens < 20",
        'request.fields.exists(f, f == "max_tokens") && request.fields.exists(f, f == "messages")',
        'ip.in_range("127.0.0.0/8")',
        'time > timestamp("2020-01-01T00:00:00Z") && time.getFullYear() > 2020',
    ],
)
async def test_a_sample_contains_all_variables_of_rules(
    platform: RunningPlatform, sandbox: Tenant, condition: str
) -> None:
    await kept(platform, sandbox, CARD, max_tokens=95)
    replay = await replay_samples(sandbox, add_rule={"name": "a", "condition": condition, "action": "BLOCK"})
    assert (replay["results"][0]["failed"], actions(replay)) == ([], [("BLOCK", "ALLOW", "ALLOW")])


async def test_a_replay_names_the_rule_whose_condition_fails(platform: RunningPlatform, sandbox: Tenant) -> None:
    await kept(platform, sandbox, "Hello")
    failing = {**CARDS, "condition": 'dlp.counts["ssn"] > 2'}
    replay = await replay_samples(sandbox, add_rule={**failing, "action": "LOG"})
    assert (actions(replay)[0][0], replay["results"][0]["failed"], replay["results"][0]["rules"]) == (
        "ALLOW", ["No cards"], [],
    )  # fmt: skip
    assert [(rule["samples"], rule["failed"]) for rule in replay["rules"]] == [(0, 1)]
    replay = await replay_samples(sandbox, add_rule=failing)
    assert (actions(replay)[0][0], replay["results"][0]["rules"]) == ("BLOCK", ["No cards"])


async def test_rules_are_in_the_order_of_their_priority(platform: RunningPlatform, sandbox: Tenant) -> None:
    await sandbox.admin.client.post(BASE, json={**ECHO, "priority": 50})
    await kept(platform, sandbox, "Hello")
    exempt = {"name": "Exempt", "condition": "true", "action": "ALLOW"}
    for priority, action in ((49, "ALLOW"), (50, "BLOCK"), (51, "BLOCK")):
        replay = await replay_samples(sandbox, add_rule={**exempt, "priority": priority})
        assert replay["results"][0]["action"] == action
    replay = await replay_samples(sandbox, add_rule={**exempt, "priority": 1, "enabled": False})
    assert replay["results"][0]["action"] == "BLOCK"


async def test_a_draft_is_evaluated_as_if_governance_were_enabled(platform: RunningPlatform, sandbox: Tenant) -> None:
    await sandbox.admin.client.post(BASE, json=ECHO)
    await sandbox.admin.client.put("/api/admin/config/governance_enabled", json={"value": "false"})
    await kept(platform, sandbox, "Hello")
    assert actions(await replay_samples(sandbox)) == [("BLOCK", "ALLOW", "ALLOW")]


async def test_requests_without_evaluated_rules_are_omitted(platform: RunningPlatform, sandbox: Tenant) -> None:
    rule = {"detector_name": "a", "detector_type": "regex", "entity_type": "credit_card", "action_tier": "block"}
    await sandbox.admin.client.post("/api/admin/dlp-rules/", json=rule)
    await chat(sandbox.user, CARD)
    await kept(platform, sandbox, "Hello")
    replay = await replay_samples(sandbox, add_rule=ECHO)
    assert (replay["samples"], replay["left_out"], replay["complete"]) == (1, 1, True)


async def test_a_draft_is_measured_by_the_expected_actions_of_reviewers(
    platform: RunningPlatform, sandbox: Tenant
) -> None:
    texts = (CARD, CARD, "Secret", "Hello")
    ids = [await kept(platform, sandbox, text) for text in texts]
    for sample_id, expected in zip(ids, ("BLOCK", "ALLOW", "BLOCK", "ALLOW"), strict=True):
        assert (await labelled(sandbox, sample_id, expected_action=expected)).status_code == 200
    unlabelled = await kept(platform, sandbox, CARD)
    await labelled(sandbox, unlabelled, labels={"credit_card": True})
    replay = await replay_samples(sandbox, add_rule=CARDS)
    assert (replay["samples"], replay["labelled"]) == (5, 4)
    assert replay["measures"] == [
        {
            "action": "ALLOW", "right": 1, "wrong": 1, "missed": 1, "precision": 0.5, "recall": 0.5,
            "right_now": 2, "wrong_now": 2, "missed_now": 0, "precision_now": 0.5, "recall_now": 1.0,
        },
        {
            "action": "BLOCK", "right": 1, "wrong": 1, "missed": 1, "precision": 0.5, "recall": 0.5,
            "right_now": 0, "wrong_now": 0, "missed_now": 2, "precision_now": None, "recall_now": 0.0,
        },
    ]  # fmt: skip
    reviewed = await replay_samples(sandbox, add_rule=CARDS, recorded={"labelled": True})
    assert [result["id"] for result in reviewed["results"]] == ids[::-1]
    not_reviewed = await replay_samples(sandbox, add_rule=CARDS, recorded={"labelled": False})
    assert [result["id"] for result in not_reviewed["results"]] == [unlabelled]


async def test_another_organizations_samples_are_not_read(
    platform: RunningPlatform, sandbox: Tenant, other_tenant: Tenant
) -> None:
    await kept(platform, sandbox, "Hello")
    assert (await replay_samples(other_tenant, add_rule=ECHO))["samples"] == 0


async def test_a_replay_that_takes_too_long_is_marked_incomplete(
    platform: RunningPlatform, sandbox: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(2):
        await chat(sandbox.user, "Hello")
    await drained(platform)
    monkeypatch.setattr(pace, "MAX_REPLAY_SECONDS", -1.0)
    replay = await replay_samples(sandbox, add_rule=ECHO)
    assert (replay["samples"], replay["complete"], replay["left_out"]) == (0, False, 0)


async def test_one_replay_runs_at_a_time(sandbox: Tenant) -> None:
    async with pace.one_at_a_time():
        answer = await sandbox.admin.client.post(REPLAY, json={"recorded": {}})
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "10")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "recorded"),
        ({"recorded": {"last": 1_001}}, "recorded.last"),
        ({"recorded": {}, "colour": 1}, "colour"),
        ({"recorded": {}, "rules": [{}]}, "rules.0.name"),
        ({"recorded": {}, "rules": [ECHO] * 1_001}, "rules"),
        ({"recorded": {}, "rules": [ECHO, {**ECHO, "condition": "nothing("}]}, "rules.1.condition"),
        ({"recorded": {}, "add_rule": {**ECHO, "action": "REFUSE"}}, "add_rule.action"),
        ({"recorded": {}, "add_rule": {**ECHO, "condition": "colour"}}, "add_rule.condition"),
        ({"recorded": {}, "add_rule": {**ECHO, "action": "ROUTE"}}, "add_rule.route_to"),
        ({"recorded": {}, "add_rule": {**ECHO, "action": "ROUTE", "route_to": "no/such"}}, "add_rule.route_to"),
        ({"recorded": {}, "add_rule": {**ECHO, "route_to": "sandbox/echo"}}, "add_rule.route_to"),
    ],
)
async def test_a_bad_draft_is_400_and_names_the_field(
    platform: RunningPlatform, sandbox: Tenant, body: dict[str, Any], field: str
) -> None:
    answer = await sandbox.admin.client.post(REPLAY, json=body)
    assert answer.status_code == 400, answer.text
    assert ".".join(map(str, answer.json()["detail"][0]["loc"][1:])) == field
    assert await platform.audit(sandbox, "dlp_sample.replayed") == []


async def test_only_administrators_replay(platform: RunningPlatform, tenant: Tenant) -> None:
    assert (await platform.client("gk_nobody").post(REPLAY, json={"recorded": {}})).status_code == 401
    for person in (tenant.user, tenant.auditor):
        assert (await person.client.post(REPLAY, json={"recorded": {}})).status_code == 403
