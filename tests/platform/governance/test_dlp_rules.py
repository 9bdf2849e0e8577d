"""The endpoints of DLP rules (docs/dlp-rules.md)."""

from datetime import datetime
from typing import Any
from uuid import uuid4

import pytest
from tests.support.platform import RunningPlatform, Tenant

BASE = "/api/admin/dlp-rules"
RULE: dict[str, Any] = {
    "detector_name": "Employee numbers",
    "detector_type": "regex",
    "entity_type": "employee_id",
    "action_tier": "redact",
    "config_json": {"pattern": "EMP-[0-9]{6}"},
}
TEXT = "Ask EMP-123456."
#: Fields of a rule that the platform sets.
COMPUTED = {"id", "stream_max_length", "updated_at"}


async def create_rule(tenant: Tenant, **changed: Any) -> dict[str, Any]:
    answer = await tenant.admin.client.post(f"{BASE}/", json={**RULE, **changed})
    assert answer.status_code == 201, answer.text
    rule: dict[str, Any] = answer.json()
    return rule


async def action(tenant: Tenant, text: str = TEXT) -> str:
    answer = await tenant.admin.client.post(f"{BASE}/evaluate", json={"text": text})
    assert answer.status_code == 200, answer.text
    action: str = answer.json()["final_action"]
    return action


async def rules_without_time(tenant: Tenant) -> list[dict[str, Any]]:
    """Return the rules without `updated_at`."""
    rules = (await tenant.admin.client.get(f"{BASE}/")).json()
    return [{name: value for name, value in rule.items() if name != "updated_at"} for rule in rules]


async def test_a_rule_has_the_documented_fields_and_defaults(tenant: Tenant) -> None:
    rule = await create_rule(tenant)
    assert rule == {
        **RULE, "id": rule["id"], "enabled": True, "confidence_threshold": 0.5, "stream_max_length": None,
        "updated_at": rule["updated_at"],
    }  # fmt: skip
    assert (await tenant.admin.client.get(f"{BASE}/{rule['id']}")).json() == rule
    assert (await tenant.auditor.client.get(f"{BASE}/")).json() == [rule]


#: Patterns, with a text that matches, and whether the length of their matches is unbounded.
RE2: list[tuple[str, str, bool]] = [
    (r"BEGIN SECRET[\s\S]+?END SECRET", "BEGIN SECRET" + "abc" * 40 + "END SECRET", True),
    (r"\w+@\w+(\.\w+)+", "someone@mail.example.com", True),
    (r"([a-z0-9]+\.)*example\.com", "a.b.example.com", True),
    (r"(\d+,)*\d+", "1,2,3", True),
    ("(?:[A-Z][a-z]+ ){2,}", "Anna Maria ", True),
    (r"(\w+\s?)+@", "to whom it may concern @", True),
    (r"\A\d+", "12", True),
    (r"\d+\z", "34", True),
    (r"\Qa.b\E", "a.b", False),
    ("a*", "aa", True),
]


@pytest.mark.parametrize(("pattern", "value", "unbounded"), RE2)
async def test_a_pattern_has_the_meaning_of_re2_in_a_call(
    platform: RunningPlatform, tenant: Tenant, pattern: str, value: str, unbounded: bool
) -> None:
    await platform.add_provider(tenant.id, "sandbox", "sandbox", "echo")
    rule = await create_rule(tenant, config_json={"pattern": pattern})
    assert rule["stream_max_length"] == (4_096 if unbounded else None)
    (stored,) = (await tenant.admin.client.get(f"{BASE}/")).json()
    assert stored == rule
    messages = [{"role": "user", "content": value}]
    body = {"model": "sandbox/echo", "messages": messages}
    answer = await tenant.user.client.post("/v1/chat/completions", json=body)
    assert (answer.status_code, answer.headers["x-dlp-action"]) == (200, "REDACT"), answer.text
    # Other fields of the response contain numbers, such as the time, so only the content is checked.
    content = answer.json()["choices"][0]["message"]["content"]
    assert content.startswith("[EMPLOYEE_ID_")
    assert value not in content


