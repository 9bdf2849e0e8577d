"""Compliance bundles: endpoints, states, export and import (docs/compliance.md)."""

from datetime import datetime
from typing import Any
from uuid import uuid4

import pytest
from tests.support.platform import RunningPlatform, Tenant

BASE = "/api/admin/compliance-bundles"
EXPORT = "/api/admin/compliance-bundles-export"
FRAMEWORKS = [
    "SOC2", "HIPAA", "GDPR", "PCI-DSS", "ISO27001", "NIST-800-53", "CCPA", "GLBA", "FERPA", "EU-AI-ACT", "SOX",
    "FedRAMP",
]  # fmt: skip


def body(**fields: Any) -> dict[str, Any]:
    return {
        "name": "Card data", "regulatory_framework": "PCI-DSS", "version": "4.0.1",
        "seed_rule_mappings": ["credit_card", "iban"], **fields,
    }  # fmt: skip


async def create_bundle(tenant: Tenant, **fields: Any) -> dict[str, Any]:
    answer = await tenant.admin.client.post(BASE, json=body(**fields))
    assert answer.status_code == 201, answer.text
    bundle: dict[str, Any] = answer.json()
    return bundle


def state_changes(platform: RunningPlatform, tenant: Tenant) -> list[dict[str, Any]]:
    query = "SELECT payload FROM outbox WHERE tenant_id = %s AND event_type = 'bundle_state_change' ORDER BY id"
    return [payload for (payload,) in platform.sql(query, [tenant.id])]


# rows ----------------------------------------------------------------------------------------------------------------


async def test_a_bundle_is_created_read_and_listed_by_name(tenant: Tenant, other_tenant: Tenant) -> None:
    bundle = await create_bundle(tenant, description="Cards and accounts")
    first = await create_bundle(tenant, name="Accounts", enabled=False, seed_rule_mappings=[])
    await create_bundle(other_tenant)
    assert bundle["created_at"] == bundle["updated_at"]
    assert bundle == {
        **body(), "id": bundle["id"], "description": "Cards and accounts", "enabled": True, "state": "active",
        "acknowledged_by": None, "acknowledged_at": None, "created_at": bundle["created_at"],
        "updated_at": bundle["updated_at"],
    }  # fmt: skip
    assert (await tenant.auditor.client.get(f"{BASE}/{bundle['id']}")).json() == bundle
    assert (await tenant.auditor.client.get(BASE)).json() == [first, bundle]


