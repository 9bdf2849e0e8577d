"""Files by the stock OpenAI client (docs/batches.md)."""

import asyncio
import json
from typing import Any
from uuid import UUID

import openai
import pytest
from tests.platform.batches.conftest import create, ended, jsonl, line
from tests.support.platform import RunningPlatform, Tenant
from tests.support.tools import tools_of

from gatehouse.platform.batches.files import service
from gatehouse.platform.batches.results import reading
from gatehouse.platform.batches.storage.table import FileRow
from gatehouse.platform.keeper import housekeeping


async def test_a_file_is_stored_listed_read_and_deleted(
    platform: RunningPlatform, owner: Tenant, client: openai.AsyncOpenAI
) -> None:
    content = jsonl([line("a", "x" * 3_000_000), line("b")])
    file = await client.files.create(file=("calls.jsonl", content), purpose="batch")
    assert (file.bytes, file.filename, file.purpose) == (len(content), "calls.jsonl", "batch")
    assert (await client.files.retrieve(file.id)) == file
    assert (await client.files.content(file.id)).content == content
    assert [listed.id async for listed in client.files.list()] == [file.id]
    assert (await client.files.list(purpose="batch_output")).data == []
    assert (await client.files.delete(file.id)).deleted
    with pytest.raises(openai.NotFoundError):
        await client.files.content(file.id)
    (created,) = await platform.audit(owner, "file.created")
    assert (created["actor_id"], created["details"]) == (str(owner.user.id), {"bytes": len(content)})
    assert len(await platform.audit(owner, "file.deleted")) == 1
    assert platform.sql("SELECT count(*) FROM file_chunks WHERE tenant_id = %s", [owner.id]) == [(0,)]


async def test_contents_are_encrypted_at_rest(
    platform: RunningPlatform, owner: Tenant, client: openai.AsyncOpenAI
) -> None:
    await ended(client, (await create(client, [line("a", "Project Nightingale")])).id)
    for table in ("files", "file_chunks", "batches", "batch_lines"):
        rows = platform.sql(f"SELECT t::text FROM {table} t WHERE tenant_id = %s", [owner.id])
        assert rows
        assert "Nightingale" not in str(rows)
    # The request of a line is deleted when the line has ended.
    assert platform.sql("SELECT request FROM batch_lines WHERE tenant_id = %s", [owner.id]) == [(None,)]


async def test_the_form_sets_the_lifetime_of_a_file_up_to_the_maximum(
    platform: RunningPlatform, client: openai.AsyncOpenAI
) -> None:
    file = await client.files.create(
        file=("a.jsonl", b"{}"), purpose="batch", expires_after={"anchor": "created_at", "seconds": 7200}
    )
    assert file.expires_at is not None
    assert file.expires_at - file.created_at == 7200
    platform.sql("UPDATE files SET expires_at = now() WHERE id = %s", [file.id.removeprefix("file-")])
    with pytest.raises(openai.NotFoundError):
        await client.files.retrieve(file.id)
    assert (await client.files.list()).data == []


@pytest.mark.parametrize(
    ("data", "param"),
    [
        ({"purpose": "fine-tune"}, "purpose"),
        ({}, "purpose"),
        ({"purpose": "batch", "expires_after[anchor]": "x"}, "expires_after.anchor"),
        ({"purpose": "batch", "expires_after[anchor]": "created_at"}, "expires_after.seconds"),
        (
            {"purpose": "batch", "expires_after[anchor]": "created_at", "expires_after[seconds]": "1"},
            "expires_after.seconds",
        ),
    ],
)
async def test_a_bad_field_of_the_form_is_named(owner: Tenant, data: dict[str, str], param: str) -> None:
    answer = await owner.user.client.post("/v1/files", data=data, files={"file": ("a.jsonl", b"{}")})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)


async def test_a_form_without_a_file_is_refused(owner: Tenant) -> None:
    answer = await owner.user.client.post("/v1/files", data={"purpose": "batch"}, files={"other": ("a", b"{}")})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "file")
    answer = await owner.user.client.post("/v1/files", json={})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_form")


