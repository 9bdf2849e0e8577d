"""Stores, lists, reads and deletes files."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Final
from uuid import UUID

from sqlalchemy import delete, select, text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.errors import NotFound
from gatehouse.foundation.identity import Caller
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.secrets.sealing import Sealer
from gatehouse.foundation.storage.database import Database
from gatehouse.platform.batches.files.schemas import File, FileList
from gatehouse.platform.batches.files.uploads import FileUpload
from gatehouse.platform.batches.ids import FILE_PREFIX, shown_id
from gatehouse.platform.batches.results.reading import FAILED, SUCCEEDED, results
from gatehouse.platform.batches.storage import table
from gatehouse.platform.batches.storage.contents import BatchContents
from gatehouse.platform.batches.storage.room import require_room_for_file
from gatehouse.platform.batches.storage.table import CHUNK_BYTES, BatchRow, ChunkRow, FileRow, owner
from gatehouse.platform.changes.change import Change
from gatehouse.platform.request.ports import Host

# The results are stored with the lines of the batch, so the deletion of their file deletes them there.
_DELETE_RESULTS: Final = text(
    "WITH lines AS (SELECT number, result_bytes FROM batch_lines WHERE batch_id = :batch AND status = ANY(:statuses)),"
    " cleared AS (UPDATE batch_lines l SET result = NULL, result_bytes = 0 FROM lines"
    "  WHERE l.batch_id = :batch AND l.number = lines.number)"
    " UPDATE batches SET stored_bytes = stored_bytes - (SELECT coalesce(sum(result_bytes), 0) FROM lines)"
    " WHERE id = :batch"
)


class FileNotFound(NotFound):
    code = "file_not_found"
    message = "No such file. It may have expired."


async def load(session: AsyncSession, caller: Caller, file_id: UUID | None, *, lock: bool = False) -> FileRow:
    """Return a file of the caller. Raises `FileNotFound`."""
    query = table.owned_files(caller).where(FileRow.id == file_id)
    row = (await session.scalars(query.with_for_update() if lock else query)).one_or_none()
    if row is None:
        raise FileNotFound
    return row


async def create(change: Change, host: Host, caller: Caller, upload: FileUpload) -> File:
    """Store an uploaded file. Raises `TooManyFiles` and `StorageFull`."""
    session, content, settings = change.session, upload.content, host.settings
    await require_room_for_file(session, len(content), settings.files_max_bytes)
    now, file_id = utc_now(), new_id()
    sealed_key, contents = BatchContents.new(host.sealer, file_id)
    retention = timedelta(days=settings.file_retention_days)
    lifetime = retention if upload.lifetime_seconds is None else timedelta(seconds=upload.lifetime_seconds)
    row = FileRow(
        id=file_id,
        tenant_id=change.tenant_id,
        **owner(caller),
        purpose="batch",
        filename=upload.filename,
        bytes=len(content),
        sealed_key=sealed_key,
        batch_id=None,
        created_at=now,
        expires_at=now + min(lifetime, retention),
    )
    session.add(row)
    await session.flush()
    for number, start in enumerate(range(0, len(content), CHUNK_BYTES)):
        sealed = contents.seal(content[start : start + CHUNK_BYTES], "chunk", number)
        session.add(ChunkRow(tenant_id=change.tenant_id, file_id=file_id, number=number, content=sealed))
    change.record("file.created", "file", file_id, bytes=len(content))
    return shown(row)


async def list_page(
    session: AsyncSession, caller: Caller, *, after: UUID | None, limit: int, order: str, purpose: str | None
) -> FileList:
    """Return files of the caller in the order of their creation."""
    query = table.owned_files(caller)
    if purpose is not None:
        query = query.where(FileRow.purpose == purpose)
    if after is not None:
        query = query.where(FileRow.id < after if order == "desc" else FileRow.id > after)
    query = query.order_by(FileRow.id.desc() if order == "desc" else FileRow.id).limit(limit + 1)
    rows = (await session.scalars(query)).all()
    files = [shown(row) for row in rows[:limit]]
    return FileList(
        data=files,
        first_id=files[0].id if files else None,
        last_id=files[-1].id if files else None,
        has_more=len(rows) > limit,
    )


async def remove(change: Change, row: FileRow) -> None:
    """Delete a file with its content. `row` is locked, so that the size of results is subtracted only once."""
    if row.batch_id is not None:
        statuses = list(FAILED if row.of_errors else SUCCEEDED)
        await change.session.execute(_DELETE_RESULTS, {"batch": row.batch_id, "statuses": statuses})
    await change.session.execute(delete(FileRow).where(FileRow.id == row.id))
    change.record("file.deleted", "file", row.id)


async def content(host: Host, row: FileRow) -> AsyncIterator[bytes]:
    """Yield the content of a file in pieces, each read in a transaction of its own."""
    if row.batch_id is None:
        async for piece in uploaded(host.database, host.sealer, row):
            yield piece
        return
    async with host.database.tenant(row.tenant_id) as session:
        batch = (await session.scalars(select(BatchRow).where(BatchRow.id == row.batch_id))).one_or_none()
    if batch is not None:
        statuses = FAILED if row.of_errors else SUCCEEDED
        async for piece in results(host.database, host.sealer, batch, statuses, file_id=row.id):
            yield piece


async def uploaded(database: Database, sealer: Sealer, row: FileRow) -> AsyncIterator[bytes]:
    """Yield the chunks of an uploaded file."""
    assert row.sealed_key is not None
    contents, last = BatchContents.of(sealer, row.id, row.sealed_key), -1
    while True:
        async with database.tenant(row.tenant_id) as session:
            chunks = await table.chunks(session, row.id, last, 1)
        if not chunks:
            return
        for chunk in chunks:
            last = chunk.number
            yield contents.open(chunk.content, "chunk", chunk.number)


def shown(row: FileRow) -> File:
    return File(
        id=shown_id(FILE_PREFIX, row.id),
        bytes=row.bytes,
        created_at=int(row.created_at.timestamp()),
        expires_at=int(row.expires_at.timestamp()),
        filename=row.filename,
        purpose=row.purpose,
    )