async def test_an_organization_has_a_limited_number_of_bundles(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gatehouse.platform.governance.compliance_bundles.service.MAX_BUNDLES", 2)
    first = await create_bundle(tenant)
    refused = await tenant.admin.client.post(f"{EXPORT}/", json=[body(name="Accounts"), body(name="Health")])
    assert (refused.status_code, "maximum number of compliance bundles" in refused.text) == (409, True)
    # Records of existing bundles add none.
    imported = await tenant.admin.client.post(f"{EXPORT}/", json=[body(), body(name="Accounts")])
    assert (imported.status_code, imported.json()["created_names"]) == (200, ["Accounts"])
    # Archived bundles count too.
    assert (await tenant.admin.client.post(f"{BASE}/{first['id']}/archive")).status_code == 200
    refused = await tenant.admin.client.post(BASE, json=body(name="Health"))
    assert (refused.status_code, "maximum number of compliance bundles" in refused.text) == (409, True)
    assert (await tenant.admin.client.delete(f"{BASE}/{first['id']}")).status_code == 204
    await create_bundle(tenant, name="Health")


@pytest.mark.parametrize(
    ("parameters", "names", "total"),
    [
        ({}, ["Accounts", "Card data", "Health"], 3),
        ({"limit": 2}, ["Accounts", "Card data"], 3),
        ({"limit": 2, "offset": 2}, ["Health"], 3),
        ({"sort": "-name", "limit": 1}, ["Health"], 3),
        ({"sort": "regulatory_framework"}, ["Health", "Card data", "Accounts"], 3),
        ({"search": "CARD"}, ["Card data", "Health"], 2),
        ({"regulatory_framework": "SOX"}, ["Accounts"], 1),
        ({"enabled": "false"}, ["Accounts"], 1),
        ({"state": "archived"}, ["Health"], 1),
        ({"state": "active", "sort": "-updated_at"}, ["Accounts", "Card data"], 2),
    ],
)
async def test_the_list_is_paged_filtered_and_sorted(
    tenant: Tenant, other_tenant: Tenant, parameters: dict[str, Any], names: list[str], total: int
) -> None:
    await create_bundle(other_tenant)
    await create_bundle(tenant)
    health = await create_bundle(tenant, name="Health", regulatory_framework="HIPAA", description="Cards of patients")
    await create_bundle(tenant, name="Accounts", regulatory_framework="SOX", enabled=False)
    assert (await tenant.admin.client.post(f"{BASE}/{health['id']}/archive")).status_code == 200
    listed = await tenant.auditor.client.get(BASE, params=parameters)
    assert ([bundle["name"] for bundle in listed.json()], listed.headers["x-total-count"]) == (names, str(total))


@pytest.mark.parametrize(
    ("name", "value"),
    [("limit", "201"), ("offset", "-1"), ("sort", "state"), ("state", "gone"), ("regulatory_framework", "none")],
)
async def test_an_invalid_parameter_of_the_list_is_named(tenant: Tenant, name: str, value: str) -> None:
    refused = await tenant.admin.client.get(BASE, params={name: value})
    assert (refused.status_code, refused.json()["detail"][0]["loc"]) == (422, ["query", name])


@pytest.mark.parametrize("framework", FRAMEWORKS)
async def test_every_framework_is_accepted(tenant: Tenant, framework: str) -> None:
    assert (await create_bundle(tenant, regulatory_framework=framework))["regulatory_framework"] == framework


async def test_entity_types_of_recognisers_are_accepted(tenant: Tenant) -> None:
    names = ["person", "organization", "location", "address", "date_of_birth"]
    assert (await create_bundle(tenant, seed_rule_mappings=[*names, "person"]))["seed_rule_mappings"] == names


async def test_an_update_changes_only_the_named_fields(platform: RunningPlatform, tenant: Tenant) -> None:
    bundle = await create_bundle(tenant, description="x")
    path = f"{BASE}/{bundle['id']}"
    changed = (await tenant.admin.client.put(path, json={"version": "5", "description": None})).json()
    assert changed == {**bundle, "version": "5", "description": None, "updated_at": changed["updated_at"]}
    assert changed["updated_at"] > bundle["updated_at"]
    (event,) = await platform.audit(tenant, "compliance_bundle.updated")
    assert event["details"] == {"version": "5", "description": None}
    assert (await tenant.admin.client.put(path, json={"version": "5"})).json() == changed
    assert len(await platform.audit(tenant, "compliance_bundle.updated")) == 1


async def test_a_name_is_unique_in_an_organization(tenant: Tenant, other_tenant: Tenant) -> None:
    await create_bundle(tenant)
    second = await create_bundle(tenant, name="Second")
    await create_bundle(other_tenant)
    assert (await tenant.admin.client.post(BASE, json=body())).status_code == 409
    answer = await tenant.admin.client.put(f"{BASE}/{second['id']}", json={"name": "Card data"})
    assert answer.status_code == 409
    assert "Card data" in answer.json()["detail"]


async def test_a_deleted_bundle_is_not_found(platform: RunningPlatform, tenant: Tenant) -> None:
    bundle = await create_bundle(tenant)
    assert (await tenant.admin.client.delete(f"{BASE}/{bundle['id']}")).status_code == 204
    assert (await tenant.admin.client.get(f"{BASE}/{bundle['id']}")).status_code == 404
    (created,) = await platform.audit(tenant, "compliance_bundle.created")
    (deleted,) = await platform.audit(tenant, "compliance_bundle.deleted")
    assert created["resource_id"] == deleted["resource_id"] == bundle["id"]
    assert created["details"]["seed_rule_mappings"] == ["credit_card", "iban"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", ""), ("name", "  "), ("name", "x" * 256), ("name", None), ("version", ""),
        ("regulatory_framework", "PCI"), ("seed_rule_mappings", ["credit_card", "CREDIT_CARD"]),
        ("seed_rule_mappings", "credit_card"), ("enabled", "yes"), ("state", "archived"), ("description", 1),
    ],
)  # fmt: skip
async def test_a_bad_field_is_named(tenant: Tenant, field: str, value: object) -> None:
    bundle = await create_bundle(tenant, name="Before")
    for answer in (
        await tenant.admin.client.post(BASE, json=body(**{field: value})),
        await tenant.admin.client.put(f"{BASE}/{bundle['id']}", json={field: value}),
    ):
        assert answer.status_code == 422
        assert {fault["loc"][1] for fault in answer.json()["detail"]} == {field}
    assert (await tenant.admin.client.get(BASE)).json() == [bundle]


# states --------------------------------------------------------------------------------------------------------------