async def test_a_rule_takes_effect_with_the_response_and_ends_when_it_is_removed(tenant: Tenant) -> None:
    rule = await create_rule(tenant)
    assert await action(tenant) == "redact"
    await tenant.admin.client.put(f"{BASE}/{rule['id']}", json={"action_tier": "block"})
    assert await action(tenant) == "block"
    await tenant.admin.client.put(f"{BASE}/{rule['id']}", json={"enabled": False})
    assert await action(tenant) == "allow"
    await tenant.admin.client.put(f"{BASE}/{rule['id']}", json={"enabled": True})
    assert (await tenant.admin.client.delete(f"{BASE}/{rule['id']}")).status_code == 204
    assert await action(tenant) == "allow"


async def test_the_list_is_filtered(tenant: Tenant) -> None:
    regex = await create_rule(tenant)
    off = await create_rule(tenant, detector_name="off", enabled=False)
    people = await create_rule(
        tenant, detector_name="people", detector_type="ner", entity_type="person", config_json={}
    )
    for query, expected in [
        ({}, [regex, off, people]),
        ({"enabled": "true"}, [regex, people]),
        ({"enabled": "false"}, [off]),
        ({"detector_type": "ner"}, [people]),
        ({"detector_type": "regex", "enabled": "true"}, [regex]),
        ({"detector_type": "llm"}, []),
    ]:
        assert (await tenant.admin.client.get(f"{BASE}/", params=query)).json() == expected, query


@pytest.mark.parametrize(
    ("parameters", "names", "total"),
    [
        ({}, ["Second", "First", "Third"], 3),
        ({"limit": 2, "offset": 1}, ["First", "Third"], 3),
        ({"sort": "detector_name"}, ["First", "Second", "Third"], 3),
        ({"sort": "-detector_name", "limit": 1}, ["Third"], 3),
        ({"search": "IR"}, ["First", "Third"], 2),
        ({"search": "badge"}, ["Third"], 1),
    ],
)
async def test_the_list_is_paged_searched_and_sorted(
    tenant: Tenant, other_tenant: Tenant, parameters: dict[str, Any], names: list[str], total: int
) -> None:
    await create_rule(other_tenant, detector_name="First")
    for name, entity_type in (("Second", "employee_id"), ("First", "employee_id"), ("Third", "badge_number")):
        await create_rule(tenant, detector_name=name, entity_type=entity_type)
    listed = await tenant.auditor.client.get(f"{BASE}/", params=parameters)
    assert [rule["detector_name"] for rule in listed.json()] == names
    assert listed.headers["x-total-count"] == str(total)


async def test_every_change_stores_a_version_that_is_kept_after_the_rule_is_deleted(tenant: Tenant) -> None:
    rule = await create_rule(tenant)
    await tenant.admin.client.put(f"{BASE}/{rule['id']}", json={"action_tier": "block"})
    await tenant.admin.client.delete(f"{BASE}/{rule['id']}")
    versions = (await tenant.auditor.client.get(f"{BASE}/{rule['id']}/versions")).json()
    first = {name: value for name, value in rule.items() if name not in COMPUTED}
    second = {**first, "action_tier": "block"}
    assert [(v["change_type"], v["old_values"], v["new_values"]) for v in versions] == [
        ("delete", second, None),
        ("update", first, second),
        ("create", None, first),
    ]
    assert {v["changed_by"] for v in versions} == {str(tenant.admin.id)}
    assert {v["rule_id"] for v in versions} == {rule["id"]}
    moments = [datetime.fromisoformat(v["changed_at"]) for v in versions]
    assert moments == sorted(moments, reverse=True)
    for query, shown in (("limit=2", versions[:2]), ("limit=2&offset=2", versions[2:]), ("offset=3", [])):
        page = await tenant.auditor.client.get(f"{BASE}/{rule['id']}/versions?{query}")
        assert (page.json(), page.headers["x-total-count"]) == (shown, "3")


