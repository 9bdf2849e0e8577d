"""A batch runs with the current rights of the credential that created it (docs/batches.md)."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import httpx2
import pytest
from psycopg.types.json import Jsonb
from tests.platform.batches.conftest import TIMEOUT_SECONDS, jsonl, line, occupied, records
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.foundation.errors import Unauthenticated
from gatehouse.foundation.identity import CallerKind
from gatehouse.foundation.ids import new_id
from gatehouse.platform.batches.running import turn
from gatehouse.platform.live.stored_callers import StoredCaller


async def created(client: httpx2.AsyncClient) -> str:
    """Create a batch of two lines, and return its id."""
    upload = await client.post(
        "/v1/files", data={"purpose": "batch"}, files={"file": ("a.jsonl", jsonl([line("a"), line("b")]))}
    )
    assert upload.status_code == 200, upload.text
    body = {
        "input_file_id": upload.json()["id"],
        "endpoint": "/v1/chat/completions",
        "completion_window": "24h",
    }
    answer = await client.post("/v1/batches", json=body)
    assert answer.status_code == 200, answer.text
    batch_id: str = answer.json()["id"]
    return batch_id


async def final_row(platform: RunningPlatform, batch_id: str) -> Any:
    """Return the status, the error code and the counts of a batch once it has ended."""
    query = "SELECT status, error_code, succeeded, cancelled FROM batches WHERE id = %s AND ended_at IS NOT NULL"
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while not (rows := platform.sql(query, [batch_id.removeprefix("batch_")])):
            await asyncio.sleep(0.1)
    return rows[0]


STOPPED = ("failed", "credential_revoked", 0, 2)


async def disable_key(owner: Tenant) -> None:
    (key,) = (await owner.user.client.get("/api/auth/api-keys")).json()
    answer = await owner.user.client.patch(f"/api/auth/api-keys/{key['id']}", json={"is_enabled": False})
    assert answer.is_success, answer.text


async def delete_key(owner: Tenant) -> None:
    (key,) = (await owner.user.client.get("/api/auth/api-keys")).json()
    assert (await owner.user.client.delete(f"/api/auth/api-keys/{key['id']}")).is_success


async def delete_user(owner: Tenant) -> None:
    assert (await owner.admin.client.delete(f"/api/admin/users/{owner.user.id}")).is_success


@pytest.mark.parametrize("revoke", [disable_key, delete_key])
async def test_a_batch_stops_when_its_key_is_revoked(
    platform: RunningPlatform, owner: Tenant, revoke: Callable[[Tenant], Awaitable[None]]
) -> None:
    client = platform.client(await platform.new_key(owner.user))
    async with occupied(platform):
        batch_id = await created(client)
        await revoke(owner)
    assert await final_row(platform, batch_id) == STOPPED
    assert await records(platform, owner) == []


async def test_a_batch_of_a_session_stops_when_the_session_ends(platform: RunningPlatform, owner: Tenant) -> None:
    async with occupied(platform):
        batch_id = await created(owner.user.client)
        assert (await owner.user.client.delete(f"/api/auth/sessions/{owner.user.session_id}")).is_success
    assert await final_row(platform, batch_id) == STOPPED


async def test_a_batch_stops_if_its_session_was_ended_long_before_the_turn(
    platform: RunningPlatform, owner: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The workers know a revoked session only until its tokens have expired."""
    monkeypatch.setattr(turn, "_CLOSED_RETRY", timedelta(seconds=1))
    with monkeypatch.context() as closed:
        closed.setattr(turn.Turn, "_closed", lambda _: True)
        batch_id = await created(owner.user.client)
        assert (await owner.user.client.delete(f"/api/auth/sessions/{owner.user.session_id}")).is_success
        platform.sql("DELETE FROM revocations WHERE subject = %s", [owner.user.session_id])
        platform.host.replica.revoked.clear()
        query = "SELECT count(*) FROM batches WHERE tenant_id = %s AND ended_at IS NULL"
        assert platform.sql(query, [owner.id]) == [(1,)]
    assert await final_row(platform, batch_id) == STOPPED
    assert await records(platform, owner) == []


