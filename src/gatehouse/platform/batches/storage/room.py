"""Limits of an organization's files and batches."""

from typing import Final

from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.errors import Conflict
from gatehouse.foundation.storage.locks import ScopedLock, acquire_scoped
from gatehouse.platform.batches.storage.table import usage_of

#: Maximum number of uploaded files of an organization.
MAX_FILES: Final = 10_000
#: Maximum number of batches of an organization that have not ended.
MAX_OPEN_BATCHES: Final = 100


class TooManyFiles(Conflict):
    code = "file_limit_reached"
    message = f"The organization has {MAX_FILES} files, which is the maximum. Delete files, or wait until some expire."


class TooManyBatches(Conflict):
    code = "batch_limit_reached"
    message = (
        f"The organization has {MAX_OPEN_BATCHES} batches that have not ended, which is the maximum."
        " Wait until some have ended, or cancel them."
    )


class StorageFull(Conflict):
    code = "file_storage_full"

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"The organization's files and batches may have at most {limit} bytes (FILES_MAX_BYTES). Delete some."
        )


async def require_room_for_file(session: AsyncSession, size: int, limit: int) -> None:
    """Check that a file of this size fits. Raises `TooManyFiles` or `StorageFull`. `limit` is in bytes. A lock prevents
    concurrent additions until the end of the transaction."""
    _, files, stored_bytes = await _locked_usage(session)
    if files >= MAX_FILES:
        raise TooManyFiles
    if stored_bytes + size > limit:
        raise StorageFull(limit)


async def require_room_for_batch(session: AsyncSession, size: int, limit: int) -> None:
    """Check that a batch with requests of this size fits. Raises `TooManyBatches` or `StorageFull`."""
    open_batches, _, stored_bytes = await _locked_usage(session)
    if open_batches >= MAX_OPEN_BATCHES:
        raise TooManyBatches
    if stored_bytes + size > limit:
        raise StorageFull(limit)


async def _locked_usage(session: AsyncSession) -> tuple[int, int, int]:
    tenant_id = session.info["tenant_id"]
    await acquire_scoped(session, ScopedLock.FILES, str(tenant_id))
    return await usage_of(session, tenant_id)
