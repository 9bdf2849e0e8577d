"""The sliding window of rate limits in a real Redis (docs/rate-limits.md). Tests that are not about timeouts use a long
timeout, so that their result does not depend on the load of the machine."""

import asyncio
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import redis
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.support.redis import RedisServer
from tests.support.tasks import until_ended

from gatehouse.foundation.clock import SYSTEM_CLOCK
from gatehouse.foundation.counters.memory import MemoryCounters
from gatehouse.foundation.counters.script import Script
from gatehouse.foundation.counters.shared import RedisCounters
from gatehouse.foundation.redis.line import Address
from gatehouse.foundation.settings import BadSettings


@asynccontextmanager
async def counting(url: str, *, budget: float = 5.0, window: float = 60.0) -> AsyncIterator[RedisCounters]:
    counters = RedisCounters(url, MemoryCounters(window=window), SYSTEM_CLOCK, budget, window=window)
    await counters.start()
    try:
        yield counters
    finally:
        await counters.close()


async def until(true: Callable[[], bool]) -> None:
    for _ in range(1000):
        if true():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("never became true")


async def slowest(*takes: Awaitable[object]) -> float:
    async def timed(take: Awaitable[object]) -> float:
        began = time.monotonic()
        await take
        return time.monotonic() - began

    return max(await asyncio.gather(*map(timed, takes)))


_PROCESS = """
import asyncio, sys
from gatehouse.foundation.counters.memory import MemoryCounters
from gatehouse.foundation.counters.shared import RedisCounters

async def main():
    counters = RedisCounters(sys.argv[1], MemoryCounters(), timeout=20)
    await counters.start()
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    taken = await asyncio.gather(*[counters.take("user:a", 60) for _ in range(125)])
    print(sum(t.allowed for t in taken), counters.degraded_total)
    await counters.close()

asyncio.run(main())
"""


def test_of_500_takes_in_four_processes_exactly_the_limit_is_admitted(server: RedisServer) -> None:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen([sys.executable, "-c", _PROCESS, server.url], **pipes) for _ in range(4)]
    assert [p.stdout.readline() for p in processes] == ["ready\n"] * 4
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    results = [p.communicate(timeout=60)[0].split() for p in processes]
    assert sum(int(allowed) for allowed, _ in results) == 60
    assert [degraded for _, degraded in results] == ["0"] * 4


async def test_a_key_has_the_documented_form_in_redis_and_expires(server: RedisServer) -> None:
    async with counting(server.url) as counters:
        await counters.take("user:a", 60)
    assert sorted(server.client.keys()) == [b"rl:probe", b"rl:user:a"]
    assert 0 < server.client.pttl("rl:user:a") <= 61_000


async def test_remaining_reset_and_retry_after_are_those_of_the_memory_counter(server: RedisServer) -> None:
    async with counting(server.url) as counters:
        now = time.time()
        first, second, third = [await counters.take("user:a", 2) for _ in range(3)]
    assert [t.allowed for t in (first, second, third)] == [True, True, False]
    assert [t.rate.remaining for t in (first, second, third)] == [1, 0, 0]
    assert all(60 <= t.rate.reset - now <= 62 for t in (first, second, third))
    assert 59 <= third.retry_after <= 60


async def test_the_window_slides_and_a_refused_request_is_not_counted(server: RedisServer) -> None:
    admitted: list[float] = []
    async with counting(server.url, window=0.6) as counters:
        end = time.monotonic() + 2.0
        while time.monotonic() < end:
            before = time.monotonic()
            if (await counters.take("user:a", 5)).allowed:
                admitted.append(before)
            await asyncio.sleep(0.004)
        assert counters.degraded_total == 0
    assert len(admitted) >= 15
    # A request and the fifth one after it are at least a window apart. Redis reads its clock after `before`, so the
    # test allows a tolerance.
    assert all(later - earlier > 0.6 - 0.1 for earlier, later in zip(admitted, admitted[5:], strict=False))


async def test_either_all_claims_of_a_request_are_counted_or_none(server: RedisServer) -> None:
    async with counting(server.url) as counters:
        await counters.take("ip:a", 1)
        refused = await counters.take_all(("login:x", 2), ("ip:a", 1))
        passed = await counters.take_all(("login:x", 2), ("ip:b", 100))
    assert (refused.allowed, refused.claim, refused.rate.limit) == (False, 1, 1)
    assert (passed.allowed, passed.claim, passed.rate.remaining) == (True, 0, 1)


