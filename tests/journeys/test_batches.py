"""A batch continues after its processes were killed, and after an orderly restart (docs/batches.md)."""

import json
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from tests.support.server import GatehouseServer

LINES = 60
TIMEOUT_SECONDS = 120.0

#: The lease of the killed process must end first.
pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def server() -> Iterator[GatehouseServer]:
    with GatehouseServer(env={"BATCH_CONCURRENCY": "4"}) as server:
        yield server


@pytest.fixture
def client(server: GatehouseServer) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key=server.key, max_retries=5) as client:
        yield client


def begun(client: openai.OpenAI) -> Any:
    """Return a batch some of whose lines have ended."""
    body = {"model": "sandbox/slow-200ms", "messages": [{"role": "user", "content": "Hello"}]}
    entry = {"method": "POST", "url": "/v1/chat/completions", "body": body}
    content = "\n".join(json.dumps({"custom_id": f"c{number}", **entry}) for number in range(LINES)).encode()
    file = client.files.create(file=("calls.jsonl", content), purpose="batch")
    batch = client.batches.create(input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h")
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while client.batches.retrieve(batch.id).request_counts.completed < 10:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return batch


def ended(client: openai.OpenAI, batch_id: str) -> Any:
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while (batch := client.batches.retrieve(batch_id)).status != "completed":
        assert time.monotonic() < deadline, batch
        time.sleep(0.5)
    return batch


def recorded(server: GatehouseServer, batch_id: str, least: int) -> Counter[str]:
    """Return the number of usage records by request id, once there are at least so many records."""
    deadline = time.monotonic() + 60
    while True:
        rows = server.sql("SELECT request_id FROM usage_records WHERE request_id LIKE %s", [f"{batch_id}-%"])
        if len(rows) >= least:
            return Counter(row[0] for row in rows)
        assert time.monotonic() < deadline, len(rows)
        time.sleep(0.2)


def parsed(client: openai.OpenAI, file_id: str | None) -> list[Any]:
    return [] if file_id is None else [json.loads(line) for line in client.files.content(file_id).text.splitlines()]


def test_after_sigkill_no_line_runs_twice_and_lines_in_progress_are_reported(
    server: GatehouseServer, client: openai.OpenAI
) -> None:
    batch = begun(client)
    server.kill()
    running = {row[0] for row in server.sql("SELECT custom_id FROM batch_lines WHERE status = 'running'")}
    # Four lines run at the same time.
    assert 0 < len(running) <= 4
    server.start()
    batch = ended(client, batch.id)
    assert batch.request_counts.total == LINES
    results, errors = parsed(client, batch.output_file_id), parsed(client, batch.error_file_id)
    assert {entry["custom_id"] for entry in results + errors} == {f"c{number}" for number in range(LINES)}
    assert len(results) + len(errors) == LINES
    assert {entry["custom_id"] for entry in errors} == running
    assert {entry["error"]["code"] for entry in errors} == {"line_interrupted"}
    records = recorded(server, batch.id, len(results))
    assert set(records.values()) == {1}
    assert {entry["response"]["request_id"] for entry in results} <= set(records)


def test_an_orderly_restart_interrupts_no_line(server: GatehouseServer, client: openai.OpenAI) -> None:
    batch = begun(client)
    server.stop()
    server.start()
    batch = ended(client, batch.id)
    assert (batch.request_counts.completed, batch.request_counts.failed) == (LINES, 0)
    assert recorded(server, batch.id, LINES) == Counter(f"{batch.id}-{number}" for number in range(1, LINES + 1))