async def test_every_change_is_in_the_audit_chain_without_the_pattern(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    rule = await create_rule(tenant)
    await tenant.admin.client.put(f"{BASE}/{rule['id']}", json={"action_tier": "block"})
    await tenant.admin.client.delete(f"{BASE}/{rule['id']}")
    await tenant.admin.client.post(f"{BASE}/import", json={"rules": [RULE]})
    for name in ("created", "updated", "deleted", "imported"):
        (event,) = await platform.audit(tenant, f"dlp_rule.{name}")
        assert event["actor_id"] == str(tenant.admin.id)
        assert "EMP-" not in str(event["details"])


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"detector_name": ""}, "detector_name"),
        ({"detector_name": None}, "detector_name"),
        ({"detector_type": "regexp"}, "detector_type"),
        ({"entity_type": "employee id"}, "entity_type"),
        ({"action_tier": "REDACT"}, "action_tier"),
        ({"confidence_threshold": 1.5}, "confidence_threshold"),
        ({"confidence_threshold": "0.5"}, "confidence_threshold"),
        ({"enabled": "yes"}, "enabled"),
        ({"config_json": []}, "config_json"),
        ({"colour": "red"}, "colour"),
        ({"config_json": {}}, "config_json.pattern"),
        ({"config_json": {"pattern": None}}, "config_json.pattern"),
        ({"config_json": {"pattern": ""}}, "config_json.pattern"),
        ({"config_json": {"pattern": "a" * 2_001}}, "config_json.pattern"),
        ({"config_json": {"pattern": "a\x00b"}}, "config_json"),
        ({"config_json": {"pattern": "a", "flags": "i"}}, "config_json.flags"),
        ({"config_json": {"pattern": "a", "context": "word"}}, "config_json.context"),
        ({"config_json": {"pattern": "a", "reversible": 1}}, "config_json.reversible"),
        ({"entity_type": "ssn", "config_json": {"context": ["x"]}}, "config_json.context"),
        ({"detector_type": "ner", "config_json": {"entities": ["persons"]}}, "config_json.entities.0"),
        ({"detector_type": "ner", "config_json": {"entities": []}}, "config_json.entities"),
        ({"detector_type": "ner", "config_json": {"entities": ["person"] * 51}}, "config_json.entities"),
        ({"detector_type": "ner", "config_json": {"entities": ["person", "<<SEP>>"]}}, "config_json.entities.1"),
        ({"detector_type": "ner"}, "config_json.pattern"),
        ({"detector_type": "llm", "config_json": {}}, "config_json.labels"),
        ({"detector_type": "llm", "config_json": {"labels": ["x"], "threshold": 2}}, "config_json.threshold"),
    ],
)
async def test_a_bad_body_is_400_and_names_the_field(tenant: Tenant, changed: dict[str, Any], field: str) -> None:
    answer = await tenant.admin.client.post(f"{BASE}/", json={**RULE, **changed})
    assert answer.status_code == 400, answer.text
    reported_fields = {".".join(map(str, fault["loc"][1:])) for fault in answer.json()["detail"]}
    assert field in reported_fields
    assert (await tenant.admin.client.get(f"{BASE}/")).json() == []


async def test_a_lone_surrogate_in_a_pattern_is_400(tenant: Tenant) -> None:
    body = b'{"detector_name": "x", "detector_type": "regex", "entity_type": "x", "action_tier": "redact", %s}'
    for config in (
        b'"config_json": {"pattern": "\\ud800"}',
        b'"config_json": {"pattern": "a", "context": ["\\ud800"]}',
    ):
        headers = {"content-type": "application/json"}
        answer = await tenant.admin.client.post(f"{BASE}/", content=body % config, headers=headers)
        assert answer.status_code == 400, answer.text


