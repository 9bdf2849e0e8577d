"""A change warns of a model that is not loaded only if the organization of the change needs the model."""

import pytest
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.detection.service.tiers import TierState

RULES = "/api/admin/dlp-rules/"
PEOPLE = {"detector_name": "People", "detector_type": "ner", "entity_type": "person", "action_tier": "log_only"}
PROJECT = {
    "detector_name": "Project", "detector_type": "regex", "entity_type": "project", "action_tier": "log_only",
    "config_json": {"pattern": "Lovelace"},
}  # fmt: skip


async def test_a_change_warns_of_a_model_that_its_own_organization_needs(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def states() -> dict[str, TierState]:
        return {"ner": TierState("unusable"), "llm": TierState("idle")}

    detectors = platform.host.detectors
    monkeypatch.setattr(detectors, "_states", states)
    monkeypatch.setattr(detectors, "_used", set())
    monkeypatch.setattr(detectors, "want", lambda: None)
    answer = await tenant.admin.client.post(RULES, json=PEOPLE)
    assert answer.status_code == 201
    assert answer.headers["X-Gateway-Warning"].startswith("The model of the ner tier is not loaded")
    answer = await other_tenant.admin.client.post(RULES, json=PROJECT)
    assert (answer.status_code, "X-Gateway-Warning" in answer.headers) == (201, False)
    # A model is no longer needed after the last rule that uses it was removed.
    (rule,) = (await tenant.admin.client.get(RULES)).json()
    answer = await tenant.admin.client.delete(f"{RULES}{rule['id']}")
    assert (answer.status_code, "X-Gateway-Warning" in answer.headers) == (204, False)
