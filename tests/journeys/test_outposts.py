"""Requests of outposts while processes of the platform are killed and stopped."""

import asyncio
import signal
import time
from collections.abc import Iterator
from typing import Any
from uuid import UUID, uuid4

import httpx2
import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from tests.support.outposts import Authority
from tests.support.server import GatehouseServer

from gatehouse.engine.records.outcome import Outcome
from gatehouse.foundation.certificates import x5c
from gatehouse.foundation.ids import new_id
from gatehouse.platform.changes.change import DEFAULT_TENANT

RECORDS, BATCH, KILLS = 3_000, 50, 4


@pytest.fixture(scope="module")
def server() -> Iterator[GatehouseServer]:
    with GatehouseServer(workers=2) as running:
        yield running


class Outpost:
    """An outpost of the first organization. It is registered when this object is created."""

    def __init__(self, server: GatehouseServer) -> None:
        self.server, self.id = server, uuid4()
        authority, self.key = Authority(), ec.generate_private_key(ec.SECP256R1())
        self.certificate = authority.issue(self.key)
        org = str(uuid4())
        trust = {
            "ca_certificates": [authority.pem],
            "organizations": [{"org_id": org, "tenant_id": str(DEFAULT_TENANT)}],
            "outposts": [
                {"outpost_id": str(self.id), "org_id": org, "serials": [f"{self.certificate.serial_number:x}"]}
            ],
        }
        headers = {"Authorization": f"Bearer {server.key}"}
        # The key is new, so not every worker may know it.
        server.settled()
        with httpx2.Client(base_url=server.url, headers=headers, timeout=60) as admin:
            answer = admin.put("/v1/platform/outpost-trust", json=trust)
            assert answer.status_code == 200, answer.text
            flag = admin.patch("/api/v1/admin/org/feature-flags/outpost_enabled", json={"enabled": True})
            assert flag.status_code == 200, flag.text

    @property
    def headers(self) -> dict[str, str]:
        token = x5c.sign({"sub": str(self.id), "aud": "gatehouse"}, self.key, [self.certificate])
        return {"Authorization": f"Bearer {token}"}


def record() -> Any:
    return msgspec.to_builtins(
        Outcome[UUID](
            id=new_id(), tenant_id=uuid4(), timestamp=time.time(), request_id=uuid4().hex, actor_type="api_key",
            user_id=None, api_key_id=None, client_id=None, ip="10.0.0.1", requested_model="m", provider="one",
            model_id="m", path="/v1/chat/completions", outcome="success", status=200, error_code=None, stream=False,
            input_tokens=1, output_tokens=1, cached_tokens=None, cost_usd="0.001", latency_ms=1.0,
            time_to_first_token_ms=None, provider_latency_ms=1.0, fallbacks=0, dlp_action=None,
        )
    )  # fmt: skip


async def hand_in(outpost: Outpost, journal: UUID, records: list[Any]) -> None:
    """Upload like an outpost: repeatedly, from the number that the platform returns."""
    sequence = 1
    async with httpx2.AsyncClient(base_url=outpost.server.url, timeout=10) as client:
        while sequence <= len(records):
            batch = records[sequence - 1 : sequence - 1 + BATCH]
            body = {"journal_id": str(journal), "sequence": sequence, "entries": batch}
            try:
                answer = await client.post("/v1/outposts/records", json=body, headers=outpost.headers)
            except httpx2.HTTPError:
                await asyncio.sleep(0.05)
                continue
            if answer.status_code == 200:
                assert answer.json()["rejected"] == []
                sequence = answer.json()["next_sequence"]
            else:
                assert answer.status_code >= 500, answer.text
                await asyncio.sleep(0.05)


async def test_records_are_stored_once_each_while_workers_are_killed(server: GatehouseServer) -> None:
    outpost, records = Outpost(server), [record() for _ in range(RECORDS)]
    # Two uploads of the same records, like an outpost that was started twice by mistake.
    journal = uuid4()
    senders = [asyncio.create_task(hand_in(outpost, journal, records)) for _ in range(2)]
    killed = 0
    while killed < KILLS and not all(sender.done() for sender in senders):
        await asyncio.sleep(0.4)
        for worker in server.workers[:1]:
            worker.send_signal(signal.SIGKILL)
            killed += 1
    await asyncio.gather(*senders)
    assert killed == KILLS
    ids = [row[0] for row in server.sql("SELECT id FROM usage_records WHERE provider = 'one'")]
    assert sorted(map(str, ids)) == sorted(record[1] for record in records)
    chained = server.sql("SELECT id FROM audit_events WHERE details ->> 'outpost_id' IS NOT NULL ORDER BY sequence")
    assert [str(row[0]) for row in chained] == [record[1] for record in records]


async def test_a_stopping_worker_ends_long_polls(server: GatehouseServer) -> None:
    outpost = Outpost(server)
    path = "/v1/outposts/policy-bundle"
    async with httpx2.AsyncClient(base_url=server.url, timeout=60) as client:
        etag = (await client.get(path, headers=outpost.headers)).headers["etag"]
        headers = {**outpost.headers, "If-None-Match": etag}
        waiting = [asyncio.create_task(client.get(path, params={"wait": 55}, headers=headers)) for _ in range(8)]
        await asyncio.sleep(1)
        assert not any(task.done() for task in waiting)
        began = time.monotonic()
        status = await asyncio.to_thread(server.stop)
        answers = await asyncio.gather(*waiting)
    assert status == 0
    assert [answer.status_code for answer in answers] == [304] * 8
    assert time.monotonic() - began < 15
