"""No log, record, event, audit detail, error or metric contains a matched text, whatever the action of the rule."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from tests.support.journal import Journal
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.foundation.settings import Settings

CARD = "4242 4242 4242 4242"
#: the card number with and without blanks, and its first half; none of them may appear anywhere
TRACES = (CARD, CARD.replace(" ", ""), "4242 4242")


@pytest.fixture(scope="module")
async def url(platform: RunningPlatform) -> AsyncIterator[str]:
    async with platform.listening() as url:
        yield url


@pytest.fixture
def journal(platform: RunningPlatform, settings: Settings) -> Journal:
    """Return the content of the platform's journal."""
    return Journal(platform.installed.url, settings.gatehouse_home / "journal")


def everything_stored(platform: RunningPlatform) -> str:
    tables = platform.sql("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    return "\n".join(
        str(row) for (table,) in tables for row in platform.sql(f'SELECT row_to_json(t)::text FROM "{table}" t')
    )


@pytest.mark.parametrize("action", ["log_only", "redact", "prompt", "block"])
async def test_matched_text_appears_nowhere(
    platform: RunningPlatform,
    url: str,
    tenant: Tenant,
    journal: Journal,
    action: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    await platform.add_provider(tenant.id, "sandbox", "sandbox", "echo", "cut", "status-503", max_retries=0)
    rule = {"detector_name": "cards", "detector_type": "regex", "entity_type": "credit_card", "action_tier": action}
    assert (await tenant.admin.client.post("/api/admin/dlp-rules/", json=rule)).status_code == 201
    # The sample is stored sealed.
    assert (await tenant.admin.client.put("/api/v1/admin/org/dlp-sampling", json={"share": 1})).status_code == 200
    await platform.refresh()
    key = await platform.new_key(tenant.admin)
    answers = []
    async with httpx2.AsyncClient(base_url=url, headers={"X-API-Key": key}, timeout=60) as http:
        for model in ("echo", "cut", "status-503", "absent"):
            for stream in (False, True):
                body: dict[str, Any] = {
                    "model": f"sandbox/{model}",
                    "stream": stream,
                    "messages": [{"role": "user", "content": f"my card is {CARD}"}],
                }
                answer = await http.post("/v1/chat/completions", json=body)
                if not (action == "log_only" and model in {"echo", "cut"}):
                    answers.append(answer.text)
        scanned = await http.post("/v1/scan", json={"text": f"my card is {CARD}"})
        if action != "log_only":
            answers.append(scanned.text)
    evaluated = await tenant.admin.client.post(
        "/api/admin/dlp-rules/evaluate", json={"text": f"my card is {CARD}", "org_id": str(tenant.id)}
    )
    answers.append(json.dumps(evaluated.json()["decision_trace"]))
    await journal.drain()
    metrics = (await platform.anonymous.get("/metrics")).text
    logs = "".join(capfd.readouterr())
    for trace in TRACES:
        for name, place in (("answers", "".join(answers)), ("database", everything_stored(platform)),
                            ("metrics", metrics), ("logs", logs)):  # fmt: skip
            assert trace not in place, name
    counted = platform.sql("SELECT count(*) FROM dlp_events WHERE tenant_id = %s", [tenant.id])
    assert counted[0][0] >= 8
