"""An organization's own patterns on a real server: a long secret in a request and in its answer."""

from collections.abc import Iterator

import httpx2
import openai
import pytest
from tests.support.server import GatehouseServer

RULES = "/api/admin/dlp-rules/"
SECRET = "BEGIN SECRET " + "abc" * 700 + " END SECRET"


@pytest.fixture(scope="module")
def server() -> Iterator[GatehouseServer]:
    with GatehouseServer() as running:
        yield running


@pytest.fixture
def admin(server: GatehouseServer) -> Iterator[httpx2.Client]:
    headers = {"Authorization": f"Bearer {server.key}"}
    with httpx2.Client(base_url=server.url, headers=headers, timeout=60) as client:
        yield client


@pytest.fixture
def rule(admin: httpx2.Client) -> Iterator[str]:
    body = {
        "detector_name": "Secrets", "detector_type": "regex", "entity_type": "own_secret", "action_tier": "redact",
        "config_json": {"pattern": r"BEGIN SECRET[\s\S]+?END SECRET"},
    }  # fmt: skip
    answer = admin.post(RULES, json=body)
    assert answer.status_code == 201, answer.text
    assert answer.json()["stream_max_length"] == 4096
    yield f"{RULES}{answer.json()['id']}"
    assert admin.delete(f"{RULES}{answer.json()['id']}").status_code == 204


def test_a_long_secret_is_redacted_and_blocked(admin: httpx2.Client, rule: str) -> None:
    body = {"model": "sandbox/echo", "messages": [{"role": "user", "content": f"Keep {SECRET}."}]}
    answer = admin.post("/v1/chat/completions", json=body)
    assert (answer.status_code, answer.headers["x-dlp-action"]) == (200, "REDACT")
    assert answer.json()["choices"][0]["message"]["content"] == "Keep [OWN_SECRET_1]."
    assert admin.put(rule, json={"action_tier": "block"}).status_code == 200
    assert admin.post("/v1/chat/completions", json=body).status_code == 403


def test_a_long_match_is_redacted_in_a_stream(server: GatehouseServer, admin: httpx2.Client, rule: str) -> None:
    assert admin.put(rule, json={"config_json": {"pattern": r"chunk-2 [\s\S]+? chunk-40"}}).status_code == 200
    client = openai.OpenAI(base_url=f"{server.url}/v1", api_key=server.key)
    stream = client.chat.completions.create(
        model="sandbox/stream-50", messages=[{"role": "user", "content": "Go on."}], stream=True
    )
    text = "".join(piece.choices[0].delta.content or "" for piece in stream if piece.choices)
    assert "chunk-3 " not in text
    assert "chunk-1 [OWN_SECRET_1] chunk-41 " in text
