"""Measures an outpost with many records: the cost of uploading records, the time of a restart after kill -9, and a day
without its platform.

.venv/bin/python -m bench.outpost [--requests 100000] [--kills 20]

The benchmark starts a platform and an outpost. The exit status is 1 if a goal is not reached or a record is missing.
"""

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from itertools import count
from pathlib import Path
from uuid import uuid4

import aiohttp
import httpx2
import psutil
from tests.support.journal import outcome
from tests.support.outpost_server import OutpostServer, Trust, chat_body
from tests.support.server import GatehouseServer

from gatehouse.engine.records.outcome import encode
from gatehouse.foundation.journal import JournalWriter
from gatehouse.outpost.records.log import AuditLog
from gatehouse.outpost.records.positions import OutpostRecords

CALLERS = 16
#: Maximum seconds from the start of the process to its first answer.
START_GOAL = 2.0
#: Maximum bytes of the journal per record.
BYTES_GOAL = 1_000
RECORDS = 100_000


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=100_000, help="answered while the platform is away")
    parser.add_argument("--kills", type=int, default=20)
    return parser.parse_args()


def cost() -> None:
    """Print the processor time per record of the work that does not belong to a request: reading, joining, and the
    audit log."""
    with tempfile.TemporaryDirectory() as made:
        folder, tenant = Path(made), uuid4()

        async def fill() -> None:
            writer = JournalWriter(folder / "journal")
            for number in range(RECORDS):
                safe = writer.append(encode(outcome(tenant)))
                if number % 100 == 99:
                    await safe
            await writer.close()

        asyncio.run(fill())
        records = OutpostRecords(folder, AuditLog(folder / "audit", max_bytes=100 * 1024**2, max_files=5))
        records.claim()
        spent = [0.0, 0.0, 0.0]
        while True:
            times = [time.thread_time()]
            batch = records.take()
            times.append(time.thread_time())
            if batch is None:
                break
            b",".join(batch.entries)
            times.append(time.thread_time())
            records.settle(batch)
            times.append(time.thread_time())
            spent = [memory + after - before for memory, before, after in zip(spent, times, times[1:], strict=False)]
        took = [f"{item / RECORDS * 1e6:.1f}" for item in spent]
        print(
            f"an uploaded record: {took[0]} us to read, {took[1]} us to join, {took[2]} us to write into the audit log"
        )


def starts(outpost: OutpostServer, kills: int) -> bool:
    took: list[float] = []
    spent: list[float] = []
    for _ in range(kills):
        outpost.kill()
        begun = time.monotonic()
        outpost.start()
        while True:
            try:
                if outpost.ask().status_code == 200:
                    break
            except httpx2.HTTPError:
                pass
        took.append(time.monotonic() - begun)
        assert outpost.process is not None
        times = psutil.Process(outpost.process.pid).cpu_times()
        spent.append(times.user + times.system)
    print(f"CPU time of a start: median {statistics.median(spent):.2f} s")
    print(f"kill -9 to the first answer: median {statistics.median(took):.2f} s, at most {max(took):.2f} s ({kills})")
    return statistics.median(took) <= START_GOAL


async def answered(outpost: OutpostServer, requests: int) -> list[str]:
    """Make requests, and return the ids of those that were answered."""
    ids: list[str] = []
    numbers = count()
    body = json.dumps(chat_body("Hello"))
    headers = {"Authorization": f"Bearer {outpost.trust.server.key}"}

    async def caller(session: aiohttp.ClientSession) -> None:
        while (number := next(numbers)) < requests:
            request_id = f"day-{outpost.id.hex[:8]}-{number}"
            async with session.post(
                outpost.url + "/v1/chat/completions", data=body, headers={**headers, "X-Request-Id": request_id}
            ) as answer:
                await answer.read()
                if answer.status == 200:
                    ids.append(request_id)

    async with aiohttp.ClientSession() as session:
        await asyncio.gather(*(caller(session) for _ in range(CALLERS)))
    return ids


def latencies(outpost: OutpostServer, requests: int) -> str:
    """Return the latencies of one caller, in milliseconds, as text."""
    took = []
    with outpost.client() as client:
        for _ in range(requests):
            begun = time.monotonic()
            client.post("/v1/chat/completions", json=chat_body("Hello"))
            took.append((time.monotonic() - begun) * 1000)
    took.sort()
    return f"p50 {took[len(took) // 2]:.1f} ms, p99 {took[len(took) * 99 // 100]:.1f} ms"


def day(server: GatehouseServer, outpost: OutpostServer, requests: int) -> bool:
    print(f"without an upload: {latencies(outpost, 500)}")
    server.kill()
    begun = time.monotonic()
    ids = asyncio.run(answered(outpost, requests))
    took = time.monotonic() - begun
    journal = sum(path.stat().st_size for path in (outpost.home / "outpost/journal").rglob("*.log"))
    print(
        f"without the platform: {len(ids)} of {requests} answered, {requests / took:.0f}/s;"
        f" journal {journal / 1024**2:.1f} MiB, {journal / max(1, len(ids)):.0f} bytes a record"
    )
    server.start()
    begun = time.monotonic()
    expected = "SELECT count(*), count(DISTINCT request_id) FROM usage_records WHERE request_id LIKE %s"
    print(f"during an upload: {latencies(outpost, 500)}")
    while True:
        ((rows, different),) = server.sql(expected, [f"day-{outpost.id.hex[:8]}-%"])
        if rows >= len(ids) or time.monotonic() - begun > 600:
            break
        time.sleep(0.2)
    took = time.monotonic() - begun
    print(f"after the platform is back: {rows} records, {different} different, in {took:.1f} s ({rows / took:.0f}/s)")
    return rows == different == len(ids) == requests and journal <= BYTES_GOAL * requests


def main() -> int:
    arguments = options()
    os.nice(5)
    cost()
    with GatehouseServer() as server, OutpostServer(Trust(server)) as outpost:
        outpost.ask()
        time.sleep(1)
        good = [starts(outpost, arguments.kills), day(server, outpost, arguments.requests)]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