@pytest.mark.parametrize(
    ("pattern", "reason", "position"),
    [
        ("EMP-(", "missing )", 5),
        ("EMP-[0-9", "missing ]", 4),
        ("(?=EMP)x", "look-ahead is not possible", 0),
        ("a**", "bad repetition operator", 1),
        (r"\\Z\Z", "invalid escape sequence", 3),
        ("[z-a]", "invalid character class range", 1),
        (r"\p{L}{1,500}", "pattern is too large", None),
        (r"\b", "matches nothing but the empty text", None),
        (r"(EMP)-\1", "references to groups are not possible", 6),
        (r"\C", "not bytes", 0),
    ],
)
async def test_a_bad_pattern_is_400_with_reason_and_position_and_changes_nothing(
    platform: RunningPlatform, tenant: Tenant, pattern: str, reason: str, position: int | None
) -> None:
    rule = await create_rule(tenant)
    for answer in (
        await tenant.admin.client.post(f"{BASE}/", json={**RULE, "config_json": {"pattern": pattern}}),
        await tenant.admin.client.put(f"{BASE}/{rule['id']}", json={"config_json": {"pattern": pattern}}),
    ):
        assert answer.status_code == 400, answer.text
        (fault,) = answer.json()["detail"]
        assert fault["loc"] == ["body", "config_json", "pattern"]
        assert reason in fault["msg"]
        assert (f"(position {position})" in fault["msg"]) == (position is not None)
    assert (await tenant.admin.client.get(f"{BASE}/")).json() == [rule]
    assert len((await tenant.admin.client.get(f"{BASE}/{rule['id']}/versions")).json()) == 1
    assert await platform.audit(tenant, "dlp_rule.updated") == []
    assert await action(tenant) == "redact"


async def test_a_changed_detector_validates_the_pattern_again(tenant: Tenant) -> None:
    rule = await create_rule(tenant)
    answer = await tenant.admin.client.put(f"{BASE}/{rule['id']}", json={"detector_type": "ner"})
    assert answer.status_code == 400
    assert answer.json()["detail"][0]["loc"] == ["body", "config_json", "pattern"]
    both = {"detector_type": "ner", "entity_type": "person", "config_json": {"entities": ["person"]}}
    answer = await tenant.admin.client.put(f"{BASE}/{rule['id']}", json=both)
    assert (answer.status_code, answer.json()) == (200, {**rule, **both, "updated_at": answer.json()["updated_at"]})


async def test_a_rule_without_a_pattern_applies_to_the_built_in_patterns_of_its_type(tenant: Tenant) -> None:
    card = "Pay with 4111 1111 1111 1111."
    assert await action(tenant, card) == "redact"
    await create_rule(tenant, entity_type="credit_card", action_tier="log_only", config_json={})
    assert await action(tenant, card) == "log_only"


async def test_the_pattern_keeps_its_white_space(tenant: Tenant) -> None:
    await create_rule(tenant, config_json={"pattern": "EMP-[0-9]{6} "})
    assert await action(tenant, "EMP-123456.") == "allow"
    assert await action(tenant, "EMP-123456 called") == "redact"


async def test_an_export_imports_into_another_organization(tenant: Tenant, other_tenant: Tenant) -> None:
    first = await create_rule(tenant)
    people = {"detector_type": "ner", "entity_type": "person", "config_json": {}, "enabled": False}
    await create_rule(tenant, detector_name="people", **people)
    exported = (await tenant.auditor.client.get(f"{BASE}/export")).json()
    assert set(exported) == {"version", "exported_at", "tenant_id", "rules"}
    assert (exported["version"], exported["tenant_id"]) == ("1.0", str(tenant.id))
    assert exported["rules"][0] == {name: value for name, value in first.items() if name not in COMPUTED}
    answer = await other_tenant.admin.client.post(f"{BASE}/import", json=exported)
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert (body["imported"], body["skipped"], body["errors"]) == (2, 0, [])
    assert body["rules"] == (await other_tenant.admin.client.get(f"{BASE}/")).json()
    assert (await other_tenant.admin.client.get(f"{BASE}/export")).json()["rules"] == exported["rules"]
    assert await action(other_tenant) == "redact"