async def test_a_lowered_limit_is_refused_until_enough_requests_have_left(server: RedisServer) -> None:
    async with counting(server.url, window=12) as counters:
        for _ in range(4):
            await counters.take("user:a", 10)
            await asyncio.sleep(0.3)
        refused = await counters.take("user:a", 2)
        assert not refused.allowed
        # The third of four requests has to leave the window. It was sent 0.6 s after the first.
        assert (await counters.take("user:a", 4)).retry_after < refused.retry_after == 12


async def test_the_size_of_a_key_does_not_depend_on_its_limit(server: RedisServer) -> None:
    async with counting(server.url, window=0.6) as counters:
        for _ in range(3000):
            await counters.take("oauth:a", 10**6)
        assert counters.degraded_total == 0
    assert server.client.llen("rl:oauth:a") <= 601


async def test_flushed_scripts_are_loaded_again(server: RedisServer) -> None:
    async with counting(server.url) as counters:
        server.client.script_flush()
        assert (await counters.take("user:a", 60)).rate.remaining == 59
        assert (await counters.take("user:a", 60)).rate.remaining == 58
        assert counters.degraded_total == 0


async def test_without_redis_requests_are_counted_in_the_process() -> None:
    async with counting("redis://127.0.0.1:1/0") as counters:
        decisions = await asyncio.gather(*[counters.take("user:a", 60) for _ in range(100)])
        assert sum(t.allowed for t in decisions) == 60
        assert (counters.degraded, counters.degraded_total) == (1, 100)


async def test_a_paused_redis_delays_each_count_by_at_most_the_timeout_and_is_used_again(server: RedisServer) -> None:
    async with counting(server.url, budget=0.05) as counters:
        server.pause()
        # The limit is much longer than 50 ms, because the machine may be busy. Without a timeout, the calls would never
        # end.
        assert await slowest(*[counters.take("user:a", 60) for _ in range(200)]) < 1.0
        assert counters.degraded == 1
        assert await slowest(*[counters.take("user:a", 60) for _ in range(200)]) < 0.5
        assert counters.degraded_total == 400
        server.resume()
        await until(lambda: not counters.degraded)
        while not server.client.exists("rl:user:b"):
            await counters.take("user:b", 60)


async def test_no_request_fails_when_redis_is_killed_and_a_restarted_redis_is_used(server: RedisServer) -> None:
    async with counting(server.url) as counters:
        takes = [asyncio.create_task(counters.take(f"user:{n}", 60)) for n in range(300)]
        await asyncio.sleep(0)
        server.kill()
        takes += [asyncio.create_task(counters.take(f"user:{n}", 60)) for n in range(300)]
        assert all(t.allowed for t in await asyncio.gather(*takes))
        await until(lambda: counters.degraded == 1)
        server.start()
        await until(lambda: not counters.degraded)
        assert (await counters.take("user:a", 60)).rate.remaining == 59


async def test_a_read_only_redis_counts_as_unavailable(server: RedisServer) -> None:
    server.client.replicaof("127.0.0.1", 1)
    async with counting(server.url) as counters:
        assert (await counters.take("user:a", 60)).allowed
        assert (counters.degraded, counters.degraded_total) == (1, 1)
        server.client.replicaof("no", "one")
        await until(lambda: not counters.degraded)


