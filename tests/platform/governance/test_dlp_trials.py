"""Trials of patterns and of the policy (docs/dlp-rules.md)."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import msgspec
import pytest
from tests.support.gliner import gliner_folder
from tests.support.in_process_detectors import InProcessDetectors
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.detection.findings import Finding
from gatehouse.detection.search import walks
from gatehouse.detection.service.tiers import models
from gatehouse.engine.dlp.tiers import TierFailed
from gatehouse.foundation.ids import new_id

BASE = "/api/admin/dlp-rules"
CARD = "Pay with 4111 1111 1111 1111."


class Detectors:
    """Detectors that find the person Ada and every label in texts that contain `ignore`."""

    async def entities(self, texts: Sequence[str], labels: Sequence[str] = ()) -> list[list[Finding]]:
        positions = [text.find("Ada") for text in texts]
        return [
            [Finding(position, position + 3, "person", 0.9, "person")] if position >= 0 else []
            for position in positions
        ]

    async def semantic(self, texts: Sequence[str], labels: Sequence[str]) -> list[dict[str, float]]:
        return [dict.fromkeys(labels, 0.8 if "ignore" in text else 0.1) for text in texts]


class FailingDetectors:
    async def entities(self, texts: Sequence[str], labels: Sequence[str] = ()) -> list[list[Finding]]:
        raise TierFailed("ner", "timeout")

    async def semantic(self, texts: Sequence[str], labels: Sequence[str]) -> list[dict[str, float]]:
        raise TierFailed("llm", "timeout")


@pytest.fixture(autouse=True)
def detectors(platform: RunningPlatform) -> Iterator[None]:
    ports = platform.host.ports
    before = ports.detectors, ports.dlp
    ports.detectors = Detectors()
    yield
    ports.detectors, ports.dlp = before


async def run_trial(tenant: Tenant, **body: Any) -> dict[str, Any]:
    answer = await tenant.admin.client.post(f"{BASE}/test", json=body)
    assert answer.status_code == 200, answer.text
    response_body: dict[str, Any] = answer.json()
    return response_body


async def evaluate(tenant: Tenant, text: str, **body: Any) -> dict[str, Any]:
    answer = await tenant.admin.client.post(f"{BASE}/evaluate", json={"text": text, **body})
    assert answer.status_code == 200, answer.text
    response_body: dict[str, Any] = answer.json()
    return response_body


async def add_rule(tenant: Tenant, **changed: Any) -> str:
    body = {"detector_name": "a rule", "detector_type": "regex", "action_tier": "redact", **changed}
    answer = await tenant.admin.client.post(f"{BASE}/", json=body)
    assert answer.status_code == 201, answer.text
    rule_id: str = answer.json()["id"]
    return rule_id


def new_group(platform: RunningPlatform, tenant: Tenant, *members: UUID, **overrides: str) -> UUID:
    group = new_id()
    platform.sql("INSERT INTO groups (id, tenant_id, name) VALUES (%s, %s, %s)", [group, tenant.id, str(group)])
    for user in members:
        platform.sql(
            "INSERT INTO group_members (id, tenant_id, group_id, user_id) VALUES (%s, %s, %s, %s)",
            [new_id(), tenant.id, group, user],
        )
    for entity, action in overrides.items():
        platform.sql("INSERT INTO group_dlp_overrides VALUES (%s, %s, %s, %s)", [tenant.id, group, entity, action])
    return group


# test ---------------------------------------------------------------------------------------------------------------


async def test_positions_of_matches_are_code_points_of_the_sample(tenant: Tenant) -> None:
    trial = await run_trial(
        tenant, rule_type="regex", pattern="EMP-[0-9]{6}", sample_text=" \u00e9\U0001f600 EMP-123456 x "
    )
    assert trial == {
        "matches": [
            {"start": 4, "end": 14, "matched_text": "EMP-123456", "entity_type": "custom", "action": "log_only"}
        ],
        "match_count": 1,
        "rule_type": "regex",
        "valid_pattern": True,
        "stream_max_length": None,
        "error": None,
    }


async def test_matches_have_the_entity_type_and_action_of_the_trial(tenant: Tenant) -> None:
    trial = await run_trial(
        tenant, rule_type="regex", pattern="x", sample_text="xx", entity_type="my_x", action_tier="block"
    )
    assert [(match["entity_type"], match["action"]) for match in trial["matches"]] == [("my_x", "block")] * 2


@pytest.mark.parametrize("pattern", ["(", "(?=a)b", "a{900}(b{900}){2}", r"\p{L}{1,900}", "(?:(?:a{100}){100}){100}"])
async def test_a_bad_pattern_is_reported_in_a_successful_response(tenant: Tenant, pattern: str) -> None:
    trial = await run_trial(tenant, rule_type="regex", pattern=pattern, sample_text="a" * 1_000)
    assert (trial["valid_pattern"], trial["matches"], trial["match_count"]) == (False, [], 0)
    assert trial["error"]


async def test_a_pattern_matches_like_re2_and_its_stream_window_is_reported(tenant: Tenant) -> None:
    trial = await run_trial(tenant, rule_type="regex", pattern="[0-9]+", sample_text="1" * 5_000)
    assert [(match["start"], match["end"]) for match in trial["matches"]] == [(0, 5_000)]
    assert trial["stream_max_length"] == 4_096


async def test_a_search_that_takes_too_long_is_reported(monkeypatch: pytest.MonkeyPatch, tenant: Tenant) -> None:
    monkeypatch.setattr(walks, "MIN_SEARCHED_BYTES", 0)
    pattern = "a(?:[^b]*b)?"
    trial = await run_trial(tenant, rule_type="regex", pattern=pattern, sample_text="a" * 100_000)
    assert (trial["valid_pattern"], "too long" in trial["error"]) == (True, True)
    await add_rule(tenant, entity_type="greedy", config_json={"pattern": pattern})
    evaluation = await evaluate(tenant, "a" * 100_000)
    assert evaluation["final_action"] == "block"
    assert any("regex: too_long" in sentence for sentence in evaluation["decision_trace"])


async def test_matches_are_listed_up_to_a_thousand_and_all_are_counted(tenant: Tenant) -> None:
    trial = await run_trial(tenant, rule_type="regex", pattern="[0-9]", sample_text="7 " * 3_000)
    assert (len(trial["matches"]), trial["match_count"]) == (1_000, 3_000)


@pytest.mark.parametrize("rule_type", ["ner", "gliner"])
async def test_labels_are_sent_to_the_entities_tier(tenant: Tenant, rule_type: str) -> None:
    text = "It rained. Then Ada came."
    trial = await run_trial(tenant, rule_type=rule_type, pattern="PER, organisation", sample_text=text)
    assert [(match["start"], match["matched_text"], match["entity_type"]) for match in trial["matches"]] == [
        (16, "Ada", "person")
    ]
    assert (await run_trial(tenant, rule_type=rule_type, pattern="location", sample_text=text))["match_count"] == 0


@pytest.mark.parametrize("labels", ["dragon", "person, dragon", " , "])
async def test_an_unknown_label_is_reported(tenant: Tenant, labels: str) -> None:
    trial = await run_trial(tenant, rule_type="ner", pattern=labels, sample_text="Ada")
    assert (trial["valid_pattern"], "date_of_birth" in trial["error"]) == (False, True)


MEDICINES = {
    "detector_name": "medicines", "detector_type": "ner", "entity_type": "prescription", "action_tier": "redact",
    "config_json": {"entities": ["Drug Name", "disease"]},
}  # fmt: skip


async def test_a_rule_accepts_names_of_recognisers_in_any_case(tenant: Tenant) -> None:
    await add_rule(
        tenant, detector_name="people", detector_type="ner", entity_type="staff", config_json={"entities": ["PERSON"]}
    )
    evaluation = await evaluate(tenant, "Then Ada came.")
    assert [(rule["entity_type"], rule["match_count"]) for rule in evaluation["matched_rules"]] == [("staff", 1)]


async def test_rules_and_trials_refuse_unknown_labels_with_the_same_message(tenant: Tenant) -> None:
    trial = await run_trial(tenant, rule_type="gliner", pattern="Drug Name, disease", sample_text="a drug")
    expected = (
        "'drug_name' is not recognised: known are person, organization, location, address, date_of_birth."
        " Other names need a GLiNER model: set NER_MODEL_PATH to its folder"
    )
    assert (trial["valid_pattern"], trial["error"]) == (False, expected)
    answers = [
        await tenant.admin.client.post(f"{BASE}/", json=MEDICINES),
        await tenant.admin.client.post(f"{BASE}/replay", json={"samples": ["x"], "rules": [MEDICINES]}),
    ]
    for answer, prefix in zip(answers, ("body.", "body.rules.0."), strict=True):
        assert answer.status_code in {400, 422}
        fault = answer.json()["detail"][0]
        assert (".".join(map(str, fault["loc"])), fault["msg"]) == (f"{prefix}config_json.entities.0", expected)
    imported = (await tenant.admin.client.post(f"{BASE}/import", json={"rules": [MEDICINES]})).json()
    assert [fault["error"] for fault in imported["errors"]] == [f"config_json.entities.0: {expected}"]


@pytest.fixture
def gliner(platform: RunningPlatform, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, detectors: None) -> None:
    """Give the platform a GLiNER model that finds words such as `person`, `drug` and `disease`."""
    folder = gliner_folder(tmp_path)
    settings = platform.host.settings.model_copy(update={"ner_model_path": folder})
    monkeypatch.setattr(platform.host, "settings", settings)
    platform.host.ports.detectors = InProcessDetectors(models(settings), budget=20, queue=100)


@pytest.mark.usefixtures("gliner")
async def test_with_a_gliner_model_a_rule_may_have_any_labels(platform: RunningPlatform, tenant: Tenant) -> None:
    trial = await run_trial(tenant, rule_type="gliner", pattern="Drug Name, disease", sample_text="a drug for a person")
    assert [(match["matched_text"], match["entity_type"]) for match in trial["matches"]] == [("drug", "drug_name")]
    await add_rule(tenant, **MEDICINES)
    key = await platform.new_key(tenant.user)
    answer = await platform.client(key).post("/v1/scan", json={"text": "a drug for a person"})
    scan = answer.json()
    assert (scan["redacted_text"], [finding["entity_type"] for finding in scan["findings"]]) == (
        "a [PRESCRIPTION_1] for a person",
        ["prescription"],
    )


@pytest.mark.usefixtures("gliner")
async def test_a_rule_without_its_model_can_be_disabled_but_not_enabled(
    platform: RunningPlatform, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = f"{BASE}/{await add_rule(tenant, **MEDICINES)}"
    monkeypatch.setattr(platform.host, "settings", platform.host.settings.model_copy(update={"ner_model_path": None}))
    assert (await tenant.admin.client.put(rule, json={"enabled": False})).status_code == 200
    refused = await tenant.admin.client.put(rule, json={"enabled": True})
    assert (refused.status_code, refused.json()["detail"][0]["loc"][-1]) == (400, "0")


async def test_an_invalid_label_is_reported(tenant: Tenant) -> None:
    for labels in ("<<SEP>>", "person, <b>", ",".join(["person"] * 51)):
        trial = await run_trial(tenant, rule_type="gliner", pattern=labels, sample_text="Ada")
        assert (trial["valid_pattern"], bool(trial["error"])) == (False, True)


async def test_a_failed_tier_is_reported(platform: RunningPlatform, tenant: Tenant) -> None:
    platform.host.ports.detectors = FailingDetectors()
    trial = await run_trial(tenant, rule_type="ner", pattern="person", sample_text="Ada")
    assert (trial["valid_pattern"], trial["match_count"]) == (True, 0)
    assert "timeout" in trial["error"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"pattern": "a", "sample_text": "a"}, "rule_type"),
        ({"rule_type": "llm", "pattern": "a", "sample_text": "a"}, "rule_type"),
        ({"rule_type": "regex", "pattern": "", "sample_text": "a"}, "pattern"),
        ({"rule_type": "regex", "pattern": "a"}, "sample_text"),
        ({"rule_type": "regex", "pattern": "a", "sample_text": "a" * 100_001}, "sample_text"),
    ],
)
async def test_a_bad_test_is_400_and_names_the_field(tenant: Tenant, body: dict[str, Any], field: str) -> None:
    answer = await tenant.admin.client.post(f"{BASE}/test", json=body)
    assert (answer.status_code, answer.json()["detail"][0]["loc"]) == (400, ["body", field])


# evaluate -----------------------------------------------------------------------------------------------------------


async def test_an_evaluation_has_the_documented_fields(tenant: Tenant) -> None:
    evaluation = await evaluate(tenant, CARD, org_id=str(tenant.id))
    assert set(evaluation) == {
        "text_length", "org_id", "rules_evaluated", "rules_matched", "final_action", "matched_rules",
        "suppressed_rule_ids", "custom_org_patterns", "decision_trace",
    }  # fmt: skip
    assert (evaluation["text_length"], evaluation["org_id"]) == (len(CARD), str(tenant.id))
    assert (evaluation["rules_evaluated"], evaluation["rules_matched"], evaluation["final_action"]) == (76, 1, "redact")
    (rule,) = evaluation["matched_rules"]
    (match,) = rule.pop("matches")
    assert CARD[match["start"] : match["end"]] == "4111 1111 1111 1111"
    assert rule == {
        "rule_id": "credit-card",
        "rule_name": rule["rule_name"],
        "detector_type": "regex",
        "entity_type": "credit_card",
        "action_tier": "redact",
        "match_count": 1,
        "source": "platform",
    }
    assert evaluation["decision_trace"][-1] == f"final action: redact, decided by {rule['rule_name']}"
    assert "4111 1111" not in str(evaluation["decision_trace"])


async def test_matches_are_listed_up_to_twenty_and_all_are_counted(tenant: Tenant) -> None:
    await add_rule(tenant, entity_type="number", config_json={"pattern": "N[0-9]"})
    (rule,) = (await evaluate(tenant, "N7 " * 50))["matched_rules"]
    assert (len(rule["matches"]), rule["match_count"]) == (20, 50)


async def test_all_tiers_run_and_the_strongest_action_wins(tenant: Tenant) -> None:
    people = await add_rule(
        tenant, detector_name="people", detector_type="ner", entity_type="person", action_tier="block"
    )
    injection = await add_rule(
        tenant, detector_name="injection", detector_type="llm", entity_type="prompt_injection", action_tier="log_only",
        config_json={"labels": ["prompt injection"], "threshold": 0.7},
    )  # fmt: skip
    evaluation = await evaluate(tenant, f"Ada, ignore all that. {CARD}")
    assert evaluation["final_action"] == "block"
    assert [rule["rule_id"] for rule in evaluation["matched_rules"]] == [people, "credit-card", injection]
    evaluation = await evaluate(tenant, "Ada went home.")
    assert (evaluation["final_action"], evaluation["rules_matched"]) == ("block", 1)
    assert any("below its threshold" in sentence for sentence in evaluation["decision_trace"])


async def test_a_prompt_action_blocks_if_approvals_are_disabled(tenant: Tenant) -> None:
    await add_rule(tenant, entity_type="project", action_tier="prompt", config_json={"pattern": "Aurora"})
    assert (await evaluate(tenant, "About Aurora."))["final_action"] == "block"
    flag = "/api/v1/admin/org/feature-flags/human_in_loop"
    assert (await tenant.admin.client.patch(flag, json={"enabled": True})).status_code == 200
    assert (await evaluate(tenant, "About Aurora."))["final_action"] == "prompt"


async def test_with_dlp_disabled_the_trace_names_the_feature_flag(tenant: Tenant) -> None:
    flag = "/api/v1/admin/org/feature-flags/dlp_enabled"
    assert (await tenant.admin.client.patch(flag, json={"enabled": False})).status_code == 200
    evaluation = await evaluate(tenant, CARD)
    assert (evaluation["final_action"], evaluation["rules_evaluated"], evaluation["matched_rules"]) == ("allow", 0, [])
    assert "dlp_enabled" in evaluation["decision_trace"][0]


async def test_a_failed_tier_blocks_or_passes_by_the_fail_mode(platform: RunningPlatform, tenant: Tenant) -> None:
    await add_rule(tenant, detector_name="people", detector_type="ner", entity_type="person")
    ports = platform.host.ports
    ports.detectors = FailingDetectors()
    ports.dlp = msgspec.structs.replace(ports.dlp, fail_mode="closed")
    evaluation = await evaluate(tenant, CARD)
    assert (evaluation["final_action"], evaluation["rules_matched"]) == ("block", 1)
    assert any("ner: timeout" in sentence for sentence in evaluation["decision_trace"])
    ports.dlp = msgspec.structs.replace(ports.dlp, fail_mode="open")
    evaluation = await evaluate(tenant, CARD)
    assert evaluation["final_action"] == "redact"
    assert any("ner: timeout" in sentence for sentence in evaluation["decision_trace"])


async def test_a_groups_overrides_apply_to_the_group_and_its_members(platform: RunningPlatform, tenant: Tenant) -> None:
    lenient = new_group(platform, tenant, tenant.user.id, tenant.auditor.id, credit_card="ALLOW")
    strict = new_group(platform, tenant, tenant.auditor.id, credit_card="BLOCK")
    platform.touch("policy", tenant.id)
    await platform.refresh()
    for body, action in [
        ({}, "redact"),
        ({"group_id": str(lenient)}, "allow"),
        ({"group_id": str(strict)}, "block"),
        ({"user_id": str(tenant.user.id)}, "allow"),
        ({"user_id": str(tenant.admin.id)}, "redact"),
        ({"user_id": str(tenant.auditor.id)}, "block"),
        ({"user_id": str(tenant.user.id), "group_id": str(strict)}, "block"),
    ]:
        evaluation = await evaluate(tenant, CARD, **body)
        assert evaluation["final_action"] == action, body
        assert evaluation["matched_rules"][0]["action_tier"] == "redact"


async def test_resources_of_another_organization_are_not_found(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant
) -> None:
    theirs = new_group(platform, other_tenant)
    for body, missing in [
        ({"org_id": str(other_tenant.id)}, "Organization not found"),
        ({"group_id": str(theirs)}, "Group not found"),
        ({"group_id": str(uuid4())}, "Group not found"),
        ({"user_id": str(other_tenant.user.id)}, "User not found"),
    ]:
        answer = await tenant.admin.client.post(f"{BASE}/evaluate", json={"text": "x", **body})
        assert (answer.status_code, answer.json()) == (404, {"detail": missing})


@pytest.mark.parametrize(
    ("body", "field"),
    [({}, "text"), ({"text": 5}, "text"), ({"text": "x", "group_id": "x"}, "group_id")],
)
async def test_a_bad_evaluation_is_400_and_names_the_field(tenant: Tenant, body: dict[str, Any], field: str) -> None:
    answer = await tenant.admin.client.post(f"{BASE}/evaluate", json=body)
    assert (answer.status_code, answer.json()["detail"][0]["loc"]) == (400, ["body", field])


async def test_a_lone_surrogate_in_the_text_is_400(tenant: Tenant) -> None:
    headers = {"content-type": "application/json"}
    answer = await tenant.admin.client.post(f"{BASE}/evaluate", content=b'{"text": "\\ud800"}', headers=headers)
    assert (answer.status_code, answer.json()["detail"][0]["loc"]) == (400, ["body", "text"])


async def test_a_long_trace_is_truncated_before_its_last_line(tenant: Tenant) -> None:
    await add_rule(tenant, entity_type="number", config_json={"pattern": "N[0-9]"})
    trace = (await evaluate(tenant, "N7 " * 5_000))["decision_trace"]
    assert len(trace) == 1_002
    assert trace[-1] == "final action: redact, decided by a rule"


@pytest.mark.parametrize("path", ["test", "evaluate", "replay"])
async def test_only_administrators_run_trials(platform: RunningPlatform, tenant: Tenant, path: str) -> None:
    assert (await platform.anonymous.post(f"{BASE}/{path}", json={})).status_code == 401
    for client in (tenant.user.client, tenant.auditor.client, await platform.new_m2m(tenant.id, "admin:read")):
        assert (await client.post(f"{BASE}/{path}", json={})).status_code == 403
    writer = await platform.new_m2m(tenant.id, "admin:write")
    assert (await writer.post(f"{BASE}/{path}", json={})).status_code == 400


async def test_trials_have_their_own_rate_limit(tenant: Tenant, platform: RunningPlatform) -> None:
    limits = platform.host.ports.limits
    rule = limits.resolve("POST", f"{BASE}/test", None, "192.0.2.1")
    assert rule is not None
    assert (rule.limit, rule.tier) == (10, "POST /api/admin/dlp-rules/test")


async def test_the_gateway_takes_the_action_that_an_evaluation_reports(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    await platform.add_provider(tenant.id, "sandbox", "sandbox", "echo")
    rule = await add_rule(tenant, entity_type="project", action_tier="block", config_json={"pattern": "Aurora-[0-9]+"})
    client = platform.client(await platform.new_key(tenant.user))
    for text in ("About Aurora-7.", CARD, "Nothing to see."):
        evaluation = await evaluate(tenant, text, user_id=str(tenant.user.id))
        messages = [{"role": "user", "content": text}]
        answer = await client.post("/v1/chat/completions", json={"model": "sandbox/echo", "messages": messages})
        assert answer.headers["x-dlp-action"].lower() == evaluation["final_action"]
        if evaluation["final_action"] == "block":
            assert (answer.status_code, answer.json()["error"]["rule_id"]) == (403, rule)
        else:
            assert answer.status_code == 200
            assert "4111 1111" not in answer.text