async def test_every_change_of_state_creates_an_outbox_event_and_an_audit_event(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    bundle = await create_bundle(tenant)
    path = f"{BASE}/{bundle['id']}"
    admin = tenant.admin.client
    body = (await admin.post(f"{path}/archive")).json()
    assert (body["state"], body["enabled"]) == ("archived", True)
    assert (await admin.post(f"{path}/activate")).json()["state"] == "active"
    assert (await admin.put(path, json={"enabled": False})).json()["enabled"] is False
    assert (await admin.put(path, json={"enabled": True})).json()["enabled"] is True
    body = (await admin.post(f"{path}/acknowledge")).json()
    assert body["acknowledged_by"] == str(tenant.admin.id)
    assert datetime.fromisoformat(body["acknowledged_at"]).tzinfo is not None
    moves = state_changes(platform, tenant)
    assert [(move["previous_state"], move["new_state"]) for move in moves] == [
        ("active", "archived"), ("archived", "active"), ("enabled", "disabled"), ("disabled", "enabled"),
        ("active", "acknowledged"),
    ]  # fmt: skip
    assert {move["bundle_id"] for move in moves} == {bundle["id"]}
    assert {move["changed_by"] for move in moves} == {str(tenant.admin.id)}
    assert set(moves[0]) == {
        "bundle_id", "bundle_name", "previous_state", "new_state", "changed_by", "changed_at",
    }  # fmt: skip
    for action in ("archived", "activated", "acknowledged"):
        (event,) = await platform.audit(tenant, f"compliance_bundle.{action}")
        assert (event["actor_id"], event["resource_id"]) == (str(tenant.admin.id), bundle["id"])


@pytest.mark.parametrize(
    ("verb", "before"), [("archive", "archive"), ("activate", None), ("acknowledge", "acknowledge")]
)
async def test_setting_the_current_state_changes_nothing(
    platform: RunningPlatform, tenant: Tenant, verb: str, before: str | None
) -> None:
    path = f"{BASE}/{(await create_bundle(tenant))['id']}"
    if before:
        await tenant.admin.client.post(f"{path}/{before}")
    result, moves = (await tenant.admin.client.get(path)).json(), state_changes(platform, tenant)
    answer = await tenant.admin.client.post(f"{path}/{verb}")
    assert (answer.status_code, answer.json()) == (200, result)
    assert state_changes(platform, tenant) == moves


@pytest.mark.parametrize(
    ("change", "is_kept"),
    [
        ({"version": "5"}, False), ({"seed_rule_mappings": []}, False), ({"regulatory_framework": "SOX"}, False),
        ({"description": "x", "enabled": False, "name": "y"}, True),
    ],
)  # fmt: skip
async def test_an_acknowledgement_is_kept_until_the_content_of_the_bundle_changes(
    tenant: Tenant, change: dict[str, Any], is_kept: bool
) -> None:
    path = f"{BASE}/{(await create_bundle(tenant))['id']}"
    before = (await tenant.admin.client.post(f"{path}/acknowledge")).json()
    after = (await tenant.admin.client.put(path, json=change)).json()
    assert (after["acknowledged_at"], after["acknowledged_by"]) == (
        (before["acknowledged_at"], before["acknowledged_by"]) if is_kept else (None, None)
    )


async def test_an_active_bundle_redacts_its_entity_types(platform: RunningPlatform, tenant: Tenant) -> None:
    """Without the bundle an e-mail address is only logged."""
    await platform.add_provider(tenant.id, "sandbox", "sandbox", "echo")
    call = {"model": "sandbox/echo", "messages": [{"role": "user", "content": "write to jane.doe@acme-corp.com"}]}

    async def redacted() -> bool:
        answer = await tenant.user.client.post("/v1/chat/completions", json=call)
        assert answer.status_code == 200, answer.text
        return "jane.doe" not in answer.text

    assert not await redacted()
    path = f"{BASE}/{(await create_bundle(tenant, seed_rule_mappings=['email']))['id']}"
    assert await redacted()
    for request, expected in [
        (("POST", f"{path}/archive", None), False), (("POST", f"{path}/activate", None), True),
        (("PUT", path, {"enabled": False}), False), (("PUT", path, {"enabled": True}), True),
        (("PUT", path, {"seed_rule_mappings": ["iban"]}), False),
        (("PUT", path, {"seed_rule_mappings": ["email"]}), True), (("DELETE", path, None), False),
    ]:  # fmt: skip
        method, target, sent = request
        assert (await tenant.admin.client.request(method, target, json=sent)).is_success
        assert await redacted() is expected, request


# export and import ---------------------------------------------------------------------------------------------------


async def test_an_export_can_be_imported_by_another_organization(tenant: Tenant, other_tenant: Tenant) -> None:
    bundle = await create_bundle(tenant, description="x", enabled=False)
    await create_bundle(tenant, name="Accounts")
    records = (await tenant.auditor.client.get(f"{EXPORT}/")).json()
    assert [record["name"] for record in records] == ["Accounts", "Card data"]
    (card_data,) = (record for record in records if record["name"] == "Card data")
    assert set(card_data) == {
        "name", "description", "regulatory_framework", "version", "enabled", "seed_rule_mappings", "exported_at",
        "export_version", "state",
    }  # fmt: skip
    single = (await tenant.auditor.client.get(f"{EXPORT}/{bundle['id']}")).json()
    assert {**single, "exported_at": card_data["exported_at"]} == card_data
    summary = (await other_tenant.admin.client.post(f"{EXPORT}/", json=records)).json()
    assert summary == {
        "created": 2, "skipped": 0, "replaced": 0, "created_names": ["Accounts", "Card data"], "skipped_names": [],
        "replaced_names": [], "archived_names": [],
    }  # fmt: skip
    theirs = (await other_tenant.admin.client.get(f"{EXPORT}/")).json()
    assert [{**record, "exported_at": None} for record in theirs] == [
        {**record, "exported_at": None} for record in records
    ]


async def test_an_archived_bundle_is_imported_as_archived(tenant: Tenant, other_tenant: Tenant) -> None:
    bundle = await create_bundle(tenant)
    await tenant.admin.client.post(f"{BASE}/{bundle['id']}/archive")
    records = (await tenant.admin.client.get(f"{EXPORT}/")).json()
    assert records[0]["state"] == "archived"
    summary = (await other_tenant.admin.client.post(f"{EXPORT}/", json=records)).json()
    assert (summary["created_names"], summary["archived_names"]) == (["Card data"], ["Card data"])
    (theirs,) = (await other_tenant.admin.client.get(BASE)).json()
    assert theirs["state"] == "archived"
    # An import in the replace mode also replaces the state.
    active = [{**records[0], "state": "active"}]
    summary = (await other_tenant.admin.client.post(f"{EXPORT}/", json=active, params={"mode": "replace"})).json()
    assert (summary["replaced_names"], summary["archived_names"]) == (["Card data"], [])
    assert (await other_tenant.admin.client.get(f"{BASE}/{theirs['id']}")).json()["state"] == "active"


async def test_each_event_starts_from_the_state_of_the_previous_one(platform: RunningPlatform, tenant: Tenant) -> None:
    path = f"{BASE}/{(await create_bundle(tenant))['id']}"
    for verb in ("acknowledge", "archive", "activate"):
        await tenant.admin.client.post(f"{path}/{verb}")
    await tenant.admin.client.put(path, json={"version": "5"})
    assert [(move["previous_state"], move["new_state"]) for move in state_changes(platform, tenant)] == [
        ("active", "acknowledged"), ("acknowledged", "archived"), ("archived", "acknowledged"),
        ("acknowledged", "active"),
    ]  # fmt: skip


async def test_an_export_without_bundles_is_empty(tenant: Tenant) -> None:
    assert (await tenant.admin.client.get(f"{EXPORT}/")).json() == []


@pytest.mark.parametrize("mode", [None, "skip", "replace"])
async def test_an_import_handles_an_existing_name_by_its_mode(
    platform: RunningPlatform, tenant: Tenant, mode: str | None
) -> None:
    bundle = await create_bundle(tenant)
    await tenant.admin.client.post(f"{BASE}/{bundle['id']}/archive")
    file = [body(version="5", enabled=False), body(name="New")]
    params = {"mode": mode} if mode else {}
    summary = (await tenant.admin.client.post(f"{EXPORT}/", json=file, params=params)).json()
    replaces = mode == "replace"
    assert summary == {
        "created": 1, "skipped": int(not replaces), "replaced": int(replaces), "created_names": ["New"],
        "skipped_names": [] if replaces else ["Card data"], "replaced_names": ["Card data"] if replaces else [],
        "archived_names": ["Card data"] if replaces else [],
    }  # fmt: skip
    after = (await tenant.admin.client.get(f"{BASE}/{bundle['id']}")).json()
    assert (after["version"], after["enabled"]) == (("5", False) if replaces else ("4.0.1", True))
    assert (after["id"], after["state"]) == (bundle["id"], "archived")
    assert len(await platform.audit(tenant, "compliance_bundle.created")) == 2
    assert len(await platform.audit(tenant, "compliance_bundle.updated")) == int(replaces)
    assert [move["new_state"] for move in state_changes(platform, tenant)][1:] == (["disabled"] if replaces else [])


async def test_a_file_with_errors_changes_nothing_and_all_errors_are_reported(tenant: Tenant) -> None:
    file = [
        body(name="Good"), body(name=""), body(regulatory_framework="PCI"),
        body(seed_rule_mappings=["credit_card", "cards"]), body(version=" "), {"name": "Half"},
        body(name="two\nlines"),
    ]  # fmt: skip
    answer = await tenant.admin.client.post(f"{EXPORT}/", json=file)
    assert answer.status_code == 422
    assert [fault["loc"] for fault in answer.json()["detail"]] == [
        ["body", 1, "name"], ["body", 2, "regulatory_framework"], ["body", 3, "seed_rule_mappings", 1],
        ["body", 4, "version"], ["body", 5, "regulatory_framework"], ["body", 5, "version"],
        ["body", 5, "seed_rule_mappings"], ["body", 6, "name"],
    ]  # fmt: skip
    assert (await tenant.admin.client.get(BASE)).json() == []


@pytest.mark.parametrize(("file", "loc"), [({"bundles": []}, ["body"]), ([1], ["body", 0]), ("x", ["body"])])
async def test_a_file_of_another_format_is_refused(tenant: Tenant, file: object, loc: list[str | int]) -> None:
    answer = await tenant.admin.client.post(f"{EXPORT}/", json=file)
    assert answer.status_code == 422
    assert [fault["loc"] for fault in answer.json()["detail"]] == [loc]


async def test_an_unknown_mode_is_named(tenant: Tenant) -> None:
    answer = await tenant.admin.client.post(f"{EXPORT}/", json=[], params={"mode": "rename"})
    assert (answer.status_code, answer.json()["detail"][0]["loc"]) == (422, ["query", "mode"])


@pytest.mark.parametrize("mode", ["skip", "replace"])
async def test_a_duplicate_name_in_a_file_is_a_conflict(tenant: Tenant, mode: str) -> None:
    file = [body(name="Once"), body(), body(version="5")]
    answer = await tenant.admin.client.post(f"{EXPORT}/", json=file, params={"mode": mode})
    assert answer.status_code == 409
    assert "Card data" in answer.json()["detail"]
    assert (await tenant.admin.client.get(BASE)).json() == []


# rights --------------------------------------------------------------------------------------------------------------

READS = ["", "/{id}"]
WRITES = [
    ("POST", ""), ("PUT", "/{id}"), ("POST", "/{id}/archive"), ("POST", "/{id}/activate"),
    ("POST", "/{id}/acknowledge"), ("DELETE", "/{id}"),
]  # fmt: skip


async def test_administrators_change_and_auditors_read(platform: RunningPlatform, tenant: Tenant) -> None:
    bundle = await create_bundle(tenant)
    reader = await platform.new_m2m(tenant.id, "admin:read")
    reads = [*(BASE + path.format(**bundle) for path in READS), f"{EXPORT}/", f"{EXPORT}/{bundle['id']}"]
    writes = [(method, BASE + path.format(**bundle)) for method, path in WRITES] + [("POST", f"{EXPORT}/")]
    for client, reading, writing in [
        (platform.anonymous, 401, 401), (tenant.user.client, 403, 403), (tenant.auditor.client, 200, 403),
        (reader, 200, 403),
    ]:  # fmt: skip
        for path in reads:
            assert (await client.get(path)).status_code == reading
        for method, path in writes:
            assert (await client.request(method, path)).status_code == writing
    writer = await platform.new_m2m(tenant.id, "admin:write")
    assert (await writer.post(f"{BASE}/{bundle['id']}/acknowledge")).status_code == 200


async def test_another_organizations_bundle_is_not_found(tenant: Tenant, other_tenant: Tenant) -> None:
    bundle = await create_bundle(tenant)
    for item in (bundle["id"], str(uuid4())):
        paths = [("GET", f"{BASE}/{item}"), ("GET", f"{EXPORT}/{item}")]
        paths += [(method, BASE + path.format(id=item)) for method, path in WRITES[1:]]
        for method, path in paths:
            sent: dict[str, Any] | None = {} if method == "PUT" else None
            answer = await other_tenant.admin.client.request(method, path, json=sent)
            assert (answer.status_code, answer.json()) == (404, {"detail": "Compliance bundle not found"})
