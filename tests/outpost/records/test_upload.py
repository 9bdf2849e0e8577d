"""Records of an outpost are stored at the platform once and in order, even if processes are killed or unavailable."""

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
from tests.support.outpost_server import OutpostServer, Trust, chat_body, stored, until, verified

#: The number of kills of the outpost (20 in a long test).
KILLS = int(os.environ.get("OUTPOST_KILLS", "4"))
#: The number of requests while the platform is unavailable (100,000 in a long test).
AWAY = int(os.environ.get("OUTPOST_AWAY_REQUESTS", "3000"))
WAIT_SECONDS = 60 + AWAY / 100


def usage(trust: Trust, requests: list[str]) -> list[tuple[str, str]]:
    rows = trust.server.sql("SELECT request_id, status FROM usage_records WHERE request_id = ANY(%s)", [requests])
    return [tuple(row) for row in rows]


def journal(outpost: OutpostServer) -> int:
    return sum(path.stat().st_size for path in (outpost.home / "outpost/journal").rglob("*.log"))


class Callers:
    """Sends requests until `stop`. `answered` contains the requests with a complete response, and `asked` contains all
    requests."""

    def __init__(self, outpost: OutpostServer, count: int = 4) -> None:
        self.answered: list[str] = []
        self.request_ids: list[str] = []
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
                self.request_ids.append(request_id)
                stream = number % 3 == 0
                try:
                    answer = client.post(
                        "/v1/chat/completions",
                        json=chat_body("Hello", stream=stream),
                        headers={"X-Request-Id": request_id},
                    )
                except httpx2.HTTPError:
                    time.sleep(0.01)
                    continue
                if answer.status_code == 200 and (not stream or "data: [DONE]" in answer.text):
                    self.answered.append(request_id)
                time.sleep(0.01)


def test_records_of_requests_are_uploaded_within_seconds(trust: Trust, outpost: OutpostServer) -> None:
    for _ in range(3):
        assert outpost.ask().status_code == 200
    until(lambda: len(stored(trust, outpost)) == 3)
    # The outpost counts the records when the platform's answer arrives, which is after they are stored.
    until(lambda: outpost.admin().get("/admin/api/status").json()["journal"]["handed_in"] >= 3)
    assert outpost.admin().get("/admin/api/status").json()["journal"]["fault"] is None


def test_kill_9_loses_and_duplicates_no_complete_response(trust: Trust) -> None:
    with OutpostServer(trust) as outpost:
        callers = Callers(outpost)
        for _ in range(KILLS):
            target = len(callers.answered) + 50
            until(lambda target=target: len(callers.answered) > target)  # type: ignore[misc]
            outpost.kill(signal.SIGKILL)
            outpost.start()
            outpost.wait()
        callers.stop()
        # Requests that a kill interrupted are also recorded, so there may be more records than complete responses.
        until(lambda: set(callers.answered) <= set(stored(trust, outpost)))
        until(lambda: len(list((outpost.home / "outpost/journal").glob("*-*"))) == 1)
        usage_rows = usage(trust, callers.request_ids)
        assert len(usage_rows) == len({request_id for request_id, _ in usage_rows})
        assert {request_id for request_id, _ in usage_rows} >= set(callers.answered)
        succeeded = {request_id for request_id, outcome in usage_rows if outcome == "success"}
        assert succeeded >= set(callers.answered)
        # The platform has no open stream: the interrupted streams were recorded as ended.
        assert trust.server.sql("SELECT 1 FROM open_streams") == []
        assert "the chain is whole" in verified(trust)


