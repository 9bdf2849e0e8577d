"""The start and the stop of an outpost's parts."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from tests.support.outposts import Authority
from tests.support.stops import note_stops
from tests.support.tasks import until_ended

from gatehouse.foundation.journal.writer import JournalUnwritable
from gatehouse.outpost.host import OutpostHost
from gatehouse.outpost.settings import OutpostSettings

#: Nothing listens here.
CLOSED = "https://127.0.0.1:9"


@pytest.fixture
def silent() -> Iterator[str]:
    """Yields the address of a peer that accepts connections and answers nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"https://127.0.0.1:{listener.getsockname()[1]}"


@pytest.fixture
async def host(tmp_path: Path, silent: str) -> AsyncIterator[OutpostHost]:
    """Yields an outpost with every optional part, whose platform and portal cannot be reached."""
    authority, key = Authority(), ec.generate_private_key(ec.SECP256R1())
    files = {name: tmp_path / f"{name}.pem" for name in ("certificate", "key", "authorities")}
    files["certificate"].write_bytes(authority.issue(key).public_bytes(Encoding.PEM))
    files["key"].write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    files["authorities"].write_text(authority.pem)
    settings = OutpostSettings(
        gatehouse_home=tmp_path, outpost_id=uuid4(), platform_management_url=CLOSED, cloud_portal_url=CLOSED,
        tls_cert_path=files["certificate"], tls_key_path=files["key"], tls_ca_bundle=files["authorities"],
        outpost_peers=(silent,), siem_direct_type="file", siem_direct_url=(tmp_path / "siem.log").as_uri(),
    )  # fmt: skip
    made = OutpostHost(settings)
    yield made
    await made.stop()


def names(tasks: set[asyncio.Task[Any]]) -> set[str]:
    return {task.get_name() for task in tasks}


async def test_parts_are_stopped_in_reverse_order_of_their_start(
    host: OutpostHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = asyncio.all_tasks()
    parts = {
        "exporter.stop": host.metrics.exporter,
        "platform.close": host.platform,
        "receivers.close": host.receivers,
        # Stopped after the journal, because they forward its last records.
        "siem.stop": host.siem,
        "upload.stop": host.upload,
        "journal.close": host.journal,
        "outbound.close": host.outbound,
        "detection.stop": host.detection,
        "detectors.stop": host.detectors,
        "follower.stop": host.follower,
        "heartbeat.stop": host.heartbeat,
        "disk.stop": host.disk,
        "spend.stop": host.spend,
        "peers.stop": host.peers,
        "engine.stop": host.engine,
    }
    assert None not in parts.values()
    stopped = note_stops(monkeypatch, parts)
    await host.start()
    await host.stop()
    assert stopped == [*reversed(parts)]
    await until_ended(before)


async def test_peers_are_stopped(host: OutpostHost) -> None:
    before = asyncio.all_tasks()
    await host.start()
    # The outpost waits for the peer's claim of the month when it is stopped.
    async with asyncio.timeout(60):
        while not {"peer", "budget's month"} <= names(asyncio.all_tasks() - before):
            await asyncio.sleep(0.01)
    await host.stop()
    assert names(asyncio.all_tasks() - before) == set()


async def test_a_failed_start_stops_the_started_parts(host: OutpostHost, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise RuntimeError("no peers")

    before = asyncio.all_tasks()
    monkeypatch.setattr(host.peers, "start", fail)
    with pytest.raises(RuntimeError, match="no peers"):
        await host.start()
    await until_ended(before)
    with pytest.raises(JournalUnwritable):
        await host.journal.append(b"{}")