@pytest.mark.parametrize(
    ("mode", "imported", "skipped", "names", "tiers"),
    [
        ("skip", 1, 1, ["Employee numbers", "New"], ["redact", "block"]),
        ("overwrite", 2, 0, ["Employee numbers", "New"], ["block", "block"]),
        ("rename", 2, 0, ["Employee numbers", "Employee numbers_imported", "New"], ["redact", "block", "block"]),
    ],
)
async def test_an_import_handles_existing_names_by_its_mode(
    tenant: Tenant, mode: str, imported: int, skipped: int, names: list[str], tiers: list[str]
) -> None:
    existing = await create_rule(tenant)
    rules = [{**RULE, "action_tier": "block"}, {**RULE, "detector_name": "New", "action_tier": "block"}]
    answer = await tenant.admin.client.post(f"{BASE}/import", json={"rules": rules, "conflict_mode": mode})
    body = answer.json()
    assert (body["imported"], body["skipped"], len(body["rules"])) == (imported, skipped, imported)
    listed = (await tenant.admin.client.get(f"{BASE}/")).json()
    assert [rule["detector_name"] for rule in listed] == names
    assert [rule["action_tier"] for rule in listed] == tiers
    assert listed[0]["id"] == existing["id"]
    versions = (await tenant.admin.client.get(f"{BASE}/{existing['id']}/versions")).json()
    assert len(versions) == (2 if mode == "overwrite" else 1)


async def test_an_import_of_the_own_export_in_overwrite_mode_changes_nothing_even_with_duplicate_names(
    tenant: Tenant,
) -> None:
    await create_rule(tenant)
    await create_rule(tenant, entity_type="credit_card", config_json={})
    before = await rules_without_time(tenant)
    exported = (await tenant.admin.client.get(f"{BASE}/export")).json()
    answer = await tenant.admin.client.post(f"{BASE}/import", json={**exported, "conflict_mode": "overwrite"})
    assert (answer.status_code, answer.json()["imported"]) == (200, 2)
    assert await rules_without_time(tenant) == before


async def test_the_overwrite_mode_adds_duplicates_that_only_the_file_contains(tenant: Tenant) -> None:
    existing = await create_rule(tenant)
    rules = [{**RULE, "action_tier": "block"}, {**RULE, "action_tier": "log_only"}]
    answer = await tenant.admin.client.post(f"{BASE}/import", json={"rules": rules, "conflict_mode": "overwrite"})
    assert answer.json()["imported"] == 2
    listed = (await tenant.admin.client.get(f"{BASE}/")).json()
    assert [(rule["detector_name"], rule["action_tier"]) for rule in listed] == [
        ("Employee numbers", "block"),
        ("Employee numbers", "log_only"),
    ]
    assert listed[0]["id"] == existing["id"]


async def test_a_name_with_invalid_unicode_is_reported_with_replacements(tenant: Tenant) -> None:
    headers = {"content-type": "application/json"}
    file = b'{"rules": [{"detector_name": "a\\ud800"}]}'
    answer = await tenant.admin.client.post(f"{BASE}/import", content=file, headers=headers)
    assert answer.status_code == 200, answer.text
    (fault,) = answer.json()["errors"]
    assert (fault["index"], fault["detector_name"]) == (0, "a?")
    assert fault["error"].startswith("detector_name: ")


async def test_the_rename_mode_repeats_the_suffix_until_the_name_is_free(tenant: Tenant) -> None:
    for _ in range(3):
        await tenant.admin.client.post(f"{BASE}/import", json={"rules": [RULE], "conflict_mode": "rename"})
    names = [rule["detector_name"] for rule in (await tenant.admin.client.get(f"{BASE}/")).json()]
    assert names == ["Employee numbers", "Employee numbers_imported", "Employee numbers_imported_imported"]