async def test_a_file_that_exceeds_the_organizations_storage_is_refused(
    platform: RunningPlatform, client: openai.AsyncOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited = platform.host.settings.model_copy(update={"files_max_bytes": 100})
    monkeypatch.setattr(platform.host, "settings", limited)
    await client.files.create(file=("a.jsonl", b"x" * 60), purpose="batch")
    with pytest.raises(openai.ConflictError) as refused:
        await client.files.create(file=("a.jsonl", b"x" * 60), purpose="batch")
    assert refused.value.code == "file_storage_full"


async def test_a_deleted_file_of_results_frees_its_storage(
    platform: RunningPlatform, owner: Tenant, client: openai.AsyncOpenAI
) -> None:
    batch = await ended(client, (await create(client, [line("a"), line("b", model="none")])).id)
    await client.files.delete(batch.output_file_id)
    results: list[Any] = platform.sql(
        "SELECT status, result IS NULL FROM batch_lines WHERE tenant_id = %s ORDER BY number", [owner.id]
    )
    assert results == [("succeeded", True), ("errored", False)]
    size = len((await client.files.content(batch.error_file_id)).content)
    assert platform.sql("SELECT stored_bytes FROM batches WHERE tenant_id = %s", [owner.id]) == [(size,)]


@pytest.mark.parametrize("name", ["output_file_id", "error_file_id"])
async def test_a_file_of_results_that_is_deleted_while_it_is_read_is_not_read_further(
    platform: RunningPlatform, client: openai.AsyncOpenAI, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(reading, "_PAGE_LINES", 1)
    lines = [line("a"), line("b"), line("c", model="none"), line("d", model="none")]
    file_id = getattr(await ended(client, (await create(client, lines)).id), name)
    async with platform.host.database.service() as session:
        row = await session.get(FileRow, UUID(hex=file_id.removeprefix("file-")))
    assert row is not None
    pieces = service.content(platform.host, row)
    assert json.loads(await anext(pieces))["custom_id"] in {"a", "c"}
    await client.files.delete(file_id)
    with pytest.raises(reading.ResultsDeleted):
        await anext(pieces)


async def test_parallel_deletions_of_a_file_of_results_free_its_storage_once(
    platform: RunningPlatform, owner: Tenant, client: openai.AsyncOpenAI
) -> None:
    batch = await ended(client, (await create(client, [line("a"), *[line("b" * n, model="none") for n in (1, 9)]])).id)
    size = len((await client.files.content(batch.error_file_id)).content)
    path = f"/v1/files/{batch.output_file_id}"
    answers = await asyncio.gather(*[owner.user.client.delete(path) for _ in range(8)])
    assert sorted(answer.status_code for answer in answers) == [200, *[404] * 7]
    assert platform.sql("SELECT stored_bytes FROM batches WHERE tenant_id = %s", [owner.id]) == [(size,)]
    assert len(await platform.audit(owner, "file.deleted")) == 1


async def test_results_are_deleted_after_the_time_in_output_expires_after(
    platform: RunningPlatform, owner: Tenant, client: openai.AsyncOpenAI
) -> None:
    expiry: Any = {"anchor": "created_at", "seconds": 3600}
    batch = await ended(client, (await create(client, [line("a")], output_expires_after=expiry)).id)
    file = await client.files.retrieve(batch.output_file_id)
    assert file.expires_at is not None
    assert file.expires_at - batch.completed_at <= 3600
    for table, column in (("files", "expires_at"), ("batches", "delete_at")):
        platform.sql(f"UPDATE {table} SET {column} = {column} - interval '1 hour' WHERE tenant_id = %s", [owner.id])
    await housekeeping.prune(tools_of(platform.host))
    for table in ("batches", "batch_lines"):
        assert platform.sql(f"SELECT count(*) FROM {table} WHERE tenant_id = %s", [owner.id]) == [(0,)]
    assert platform.sql("SELECT purpose FROM files WHERE tenant_id = %s", [owner.id]) == [("batch",)]


async def test_all_keys_of_a_user_see_the_same_files_and_a_key_needs_the_scope(
    platform: RunningPlatform, owner: Tenant, client: openai.AsyncOpenAI
) -> None:
    file = await client.files.create(file=("a.jsonl", b"{}"), purpose="batch")
    assert (await platform.client(await platform.new_key(owner.user)).get(f"/v1/files/{file.id}")).status_code == 200
    assert (await owner.user.client.get(f"/v1/files/{file.id}")).status_code == 200
    machine = await platform.new_m2m(owner.id, "chat:write")
    assert (await machine.get(f"/v1/files/{file.id}")).status_code == 404
    uploaded = await machine.post("/v1/files", data={"purpose": "batch"}, files={"file": ("m.jsonl", b"{}")})
    assert [listed["id"] for listed in (await machine.get("/v1/files")).json()["data"]] == [uploaded.json()["id"]]
    assert (await client.files.list()).data[0].id == file.id
    reader = await platform.new_m2m(owner.id, "api:read")
    refused = await reader.get("/v1/files")
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "insufficient_scope")


async def test_the_folder_in_a_name_is_removed(client: openai.AsyncOpenAI) -> None:
    file = await client.files.create(file=("../b.jsonl", json.dumps({}).encode()), purpose="batch")
    assert file.filename == "b.jsonl"


async def test_expired_files_and_old_batches_are_deleted(
    platform: RunningPlatform, owner: Tenant, client: openai.AsyncOpenAI
) -> None:
    old, kept = [await ended(client, (await create(client, [line("a")])).id) for _ in range(2)]
    platform.sql("UPDATE batches SET delete_at = now() WHERE id = %s", [old.id.removeprefix("batch_")])
    platform.sql("UPDATE files SET expires_at = now() WHERE id = %s", [old.input_file_id.removeprefix("file-")])
    with pytest.raises(openai.NotFoundError):
        await client.batches.retrieve(old.id)
    await housekeeping.prune(tools_of(platform.host))
    files = [row[0] for row in platform.sql("SELECT id FROM files WHERE tenant_id = %s", [owner.id])]
    assert {f"file-{file_id.hex}" for file_id in files} == {kept.input_file_id, kept.output_file_id}
    for table, column in (("batches", "id"), ("batch_lines", "batch_id")):
        rows = platform.sql(f"SELECT {column} FROM {table} WHERE tenant_id = %s", [owner.id])
        assert [row[0].hex for row in rows] == [kept.id.removeprefix("batch_")]