async def test_a_server_that_is_not_redis_counts_as_unavailable() -> None:
    async def nonsense(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(nonsense, "127.0.0.1", 0) as listener:
        port = listener.sockets[0].getsockname()[1]
        async with counting(f"redis://127.0.0.1:{port}") as counters:
            assert (await counters.take("user:a", 60)).allowed
            assert counters.degraded_total == 1


async def test_a_password_and_a_database_are_used(server: RedisServer) -> None:
    server.client.config_set("requirepass", "s3cret/:")
    async with counting(f"unix://:s3cret%2F%3A@{server.socket}?db=3") as counters:
        await counters.take("user:a", 60)
        assert counters.degraded_total == 0
    assert redis.Redis(unix_socket_path=str(server.socket), password="s3cret/:", db=3).exists("rl:user:a")
    async with counting(f"unix://:wrong@{server.socket}") as counters:
        await counters.take("user:a", 60)
        assert counters.degraded_total == 1


def authority(folder: Path) -> tuple[Path, Path]:
    """A self-signed certificate for localhost, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    today = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(today - timedelta(days=1))
        .not_valid_after(today + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem, secret = folder / "cert.pem", folder / "key.pem"
    pem.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    secret.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain))
    return pem, secret


async def test_redis_over_tls_is_used_if_its_certificate_is_trusted(server: RedisServer, tmp_path: Path) -> None:
    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
        writer.close()

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = await asyncio.open_unix_connection(str(server.socket))
        await asyncio.gather(pump(reader, there[1]), pump(there[0], writer), return_exceptions=True)

    pem, secret = authority(tmp_path)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(pem, secret)
    async with await asyncio.start_server(forward, "localhost", 0, ssl=tls, family=socket.AF_INET) as listener:
        url = f"rediss://localhost:{listener.sockets[0].getsockname()[1]}"
        async with counting(f"{url}?ssl_ca_certs={pem}") as counters:
            await counters.take("user:a", 60)
            assert counters.degraded_total == 0
        async with counting(url) as counters:
            await counters.take("user:a", 60)
            assert counters.degraded_total == 1


async def test_a_cancelled_request_does_not_change_the_order_of_other_replies(server: RedisServer) -> None:
    async with counting(server.url) as counters:
        takes = [asyncio.create_task(counters.take(f"user:{n % 2}", 100 + n % 2)) for n in range(40)]
        await asyncio.sleep(0)
        for take in takes[::3]:
            take.cancel()
        results = await asyncio.gather(*takes, return_exceptions=True)
        for number, result in enumerate(results):
            if number % 3:
                assert result.rate.limit == 100 + number % 2


async def test_closing_leaves_no_task_behind(server: RedisServer) -> None:
    before = asyncio.all_tasks()
    async with counting(server.url):
        pass
    await until_ended(before)


@pytest.mark.parametrize(
    ("url", "host", "port", "database", "tls"),
    [
        ("redis://", "localhost", 6379, 0, False),
        ("redis://cache", "cache", 6379, 0, False),
        ("redis://:p@cache:7000/2", "cache", 7000, 2, False),
        ("rediss://u:p@[::1]:7000/?db=4", "::1", 7000, 4, True),
    ],
)
def test_redis_urls_are_parsed(url: str, host: str, port: int, database: int, tls: bool) -> None:
    address = Address.parse(url)
    assert (address.host, address.port, address.database, address.tls) == (host, port, database, tls)


@pytest.mark.parametrize("url", ["http://cache", "cache:6379", "redis://cache:x", "redis://cache/x", "unix://"])
def test_a_bad_address_names_the_setting_and_not_the_password(url: str) -> None:
    with pytest.raises(BadSettings, match="REDIS_URL: ") as caught:
        Address.parse(url.replace("//", "//:s3cret@"))
    assert "s3cret" not in str(caught.value)


def test_an_unencoded_password_is_not_shown() -> None:
    with pytest.raises(BadSettings, match="percent-encoded") as caught:
        Address.parse("redis://:s3c/ret@cache")
    assert "s3c" not in str(caught.value)


async def test_a_clock_set_back_frees_no_slot(server: RedisServer) -> None:
    """The script of this test reads a key instead of Redis's clock, because a test cannot set the clock."""
    script = Script(60.0).source.replace("redis.call('TIME')", "{redis.call('GET', 'clock'), 0}")
    assert "'GET', 'clock'" in script
    client = redis.Redis.from_url(server.url)

    def take(at: float, limit: int = 2) -> tuple[bool, float]:
        client.set("clock", repr(at))
        allowed, _, _, wait = client.eval(script, 1, "rl:set-back", limit)
        return bool(allowed), wait / 1_000_000

    assert [take(1000.0)[0], take(1010.0)[0]] == [True, True]
    # The clock is set back by an hour. The window does not move, so no client has to wait for an hour.
    allowed, wait = take(1010.0 - 3600)
    assert not allowed
    assert 0 < wait <= 60
    assert not take(1059.0)[0]
    assert take(1061.0)[0]
