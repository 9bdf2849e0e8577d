"""The export of the audit log by the administration API, and its upload to the platform by the command line."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
import pytest
from tests.support.commands import run_command
from tests.support.outpost_server import OutpostServer, Trust, stored, until, verified

EXPORT, CONFIRM = "/admin/audit/export", "/admin/audit/export/confirm"


@pytest.fixture(scope="module")
def outpost(trust: Trust) -> Iterator[OutpostServer]:
    """Yields an outpost without a connection to the platform, so that its records stay in the journal."""
    with OutpostServer(trust) as running:
        until((running.home / "outpost/bundle.jws").exists)
        running.kill()
        running.environment["PLATFORM_MANAGEMENT_URL"] = "http://127.0.0.1:9"
        running.start()
        running.wait()
        yield running


def exported(operator: httpx2.Client, **options: str) -> list[dict[str, Any]]:
    answer = operator.get(EXPORT, params=options)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/x-ndjson"
    return [json.loads(line) for line in answer.text.splitlines()]


def through(line: dict[str, Any]) -> str:
    return f"{line['journal_id']}:{line['sequence']}"


def requests(lines: list[dict[str, Any]]) -> list[str]:
    return [line["request_id"] for line in lines if line["type"] == "outcome"]


def request_ids_of(outpost: OutpostServer, count: int) -> list[str]:
    answers = [outpost.ask() for _ in range(count)]
    assert {answer.status_code for answer in answers} == {200}
    return [answer.headers["x-request-id"] for answer in answers]


def hand_in(outpost: OutpostServer, *files: Path) -> subprocess.CompletedProcess[str]:
    """Uploads the file from a machine that can reach the platform."""
    environment = {
        "PATH": os.environ["PATH"],
        "OUTPOST_ID": str(outpost.id),
        "PLATFORM_MANAGEMENT_URL": outpost.trust.server.url,
        "TLS_CERT_PATH": str(outpost.certificate),
        "TLS_KEY_PATH": str(outpost.key),
    }
    return run_command("outpost", "hand-in", *map(str, files), environment=environment)


def test_exported_records_are_stored_at_the_platform_once(
    outpost: OutpostServer, operator: httpx2.Client, trust: Trust, tmp_path: Path
) -> None:
    first = request_ids_of(outpost, 5)
    text = operator.get(EXPORT).content
    lines = exported(operator)
    assert requests(lines) == first
    assert {line["handed_in"] for line in lines} == {False}
    assert lines[0].items() >= {"provider": "sandbox", "model_id": "echo", "outcome": "success", "status": 200}.items()
    (tmp_path / "first.jsonl").write_bytes(text)
    answer = operator.post(CONFIRM, json={"through": through(lines[-1])})
    assert (answer.status_code, answer.json()["released"]) == (200, 5)
    assert "outpost.audit_confirmed" in outpost.log

    # The process ends, which ends its journal.
    outpost.kill(signal.SIGKILL)
    outpost.start()
    outpost.wait()
    second = request_ids_of(outpost, 3)
    remaining = exported(operator, after=through(lines[-1]))
    assert requests(remaining) == second
    assert requests(exported(operator, unsent="true")) == second
    assert requests(exported(operator)) == first + second
    (tmp_path / "second.jsonl").write_bytes(operator.get(EXPORT, params={"unsent": True}).content)

    missing = hand_in(outpost, tmp_path / "second.jsonl")
    assert (missing.returncode, "the platform needs 1 first" in missing.stderr) == (1, True), missing
    # The end of the first journal is also an entry.
    for new in (9, 0):
        process = hand_in(outpost, tmp_path / "first.jsonl", tmp_path / "second.jsonl")
        assert process.returncode == 0, process.stderr
        assert sum(map(int, re.findall(r"(\d+) of them new", process.stdout))) == new
        assert stored(trust, outpost) == first + second
    assert "the chain is whole" in verified(trust)


def test_confirmed_records_are_not_uploaded_again_when_the_platform_is_reachable(
    outpost: OutpostServer, operator: httpx2.Client, trust: Trust
) -> None:
    before = stored(trust, outpost)
    outpost.kill()
    outpost.environment["PLATFORM_MANAGEMENT_URL"] = trust.server.url
    outpost.start()
    outpost.wait()
    more = request_ids_of(outpost, 2)
    until(lambda: len(stored(trust, outpost)) == len(before) + 2)
    assert stored(trust, outpost) == before + more
    assert operator.get("/admin/api/status").json()["journal"]["rejected"] == 0


@pytest.mark.parametrize("wrong", ["", "x", f"{uuid4()}", f"{uuid4()}:0", f"{uuid4()}:-1", f"{uuid4()}:1"])
def test_an_invalid_position_is_named(operator: httpx2.Client, wrong: str) -> None:
    answer = operator.post(CONFIRM, json={"through": wrong})
    assert (answer.status_code, "through" in answer.text) == (422, True)
    if not wrong.endswith(":1"):
        answer = operator.get(EXPORT, params={"after": wrong})
        assert (answer.status_code, "after" in answer.text) == (422, True)


@pytest.mark.parametrize("text", ["", "no line\n", '{"journal_id":1}\n'])
def test_a_file_that_is_not_an_audit_log_is_reported_with_the_line(
    outpost: OutpostServer, tmp_path: Path, text: str
) -> None:
    (tmp_path / "file").write_text(text)
    process = hand_in(outpost, tmp_path / "file")
    assert process.returncode == (1 if text else 0)
    assert ("line 1 is not a line of an audit log" in process.stderr) == bool(text)
