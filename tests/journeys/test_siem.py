"""Forwarding to a SIEM by real processes, also after kill -9."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.platform.operations.siem.conftest import TOKEN, Siem, parsed
from tests.support.platform import RunningPlatform, Tenant
from tests.support.receiver import Receiver, certificate
from tests.support.tools import tools_of

from gatehouse.platform.operations.siem.forwarding import Forwarding

EVENTS = 6_000
KILLS = 3


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with Receiver.listening() as listening:
        yield listening


@pytest.fixture
async def siem(
    platform: RunningPlatform, tenant: Tenant, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Siem]:
    host = platform.host
    receivers = receiver.trusted()
    monkeypatch.setattr(host, "receivers", receivers)
    platform.sql("UPDATE siem_targets SET enabled = false")
    yield Siem(platform, tenant, receiver, Forwarding(tools_of(host)))
    await receivers.close()


def worker(platform: RunningPlatform, home: Path) -> subprocess.Popen[bytes]:
    """`gatehouse worker`, as on a separate machine."""
    env = {
        "DATABASE_URL": platform.installed.url, "GATEHOUSE_HOME": str(home), "EGRESS_ALLOWLIST": "127.0.0.0/8",
        "GATEHOUSE_MASTER_KEY": (platform.host.settings.gatehouse_home / "master.key").read_text(),
        "SSL_CERT_FILE": str(certificate()), "PATH": "/usr/bin:/bin",
    }  # fmt: skip
    return subprocess.Popen([sys.executable, "-P", "-m", "gatehouse", "worker"], env=env, cwd=home)


async def test_every_event_arrives_in_order_although_the_forwarding_process_is_killed(
    siem: Siem, platform: RunningPlatform, tmp_path: Path
) -> None:
    await siem.begin(type="hec", url=siem.receiver.url, token=TOKEN)
    first = siem.stored_sequences()[-1]
    await siem.record(EVENTS // 2)
    process = worker(platform, tmp_path)
    try:
        for _ in range(KILLS):
            # The process is killed during its work: it has just received an answer and continues.
            await siem.receiver.until(len(siem.receiver.got) + 1, patience=120)
            process.kill()
            process.wait()
            await siem.record(EVENTS // 2 // KILLS)
            # End the lease of the dead process, so that the test need not wait for it.
            platform.sql("UPDATE siem_cursors SET due_at = now() WHERE tenant_id = %s", [siem.tenant.id])
            process = worker(platform, tmp_path)
        async with asyncio.timeout(180):
            while (await siem.status())["backlog"]:
                await asyncio.sleep(0.2)
    finally:
        process.kill()
        process.wait()
    batches = [[event["event"]["sequence"] for event in parsed(got.body)] for got in siem.receiver.got]
    everything = list(range(first, first + EVENTS + 1))
    # Apart from repeated events, each event was received once, and no batch begins after a gap.
    assert sorted({sequence for batch in batches for sequence in batch}) == everything
    reached = first - 1
    for batch in batches:
        assert batch == list(range(batch[0], batch[-1] + 1))
        assert batch[0] <= reached + 1
        reached = max(reached, batch[-1])
    ids = {event["event"]["id"] for got in siem.receiver.got for event in parsed(got.body)}
    assert len(ids) == len(everything)
