"""Reads the results of a batch in pages, so that memory and the duration of each transaction are bounded."""

from collections.abc import AsyncIterator, Collection
from typing import Final
from uuid import UUID

from sqlalchemy import exists, select

from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.secrets.sealing import Sealer
from gatehouse.foundation.storage.database import Database
from gatehouse.platform.batches.results import rendering
from gatehouse.platform.batches.storage.contents import BatchContents
from gatehouse.platform.batches.storage.table import BatchRow, FileRow, LineRow

SUCCEEDED: Final = ("succeeded",)
FAILED: Final = ("errored", "cancelled", "expired")
ENDED: Final = (*SUCCEEDED, *FAILED)

#: Maximum number of lines in a page, and of bytes of their results. A page has at least one line, of any size.
_PAGE_LINES: Final = 200
_PAGE_BYTES: Final = 4 * 1024 * 1024


class ResultsDeleted(Exception):
    """The results were deleted while they were read. The response is incomplete, so its connection is closed."""


async def results(
    database: Database, sealer: Sealer, batch: BatchRow, statuses: Collection[str], *, file_id: UUID | None = None
) -> AsyncIterator[bytes]:
    """Yield the results of the lines with one of these statuses, in the order of the input. Each piece consists of
    whole lines. `file_id` is the file of results that is read. Raises `ResultsDeleted` if it is deleted meanwhile."""
    contents = BatchContents.of(sealer, batch.id, batch.sealed_key)
    last = 0
    while True:
        numbers = await _page(database, batch.tenant_id, batch.id, statuses, last)
        if not numbers:
            return
        last = numbers[-1]
        query = select(LineRow).where(LineRow.batch_id == batch.id, LineRow.number.in_(numbers))
        if file_id is not None:
            # One statement reads the lines and checks the file, so that results deleted meanwhile are noticed.
            query = query.where(exists().where(FileRow.id == file_id))
        async with database.tenant(batch.tenant_id) as session:
            rows = (await session.scalars(query.order_by(LineRow.number))).all()
        if not rows:
            raise ResultsDeleted
        yield b"".join(result_of(batch, row, contents) + b"\n" for row in rows)


def result_of(batch: BatchRow, row: LineRow, contents: BatchContents) -> bytes:
    """Return the result of a line that has ended, without a line break."""
    if row.result is None:
        return rendering.not_run(batch.api, batch.id, row.number, row.custom_id, row.status)
    return contents.open(row.result, "result", row.number)


async def _page(
    database: Database, tenant_id: TenantId, batch_id: UUID, statuses: Collection[str], after: int
) -> list[int]:
    """Return the numbers of the lines of the next page."""
    query = (
        select(LineRow.number, LineRow.result_bytes)
        .where(LineRow.batch_id == batch_id, LineRow.number > after, LineRow.status.in_(statuses))
        .order_by(LineRow.number)
        .limit(_PAGE_LINES)
    )
    async with database.tenant(tenant_id) as session:
        sizes = (await session.execute(query)).all()
    numbers: list[int] = []
    total = 0
    for number, size in sizes:
        total += size
        if numbers and total > _PAGE_BYTES:
            break
        numbers.append(number)
    return numbers