def test_the_records_of_a_day_without_the_platform_are_uploaded_afterwards(trust: Trust) -> None:
    with OutpostServer(trust) as outpost:
        assert outpost.ask().status_code == 200
        until(lambda: len(stored(trust, outpost)) == 1)
        trust.server.kill()
        try:
            callers = Callers(outpost)
            until(lambda: len(callers.answered) >= AWAY, WAIT_SECONDS)
            callers.stop()
            assert callers.answered == callers.request_ids or set(callers.answered) == set(callers.request_ids)
            assert journal(outpost) < 2_000 * len(callers.answered)
            # One byte of one record is damaged. A stream has two entries, and the first of them is not a record.
            spoilt = next(item for item in callers.answered[AWAY // 100 :] if int(item.rpartition("-")[2]) % 3)
            (segment, *_) = sorted((outpost.home / "outpost/journal").glob("*-*/*.log"))
            with segment.open("r+b") as file:
                content = file.read()
                damaged = content.index(spoilt.encode())
                file.seek(damaged)
                file.write(b"\0")
        finally:
            trust.server.start()
        until(lambda: len(stored(trust, outpost)) >= len(callers.answered), WAIT_SECONDS)
        records = stored(trust, outpost)[1:]
        assert len(records) == len(set(records)) == len(callers.answered) - 1
        assert set(records) == set(callers.answered) - {spoilt}
        # The records are in order, because each caller sent its requests one after the other.
        for caller in range(4):
            numbers = [int(record.rpartition("-")[2]) for record in records if record.split("-")[1] == str(caller)]
            assert numbers == sorted(numbers)
        ((reason, details),) = trust.server.sql(
            "SELECT reason, details FROM audit_events WHERE action = 'outpost.records_lost' AND resource_id = %s",
            [str(outpost.id)],
        )
        assert (reason, details["bytes"] > 100) == ("damaged", True)
        text = verified(trust)
        assert "the chain is whole" in text
        assert f"of outpost {outpost.id}" in text
        assert outpost.admin().get("/admin/api/status").json()["journal"]["lost"] == 1


def test_a_full_journal_refuses_requests_and_loses_none(trust: Trust) -> None:
    with OutpostServer(trust, JOURNAL_MAX_BYTES=str(1024**2)) as outpost:
        until((outpost.home / "outpost/bundle.jws").exists)
        outpost.kill()
        outpost.environment["PLATFORM_MANAGEMENT_URL"] = "http://127.0.0.1:9"
        outpost.start()
        outpost.wait()
        callers = Callers(outpost)
        until(lambda: httpx2.get(outpost.url + "/api/health/ready").status_code == 503)
        callers.stop()
        refused = outpost.ask()
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "journal_full")
        assert journal(outpost) <= 1024**2
        outpost.kill()
        outpost.environment["PLATFORM_MANAGEMENT_URL"] = trust.server.url
        outpost.start()
        until(lambda: set(callers.answered) <= set(stored(trust, outpost)))
        # Uploaded records free space.
        outpost.wait()
        assert outpost.ask().status_code == 200


def test_a_platform_restored_from_a_backup_receives_the_missing_records(trust: Trust) -> None:
    """The platform's tables are reset to an earlier state, as after a restore from a backup."""
    with OutpostServer(trust) as outpost, outpost.admin() as operator:
        back = "UPDATE outpost_positions SET sequence = sequence - 3 WHERE outpost_id = %s"

        def status() -> Any:
            return operator.get("/admin/api/status").json()["journal"]

        def ask_until_stored(count: int) -> None:
            for _ in range(5):
                assert outpost.ask().status_code == 200
            until(lambda: len(stored(trust, outpost)) == count)

        ask_until_stored(5)
        trust.server.sql(back, [outpost.id])
        # The platform still has these records and reports it, so no record is stored twice.
        ask_until_stored(10)
        assert (status()["rejected"], status()["lost"]) == (3, 0)
        # Records that are no longer stored cannot be sent again. The other records are sent, and the chain names the
        # gap.
        until((outpost.home / "outpost/audit/00000001.jsonl").exists)
        (outpost.home / "outpost/audit/00000001.jsonl").unlink()
        trust.server.sql(back, [outpost.id])
        ask_until_stored(15)
        assert (status()["rejected"], status()["lost"]) == (3, 3)
        ((reason, details),) = trust.server.sql(
            "SELECT reason, details FROM audit_events WHERE action = 'outpost.records_lost' AND resource_id = %s",
            [str(outpost.id)],
        )
        assert (reason, details["records"], details["sequence"]) == ("gone", 3, 1)
        ask_until_stored(20)


def test_without_the_stored_position_no_record_is_lost_or_duplicated(trust: Trust) -> None:
    with OutpostServer(trust) as outpost:
        for _ in range(3):
            assert outpost.ask().status_code == 200
        until(lambda: len(stored(trust, outpost)) == 3)
        outpost.kill(signal.SIGKILL)
        (outpost.home / "outpost/uploaded.json").write_bytes(b"{")
        outpost.start()
        outpost.wait()
        assert outpost.ask().status_code == 200
        until(lambda: len(stored(trust, outpost)) == 4)
