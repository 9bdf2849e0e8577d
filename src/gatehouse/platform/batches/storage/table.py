"""Rows and queries of files, batches and their lines."""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, Final, TypeVar
from uuid import UUID

from sqlalchemy import ColumnElement, Select, func, select, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.foundation.identity import Caller
from gatehouse.foundation.storage.rows import Big, TenantRow

#: States of a batch that has not ended.
OPEN: Final = ("validating", "in_progress", "finalizing", "cancelling")
#: Size of a chunk of a file before encryption.
CHUNK_BYTES: Final = 1024 * 1024


class BatchRow(TenantRow):
    __tablename__ = "batches"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    user_id: Mapped[UUID | None]
    client_id: Mapped[UUID | None]
    api: Mapped[str]
    endpoint: Mapped[str]
    status: Mapped[str]
    error_code: Mapped[str | None]
    error_message: Mapped[str | None]
    #: the column `metadata`, whose name SQLAlchemy reserves
    annotations: Mapped[dict[str, Any] | None] = mapped_column("metadata", JSONB(none_as_null=True))
    caller: Mapped[dict[str, Any]]
    headers: Mapped[dict[str, Any]]
    ip: Mapped[str]
    sealed_key: Mapped[str]
    input_file_id: Mapped[UUID | None]
    output_file_id: Mapped[UUID | None]
    error_file_id: Mapped[UUID | None]
    output_seconds: Mapped[int]
    runner: Mapped[UUID | None]
    total: Mapped[int]
    succeeded: Mapped[int] = mapped_column(default=0)
    errored: Mapped[int] = mapped_column(default=0)
    cancelled: Mapped[int] = mapped_column(default=0)
    expired: Mapped[int] = mapped_column(default=0)
    stored_bytes: Mapped[Big]
    input_tokens: Mapped[Big] = mapped_column(default=0)
    cached_tokens: Mapped[Big] = mapped_column(default=0)
    output_tokens: Mapped[Big] = mapped_column(default=0)
    cost_usd: Mapped[Decimal] = mapped_column(default=Decimal(0))
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    in_progress_at: Mapped[datetime | None]
    finalizing_at: Mapped[datetime | None]
    cancelling_at: Mapped[datetime | None]
    ended_at: Mapped[datetime | None]
    delete_at: Mapped[datetime]


class LineRow(TenantRow):
    """A line of a batch. `request` and `result` are sealed under the batch's key. An errored line without a result was
    interrupted."""

    __tablename__ = "batch_lines"

    batch_id: Mapped[UUID] = mapped_column(primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    custom_id: Mapped[str]
    status: Mapped[str]
    request: Mapped[str | None]
    result: Mapped[str | None]
    request_bytes: Mapped[int]
    result_bytes: Mapped[int]
    estimated_nano_usd: Mapped[Big]
    estimated_tokens: Mapped[Big]


class FileRow(TenantRow):
    """A file. The content of a file of results is read from the lines of its batch. The content of an uploaded file is
    in chunks."""

    __tablename__ = "files"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    user_id: Mapped[UUID | None]
    client_id: Mapped[UUID | None]
    purpose: Mapped[str]
    filename: Mapped[str]
    bytes: Mapped[Big]
    sealed_key: Mapped[str | None]
    batch_id: Mapped[UUID | None]
    of_errors: Mapped[bool] = mapped_column(default=False)
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]


class ChunkRow(TenantRow):
    """A part of a file of `CHUNK_BYTES` at most, sealed under the file's key. Numbers begin at 0."""

    __tablename__ = "file_chunks"

    file_id: Mapped[UUID] = mapped_column(primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    content: Mapped[str]


R = TypeVar("R", FileRow, BatchRow)


def owner(caller: Caller) -> dict[str, UUID | None]:
    """Return the columns that name the owner: the user, or else the OAuth client."""
    return {"user_id": caller.user_id, "client_id": None if caller.user_id is not None else caller.client_id}


def belongs_to(row: type[R], caller: Caller) -> ColumnElement[bool]:
    """Return the condition that the caller owns a row."""
    if caller.user_id is not None:
        return row.user_id == caller.user_id
    return row.client_id == caller.client_id


def owned_files(caller: Caller) -> Select[FileRow]:
    return select(FileRow).where(belongs_to(FileRow, caller), FileRow.expires_at > func.now())


def owned_batches(caller: Caller, api: str) -> Select[BatchRow]:
    return select(BatchRow).where(belongs_to(BatchRow, caller), BatchRow.api == api, BatchRow.delete_at > func.now())


async def chunks(session: AsyncSession, file_id: UUID, after: int, limit: int) -> Sequence[ChunkRow]:
    """Return chunks of a file in order. `after` is the number of the last chunk before them."""
    query = select(ChunkRow).where(ChunkRow.file_id == file_id, ChunkRow.number > after)
    return (await session.scalars(query.order_by(ChunkRow.number).limit(limit))).all()


_COUNTS: Final = text(
    "SELECT (SELECT count(*) FROM batches WHERE status IN ('validating', 'in_progress', 'finalizing', 'cancelling')"
    "  AND tenant_id = :tenant),"
    " (SELECT count(*) FROM files WHERE batch_id IS NULL AND tenant_id = :tenant),"
    " (SELECT coalesce(sum(stored_bytes), 0) FROM batches WHERE tenant_id = :tenant)"
    " + (SELECT coalesce(sum(bytes), 0) FROM files WHERE batch_id IS NULL AND tenant_id = :tenant)"
)


async def usage_of(session: AsyncSession, tenant_id: UUID) -> tuple[int, int, int]:
    """Return the organization's number of batches that have not ended, its number of uploaded files, and the bytes of
    its files and batches."""
    open_batches, files, stored_bytes = (await session.execute(_COUNTS, {"tenant": tenant_id})).one()
    return open_batches, files, int(stored_bytes)
