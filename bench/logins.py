"""Measures the effect of many sign-ins on the gateway: the p99 of calls without and with 50 parallel logins.

    .venv/bin/python bench/logins.py
    .venv/bin/python bench/logins.py --seconds 5 --users 100

One worker with the embedded PostgreSQL. A probe calls the sandbox model at a constant rate, even if answers are slow.
It runs without logins and then with parallel logins. The exit status is 1 if the p99 more than doubles.
"""

import argparse
import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import aiohttp

PASSWORD = "correct horse battery staple"
ADMIN = "root@gatehouse.test"
CALL = {"model": "sandbox/echo", "messages": [{"role": "user", "content": "hello"}]}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parallel", type=int, default=50, help="sign-ins at once")
    parser.add_argument("--seconds", type=float, default=10, help="of each of the phases")
    parser.add_argument("--rounds", type=int, default=3, help="of idle, then logins")
    parser.add_argument("--pace", type=float, default=100, help="calls per second")
    parser.add_argument("--users", type=int, default=100, help="each signs in ten times a minute at most")
    options = parser.parse_args()
    # On SIGTERM, the benchmark also stops its platform.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    port = _free_port()
    with tempfile.TemporaryDirectory(prefix="gl", dir="/tmp", ignore_cleanup_errors=True) as home:
        server = _serve(Path(home), port)
        try:
            return asyncio.run(_measured(f"http://127.0.0.1:{port}", options))
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(30)


def _serve(home: Path, port: int) -> subprocess.Popen[bytes]:
    limits = {"/api/auth/login": 10_000_000}
    env = {
        **os.environ,
        "GATEHOUSE_HOME": str(home),
        "GATEHOUSE_ADMIN_EMAIL": ADMIN,
        "GATEHOUSE_ADMIN_PASSWORD": PASSWORD,
        "RATE_LIMIT_REQUESTS_PER_MINUTE": "10000000",
        "RATE_LIMIT_ADMIN_RPM": "10000000",
        "RATE_LIMIT_TIERS": json.dumps(limits),
        "LOG_LEVEL": "error",
    }
    command = [str(Path(sys.executable).parent / "gatehouse"), "serve", "platform", "--port", str(port)]
    return subprocess.Popen([*command, "--workers", "1"], env=env, stdout=subprocess.DEVNULL)


async def _measured(base: str, options: argparse.Namespace) -> int:
    async with aiohttp.ClientSession(base, connector=aiohttp.TCPConnector(limit=0)) as http:
        await _ready(http)
        token = (await _sign_in(http, ADMIN))[1]
        admin = {"Authorization": f"Bearer {token}"}
        users = await _users(http, admin, max(options.users, options.parallel))
        async with http.post("/api/auth/api-keys", json={"description": "bench"}, headers=admin) as answer:
            key = {"Authorization": f"Bearer {(await answer.json())['api_key']}"}
        await _probe(http, key, 2, options.pace)
        idle, busy, statuses = [], [], []
        for _ in range(options.rounds):
            idle += await _probe(http, key, options.seconds, options.pace)
            stop = asyncio.Event()
            people = [
                asyncio.create_task(_sign_in_again(http, users[n :: options.parallel], stop))
                for n in range(options.parallel)
            ]
            busy += await _probe(http, key, options.seconds, options.pace)
            stop.set()
            for item in await asyncio.gather(*people):
                statuses += item
    return _report(idle, busy, statuses, options)


def _report(idle: list[float], busy: list[float], statuses: list[int], options: argparse.Namespace) -> int:
    seconds = options.seconds * options.rounds
    print(f"{'':24}{'calls':>8}{'p50 ms':>10}{'p99 ms':>10}")
    for name, milliseconds in (("idle", idle), (f"{options.parallel} parallel logins", busy)):
        print(
            f"{name:24}{len(milliseconds):8}{_percentile(milliseconds, 50):10.2f}{_percentile(milliseconds, 99):10.2f}"
        )
    ratio = _percentile(busy, 99) / _percentile(idle, 99)
    counts = {status: statuses.count(status) for status in sorted(set(statuses))}
    print(f"p99 ratio {ratio:.2f} (goal: under 2); logins per second {len(statuses) / seconds:.0f}, by status {counts}")
    return 0 if ratio < 2 else 1


async def _ready(http: aiohttp.ClientSession) -> None:
    for _ in range(600):
        try:
            async with http.get("/api/health/ready") as answer:
                if answer.status == 200:
                    return
        except aiohttp.ClientError:
            pass
        await asyncio.sleep(0.1)
    raise SystemExit("the platform was not ready within a minute")


async def _users(http: aiohttp.ClientSession, admin: dict[str, str], count: int) -> list[str]:
    emails = [f"bench-{n}@gatehouse.test" for n in range(count)]
    for email in emails:
        body = {"email": email, "password": PASSWORD}
        async with http.post("/api/admin/users", json=body, headers=admin) as answer:
            answer.raise_for_status()
    return emails


async def _sign_in(http: aiohttp.ClientSession, email: str) -> tuple[int, str | None]:
    async with http.post("/api/auth/login", json={"email": email, "password": PASSWORD}) as answer:
        return answer.status, (await answer.json()).get("access_token")


async def _sign_in_again(http: aiohttp.ClientSession, emails: list[str], stop: asyncio.Event) -> list[int]:
    statuses: list[int] = []
    while not stop.is_set():
        status, _ = await _sign_in(http, emails[len(statuses) % len(emails)])
        statuses.append(status)
    return statuses


async def _probe(http: aiohttp.ClientSession, key: dict[str, str], seconds: float, pace: float) -> list[float]:
    """Return the milliseconds of each call, counted from the time at which the call was due."""
    began, tasks = time.perf_counter(), []
    for n in range(int(seconds * pace)):
        due = began + n / pace
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        tasks.append(asyncio.create_task(_call(http, key, due)))
    return list(await asyncio.gather(*tasks))


async def _call(http: aiohttp.ClientSession, key: dict[str, str], due: float) -> float:
    async with http.post("/v1/chat/completions", json=CALL, headers=key) as answer:
        answer.raise_for_status()
        await answer.read()
    return (time.perf_counter() - due) * 1000


def _percentile(values: list[float], percent: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


if __name__ == "__main__":
    sys.exit(main())
