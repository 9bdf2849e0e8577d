"""Every label, record and response shows the findings of a rule with the rule's `entity_type` (docs/dlp-rules.md)."""

import asyncio
import re
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from tests.support.journal import Journal
from tests.support.platform import RunningPlatform, Tenant
from tests.support.samples import kept, sample_every_call

from gatehouse.detection.findings import Finding

NAME = "staff_name"
TEXT = "Ask Ada."


class Names:
    """A detector of entities that finds the name "Ada" with the recognisers' type `person`."""

    async def entities(self, texts: Sequence[str], labels: Sequence[str] = ()) -> list[list[Finding]]:
        return [[Finding(*item.span(), "person", 0.9, "person") for item in re.finditer("Ada", text)] for text in texts]

    async def semantic(self, texts: Sequence[str], labels: Sequence[str]) -> list[dict[str, float]]:
        raise NotImplementedError


@pytest.fixture
def names(platform: RunningPlatform) -> Iterator[None]:
    before = platform.host.ports.detectors
    platform.host.ports.detectors = Names()  # type: ignore[assignment]
    yield
    platform.host.ports.detectors = before


def rule(action: str) -> dict[str, Any]:
    return {
        "detector_name": "Staff", "detector_type": "ner", "entity_type": NAME, "action_tier": action,
        "config_json": {"entities": ["person"]},
    }  # fmt: skip


async def chat(tenant: Tenant, text: str = TEXT) -> Any:
    body = {"model": "sandbox/echo", "messages": [{"role": "user", "content": text}]}
    return await tenant.user.client.post("/v1/chat/completions", json=body)


@pytest.mark.usefixtures("names")
async def test_a_rules_entity_type_is_shown_everywhere(platform: RunningPlatform, tenant: Tenant) -> None:
    admin = tenant.admin.client
    await sample_every_call(platform, tenant)
    assert (await admin.post("/api/admin/dlp-rules/", json=rule("redact"))).status_code == 201
    # Labels in texts and evaluations.
    assert (await chat(tenant)).json()["choices"][0]["message"]["content"] == "Ask [STAFF_NAME_1]."
    scan = (await tenant.user.client.post("/v1/scan", json={"text": TEXT})).json()
    assert ([finding["entity_type"] for finding in scan["findings"]], scan["redacted_text"]) == (
        [NAME], "Ask [STAFF_NAME_1].",
    )  # fmt: skip
    body = (await admin.post("/api/admin/dlp-rules/evaluate", json={"text": TEXT})).json()
    assert [rule["entity_type"] for rule in body["matched_rules"]] == [NAME]
    assert any(NAME in sentence for sentence in body["decision_trace"])
    # Records, counts and events of the outbox.
    sample_id = await kept(platform, tenant, TEXT)
    events = (await admin.get("/api/v1/dlp/events", params={"entity": NAME})).json()
    assert (events["total"], {item["entity_type"] for item in events["items"]}) == (3, {NAME})
    assert (await admin.get("/api/v1/dlp/events", params={"entity": "person"})).json()["total"] == 0
    counts = platform.sql("SELECT DISTINCT entity_type FROM dlp_counts WHERE tenant_id = %s", [tenant.id])
    assert counts == [(NAME,)]
    payloads = platform.sql(
        "SELECT payload FROM outbox WHERE tenant_id = %s AND event_type = 'dlp_trigger'", [tenant.id]
    )
    assert [(result["entity_type"], result["findings"][0]["entity_type"]) for (result,) in payloads] == [
        (NAME, NAME)
    ] * 2
    # The variables of policy rules, and replays.
    revealed = (await admin.post(f"/api/admin/dlp-rules/samples/{sample_id}/reveal")).json()
    assert revealed["context"]["dlp"] == {"action": "REDACT", "entities": [NAME], "counts": {NAME: 1}}
    replayed = (await admin.post("/api/admin/dlp-rules/replay", json={"recorded": {"last": 1}})).json()
    assert [rule["entity_type"] for rule in replayed["rules"]] == [NAME]
    assert [match["entity_type"] for match in replayed["results"][0]["matches"]] == [NAME]


@pytest.mark.usefixtures("names")
async def test_refusals_and_approvals_show_the_rules_entity_type(platform: RunningPlatform, tenant: Tenant) -> None:
    admin = tenant.admin.client
    await platform.add_provider(tenant.id, "sandbox", "sandbox", "echo")
    path = f"/api/admin/dlp-rules/{(await admin.post('/api/admin/dlp-rules/', json=rule('block'))).json()['id']}"
    assert (await chat(tenant)).json()["error"]["entity_type"] == NAME
    await admin.patch("/api/v1/admin/org/feature-flags/human_in_loop", json={"enabled": True})
    assert (await admin.put(path, json={"action_tier": "prompt"})).status_code == 200
    call = asyncio.create_task(chat(tenant))
    async with asyncio.timeout(60):
        while not (waiting := (await admin.get("/api/admin/approvals")).json()["items"]):
            await asyncio.sleep(0.02)
    (approval,) = waiting
    assert (approval["entity_types"], NAME in approval["reason"]) == ([NAME], True)
    await admin.post(f"/api/admin/approvals/{approval['id']}/deny", json={"reason": "no"})
    assert (await call).json()["error"]["entity_type"] == NAME


@pytest.mark.usefixtures("names")
async def test_overrides_and_bundles_match_the_rules_entity_type(platform: RunningPlatform, tenant: Tenant) -> None:
    """An override precedes a bundle, and a bundle does not start a tier that uses a model."""
    admin = tenant.admin.client
    await platform.add_provider(tenant.id, "sandbox", "sandbox", "echo")
    bundle = {"name": "a", "regulatory_framework": "GDPR", "version": "1", "seed_rule_mappings": ["person"]}
    assert (await admin.post("/api/admin/compliance-bundles", json=bundle)).status_code == 201
    scan = (await tenant.user.client.post("/v1/scan", json={"text": TEXT})).json()
    assert (scan["tiers"]["ner"]["ran"], scan["action"]) == (False, "ALLOW")
    log_rule = await admin.post("/api/admin/dlp-rules/", json=rule("log_only"))
    assert "Ada" in (await chat(tenant)).text
    await admin.put(f"/api/admin/dlp-rules/{log_rule.json()['id']}", json={"entity_type": "person"})
    assert "[PERSON_1]" in (await chat(tenant)).text
    group = (await admin.post("/api/admin/groups", json={"name": "clerks"})).json()["id"]
    await admin.post(f"/api/admin/groups/{group}/members", json={"user_id": str(tenant.user.id)})
    for entity_type, expected in ((NAME, "[PERSON_1]"), ("person", "Ada")):
        overrides = [{"entity_type": entity_type, "action": "ALLOW"}]
        assert (await admin.put(f"/api/admin/groups/{group}/dlp", json=overrides)).status_code == 200
        assert expected in (await chat(tenant)).text


@pytest.mark.usefixtures("names")
async def test_a_scan_is_recorded_without_an_event_of_the_outbox(platform: RunningPlatform, tenant: Tenant) -> None:
    await tenant.admin.client.post("/api/admin/dlp-rules/", json=rule("redact"))
    await tenant.user.client.post("/v1/scan", json={"text": TEXT})
    await Journal(platform.installed.url, platform.host.settings.gatehouse_home / "journal").drain()
    assert (await tenant.admin.client.get("/api/v1/dlp/events", params={"entity": NAME})).json()["total"] == 1
    assert platform.sql("SELECT 1 FROM outbox WHERE tenant_id = %s", [tenant.id]) == []