async def test_a_duplicate_name_is_409_in_skip_mode_and_nothing_is_imported(tenant: Tenant) -> None:
    answer = await tenant.admin.client.post(f"{BASE}/import", json={"rules": [RULE, RULE]})
    assert (answer.status_code, "Employee numbers" in answer.json()["detail"]) == (409, True)
    assert (await tenant.admin.client.get(f"{BASE}/")).json() == []


async def test_invalid_rules_are_reported_and_valid_rules_are_imported(tenant: Tenant) -> None:
    bad = [
        {**RULE, "detector_name": "no pattern", "config_json": {}},
        RULE,
        {**RULE, "detector_name": "bad pattern", "config_json": {"pattern": "("}},
        {"detector_name": 7},
    ]
    body = (await tenant.admin.client.post(f"{BASE}/import", json={"rules": bad})).json()
    assert (body["imported"], [rule["detector_name"] for rule in body["rules"]]) == (1, ["Employee numbers"])
    assert [(fault["index"], fault["detector_name"]) for fault in body["errors"]] == [
        (0, "no pattern"),
        (2, "bad pattern"),
        (3, None),
    ]
    assert body["errors"][1]["error"] == "config_json.pattern: missing ) (position 1)"


async def test_a_malformed_import_is_400(tenant: Tenant) -> None:
    for body in ({}, {"rules": {}}, {"rules": [], "conflict_mode": "merge"}, {"rules": [], "version": "2.0"}):
        assert (await tenant.admin.client.post(f"{BASE}/import", json=body)).status_code == 400, body


async def test_there_are_at_most_a_thousand_rules(platform: RunningPlatform, tenant: Tenant) -> None:
    platform.sql(
        "INSERT INTO dlp_rules (id, tenant_id, detector_name, detector_type, entity_type, action_tier, enabled)"
        " SELECT gen_random_uuid(), %s, 'rule ' || n, 'ner', 'person', 'redact', false FROM generate_series(1, 1000) n",
        [tenant.id],
    )
    assert (await tenant.admin.client.post(f"{BASE}/", json=RULE)).status_code == 409
    assert (await tenant.admin.client.post(f"{BASE}/import", json={"rules": [RULE]})).status_code == 409
    assert platform.sql("SELECT count(*) FROM dlp_rules WHERE tenant_id = %s", [tenant.id]) == [(1000,)]


async def test_another_organizations_rule_is_not_found(tenant: Tenant, other_tenant: Tenant) -> None:
    rule = await create_rule(tenant)
    client = other_tenant.admin.client
    for method, path in [("GET", ""), ("PUT", ""), ("DELETE", ""), ("GET", "/versions")]:
        for rule_id in (rule["id"], uuid4()):
            answer = await client.request(method, f"{BASE}/{rule_id}{path}", json={"enabled": False})
            assert (answer.status_code, answer.json()) == (404, {"detail": "DLP rule not found"})
    assert (await client.get(f"{BASE}/")).json() == []
    assert await action(other_tenant) == "allow"


async def test_users_cannot_read_and_auditors_cannot_change(platform: RunningPlatform, tenant: Tenant) -> None:
    rule = await create_rule(tenant)
    for path in (f"{BASE}/", f"{BASE}/{rule['id']}", f"{BASE}/export", f"{BASE}/{rule['id']}/versions"):
        assert (await platform.anonymous.get(path)).status_code == 401
        assert (await tenant.user.client.get(path)).status_code == 403
        assert (await tenant.auditor.client.get(path)).status_code == 200
    for method, path in [("POST", "/"), ("POST", "/import"), ("PUT", f"/{rule['id']}"), ("DELETE", f"/{rule['id']}")]:
        assert (await tenant.auditor.client.request(method, BASE + path, json={})).status_code == 403
        assert (await tenant.user.client.request(method, BASE + path, json={})).status_code == 403
