"""The models of DLP's tiers are loaded before a rule that needs them is active, and before a worker is ready."""

import httpx2
from tests.support.server import GatehouseServer

RULES = [
    {"detector_name": "People", "detector_type": "ner", "entity_type": "person", "action_tier": "redact"},
    {
        "detector_name": "Attacks", "detector_type": "llm", "entity_type": "prompt_injection",
        "action_tier": "log_only", "config_json": {"labels": ["prompt_injection"]},
    },
]  # fmt: skip


def test_the_first_request_after_a_rule_and_after_a_restart_is_answered() -> None:
    # Loading a model takes longer than this; a loaded model answers faster.
    with GatehouseServer(workers=2, env={"DLP_TIER_TIMEOUT_MS": "800"}) as server:
        headers = {"Authorization": f"Bearer {server.key}"}
        server.settled()
        for rule in RULES:
            answer = httpx2.post(f"{server.url}/api/admin/dlp-rules/", json=rule, headers=headers, timeout=60)
            assert answer.status_code == 201, answer.text
            assert "X-Gateway-Warning" not in answer.headers
        assert scan_statuses(server) == [200] * 6
        assert server.stop() == 0
        server.start()
        assert scan_statuses(server) == [200] * 6


def scan_statuses(server: GatehouseServer) -> list[int]:
    """Return the statuses of scans. No connection is kept, so that both workers get some."""
    statuses = []
    for number in range(6):
        body = {
            "model": "sandbox/echo",
            "messages": [{"role": "user", "content": f"Rain in Rome, day {number}"}],
        }
        headers = {"Authorization": f"Bearer {server.key}"}
        answer = httpx2.post(f"{server.url}/v1/chat/completions", json=body, headers=headers, timeout=60)
        statuses.append(answer.status_code)
    return statuses
