"""An outpost's records on the platform: once each and in order, whoever dies or is away meanwhile."""

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.support.outpost_server import OutpostServer, Trust, asking

#: The outpost's ends by kill -9 (20 prove more), and the requests of a day without the platform (100,000).
KILLS = int(os.environ.get("OUTPOST_KILLS", "4"))
AWAY = int(os.environ.get("OUTPOST_AWAY_REQUESTS", "3000"))
PATIENCE = 60 + AWAY / 100


def until(condition: Callable[[], Any], seconds: float = 60) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found


def stored(trust: Trust, outpost: OutpostServer) -> list[str]:
    """Request ids of the outpost's records, in the chain's order."""
    rows = trust.server.sql(
        "SELECT request_id FROM audit_events WHERE action = 'gateway.request' AND details->>'outpost_id' = %s"
        " ORDER BY sequence",
        [str(outpost.id)],
    )
    return [request_id for (request_id,) in rows]


def usage(trust: Trust, requests: list[str]) -> list[tuple[str, str]]:
    rows = trust.server.sql("SELECT request_id, status FROM usage_records WHERE request_id = ANY(%s)", [requests])
    return [tuple(row) for row in rows]


def verified(trust: Trust) -> str:
    import subprocess
    import sys

    command = [sys.executable, "-P", "-m", "gatehouse", "audit", "verify"]
    done = subprocess.run(command, env=trust.server.env, cwd=trust.server.home, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()
    return done.stdout.decode()


def journal(outpost: OutpostServer) -> int:
    return sum(path.stat().st_size for path in (outpost.home / "outpost/journal").rglob("*.log"))


class Callers:
    """Ask until `stop`; `answered` are the requests whose answers were complete, `asked` all."""

    def __init__(self, outpost: OutpostServer, count: int = 4) -> None:
        self.answered: list[str] = []
        self.asked: list[str] = []
        self._outpost = outpost
        self._ended = threading.Event()
        self._pool = ThreadPoolExecutor(count)
        self._calls = [self._pool.submit(self._call, number) for number in range(count)]

    def stop(self) -> None:
        self._ended.set()
        for call in self._calls:
            call.result(60)
        self._pool.shutdown()

    def _call(self, caller: int) -> None:
        number = 0
        with self._outpost.client() as client:
            while not self._ended.is_set():
                number += 1
                request_id = f"{self._outpost.id.hex[:8]}-{caller}-{number}"
                self.asked.append(request_id)
                stream = number % 3 == 0
                try:
                    answer = client.post(
                        "/v1/chat/completions",
                        json=asking("Hello", stream=stream),
                        headers={"X-Request-Id": request_id},
                    )
                except httpx2.HTTPError:
                    time.sleep(0.01)
                    continue
                if answer.status_code == 200 and (not stream or "data: [DONE]" in answer.text):
                    self.answered.append(request_id)


def test_requests_are_the_platform_s_records_within_seconds(trust: Trust, outpost: OutpostServer) -> None:
    for _ in range(3):
        assert outpost.ask().status_code == 200
    until(lambda: len(stored(trust, outpost)) == 3)
    status = outpost.admin().get("/admin/api/status").json()
    assert status["journal"]["handed_in"] >= 3
    assert status["journal"]["fault"] is None


def test_kill_9_loses_no_complete_answer_and_doubles_none(trust: Trust) -> None:
    with OutpostServer(trust) as outpost:
        callers = Callers(outpost)
        for round_ in range(KILLS):
            answers = len(callers.answered)
            until(lambda answers=answers: len(callers.answered) > answers + 50)
            outpost.kill(signal.SIGKILL)
            outpost.start()
            outpost.wait()
            assert round_ >= 0
        callers.stop()
        # What a kill has interrupted is recorded too, so there may be more than what was answered.
        until(lambda: set(callers.answered) <= set(stored(trust, outpost)))
        until(lambda: not [path for path in (outpost.home / "outpost/journal").glob("*-*")][1:])
        found = usage(trust, callers.asked)
        assert len(found) == len({request_id for request_id, _ in found})
        assert {request_id for request_id, _ in found} >= set(callers.answered)
        succeeded = {request_id for request_id, outcome in found if outcome == "success"}
        assert succeeded >= set(callers.answered)
        # Streams that were cut off have ended, as the platform sees it.
        assert trust.server.sql("SELECT 1 FROM open_streams") == []
        assert "the chain is whole" in verified(trust)
