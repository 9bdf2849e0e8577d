"""Creates, lists and cancels batches."""

from datetime import datetime
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.engine.conversation.errors import InvalidField
from gatehouse.engine.exchange import Identified
from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.errors import Conflict, NotFound
from gatehouse.foundation.identity import Caller
from gatehouse.platform.batches.batches.schemas import (
    BatchError,
    BatchErrors,
    BatchList,
    BatchUsage,
    InputTokensDetails,
    ModelBatch,
    NewBatch,
    OutputTokensDetails,
    RequestCounts,
)
from gatehouse.platform.batches.creation import lines, storing
from gatehouse.platform.batches.files.service import FileNotFound, uploaded
from gatehouse.platform.batches.files.service import load as load_file
from gatehouse.platform.batches.ids import BATCH_PREFIX, FILE_PREFIX, parse_id, shown_id
from gatehouse.platform.batches.storage import table
from gatehouse.platform.batches.storage.table import BatchRow, FileRow
from gatehouse.platform.changes.change import Change
from gatehouse.platform.request.injected import SplitTransactions
from gatehouse.platform.request.ports import Host

API = "openai"


class BatchNotFound(NotFound):
    code = "batch_not_found"
    message = "No such batch. It may have been deleted after the end of its lifetime."


class BatchHasEnded(Conflict):
    code = "batch_ended"

    def __init__(self, status: str) -> None:
        super().__init__(f"The batch is {status}, so it cannot be cancelled.")


class InputFileNotFound(InvalidField):
    def __init__(self) -> None:
        super().__init__("input_file_id", "You have no such file with the purpose `batch`.")


async def load(session: AsyncSession, caller: Caller, batch_id: UUID | None, *, lock: bool = False) -> BatchRow:
    """Return a batch of the caller. Raises `BatchNotFound`."""
    query = table.owned_batches(caller, API).where(BatchRow.id == batch_id)
    row = (await session.scalars(query.with_for_update() if lock else query)).one_or_none()
    if row is None:
        raise BatchNotFound
    return row


async def create(transactions: SplitTransactions, host: Host, identified: Identified, body: NewBatch) -> ModelBatch:
    """Create a batch from an uploaded file. Raises `InputFileNotFound`, `InvalidLine`, `TooManyLines`, `EmptyBatch`,
    `QuotaExceeded`, `TooManyBatches` and `StorageFull`."""
    async with transactions.reading() as session:
        file = await _input_file(session, identified.caller, body.input_file_id)
    content = b"".join([piece async for piece in uploaded(host.database, host.sealer, file)])
    new_lines = await lines.of_file(content, body.endpoint, identified, host.settings.batch_max_lines)
    await storing.require_budget(identified, new_lines, host)
    expiry = body.output_expires_after
    async with transactions.changing() as change:
        row = await storing.store(
            change,
            host,
            identified,
            new_lines,
            api=API,
            endpoint=body.endpoint,
            input_file_id=file.id,
            annotations=body.metadata,
            output_seconds=None if expiry is None else expiry.seconds,
        )
    return shown(row)


async def _input_file(session: AsyncSession, caller: Caller, shown_file_id: str) -> FileRow:
    try:
        file = await load_file(session, caller, parse_id(FILE_PREFIX, shown_file_id))
    except FileNotFound:
        raise InputFileNotFound from None
    if file.purpose != "batch":
        raise InputFileNotFound
    return file


async def list_page(session: AsyncSession, caller: Caller, *, after: UUID | None, limit: int) -> BatchList:
    """Return batches of the caller, the newest first."""
    query = table.owned_batches(caller, API)
    if after is not None:
        query = query.where(BatchRow.id < after)
    rows = (await session.scalars(query.order_by(BatchRow.id.desc()).limit(limit + 1))).all()
    batches = [shown(row) for row in rows[:limit]]
    return BatchList(
        data=batches,
        first_id=batches[0].id if batches else None,
        last_id=batches[-1].id if batches else None,
        has_more=len(rows) > limit,
    )


async def cancel(change: Change, row: BatchRow) -> ModelBatch:
    """Begin the cancellation of a batch. Raises `BatchHasEnded`."""
    begin_cancellation(change, row, shown_status=row.status)
    return shown(row)


def begin_cancellation(change: Change, row: BatchRow, *, shown_status: str) -> None:
    """Begin the cancellation of a batch of either form. Lines in progress end first. Raises `BatchHasEnded` with
    `shown_status`."""
    if row.status in {"validating", "in_progress"}:
        row.status, row.cancelling_at = "cancelling", utc_now()
        change.record("batch.cancelling", "batch", row.id)
    elif row.status != "cancelling":
        raise BatchHasEnded(shown_status)


def shown(row: BatchRow) -> ModelBatch:
    error = BatchError(code=row.error_code, message=row.error_message)
    return ModelBatch(
        id=shown_id(BATCH_PREFIX, row.id),
        endpoint=row.endpoint,
        errors=None if row.error_code is None else BatchErrors(data=[error]),
        input_file_id=_file(row.input_file_id),
        status=row.status,
        output_file_id=_file(row.output_file_id),
        error_file_id=_file(row.error_file_id),
        created_at=int(row.created_at.timestamp()),
        in_progress_at=_seconds(row.in_progress_at),
        expires_at=int(row.expires_at.timestamp()),
        finalizing_at=_seconds(row.finalizing_at),
        completed_at=_ended(row, "completed"),
        failed_at=_ended(row, "failed"),
        expired_at=_ended(row, "expired"),
        cancelling_at=_seconds(row.cancelling_at),
        cancelled_at=_ended(row, "cancelled"),
        request_counts=RequestCounts(
            total=row.total, completed=row.succeeded, failed=row.errored + row.cancelled + row.expired
        ),
        usage=BatchUsage(
            input_tokens=row.input_tokens + row.cached_tokens,
            input_tokens_details=InputTokensDetails(cached_tokens=row.cached_tokens),
            output_tokens=row.output_tokens,
            output_tokens_details=OutputTokensDetails(),
            total_tokens=row.input_tokens + row.cached_tokens + row.output_tokens,
        ),
        cost_usd=f"{row.cost_usd:f}",
        metadata=row.annotations,
    )


def _file(file_id: UUID | None) -> str | None:
    return None if file_id is None else shown_id(FILE_PREFIX, file_id)


def _seconds(at: datetime | None) -> int | None:
    return None if at is None else int(at.timestamp())


def _ended(row: BatchRow, status: str) -> int | None:
    return _seconds(row.ended_at) if row.status == status else None