async def test_a_batch_of_a_session_runs(platform: RunningPlatform, owner: Tenant) -> None:
    assert await final_row(platform, await created(owner.user.client)) == ("completed", None, 2, 0)


async def test_a_batch_of_an_oauth_client_runs_and_stops_when_the_client_is_disabled(
    platform: RunningPlatform, owner: Tenant
) -> None:
    machine = await platform.new_m2m(owner.id, "chat:write")
    assert await final_row(platform, await created(machine)) == ("completed", None, 2, 0)
    async with occupied(platform):
        batch_id = await created(machine)
        platform.sql("UPDATE oauth_clients SET enabled = false WHERE tenant_id = %s", [owner.id])
        for (client_id,) in platform.sql("SELECT client_id FROM oauth_clients WHERE tenant_id = %s", [owner.id]):
            platform.touch("oauth_client", client_id)
        await platform.refresh()
    assert await final_row(platform, batch_id) == STOPPED


async def test_a_batch_of_an_oauth_client_stops_when_the_client_is_deleted(
    platform: RunningPlatform, owner: Tenant
) -> None:
    machine = await platform.new_m2m(owner.id, "chat:write")
    async with occupied(platform):
        batch_id = await created(machine)
        rows = platform.sql("DELETE FROM oauth_clients WHERE tenant_id = %s RETURNING client_id", [owner.id])
        for (client_id,) in rows:
            platform.touch("oauth_client", client_id)
        await platform.refresh()
    assert await final_row(platform, batch_id) == STOPPED


async def test_a_batch_of_an_application_stops_when_its_grant_is_revoked(
    platform: RunningPlatform, owner: Tenant
) -> None:
    client_id, grant_id = new_id(), new_id()
    platform.sql(
        "INSERT INTO oauth_clients (id, client_id, tenant_id, name, scopes, user_scopes, secret_digest)"
        " VALUES (%s, %s, %s, 'an application', '[]', %s, %s)",
        [new_id(), client_id, owner.id, Jsonb(["chat:write"]), b""],
    )
    platform.touch("oauth_client", client_id)
    await platform.refresh()
    claims = {
        "sub": str(owner.user.id), "sid": str(owner.user.session_id), "token_type": "application",
        "client_id": str(client_id), "grant_id": str(grant_id), "scope": "chat:write",
    }  # fmt: skip
    application = platform.client(platform.signed(claims))
    assert await final_row(platform, await created(application)) == ("completed", None, 2, 0)
    async with occupied(platform):
        batch_id = await created(application)
        platform.sql(
            "INSERT INTO revocations (subject, kind, expires_at) VALUES (%s, 'grant', now() + interval '15 minutes')",
            [grant_id],
        )
        platform.touch("revocation", grant_id)
        await platform.refresh()
    assert await final_row(platform, batch_id) == STOPPED


async def test_files_and_batches_of_a_deleted_user_are_deleted(platform: RunningPlatform, owner: Tenant) -> None:
    client = platform.client(await platform.new_key(owner.user))
    async with occupied(platform):
        await created(client)
        await delete_user(owner)
    for table in ("files", "file_chunks", "batches", "batch_lines"):
        assert platform.sql(f"SELECT count(*) FROM {table} WHERE tenant_id = %s", [owner.id]) == [(0,)]


def test_a_stored_caller_without_a_subject_is_refused(platform: RunningPlatform) -> None:
    for kind in (CallerKind.USER, CallerKind.OAUTH_CLIENT, CallerKind.SCIM):
        with pytest.raises(Unauthenticated):
            platform.host.credentials.restore(StoredCaller(kind=kind, tenant_id=new_id()))
