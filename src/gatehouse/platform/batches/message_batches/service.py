"""Creates, lists, cancels and deletes message batches."""

from typing import Final
from uuid import UUID

import msgspec
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.engine.conversation.errors import InvalidField, MalformedCall
from gatehouse.engine.exchange import Identified
from gatehouse.foundation.errors import Conflict
from gatehouse.foundation.identity import Caller
from gatehouse.platform.batches.batches.service import BatchNotFound, begin_cancellation
from gatehouse.platform.batches.creation import lines, storing
from gatehouse.platform.batches.creation.lines import MESSAGES_ENDPOINT, MessagesRequest
from gatehouse.platform.batches.ids import MESSAGE_BATCH_PREFIX, shown_id
from gatehouse.platform.batches.message_batches.schemas import MessageBatch, MessageBatchList, MessageRequestCounts
from gatehouse.platform.batches.storage import table
from gatehouse.platform.batches.storage.table import BatchRow
from gatehouse.platform.changes.change import Change
from gatehouse.platform.request.injected import SplitTransactions
from gatehouse.platform.request.ports import Host

API: Final = "anthropic"


class MessageBatchNotEnded(Conflict):
    code = "batch_not_ended"
    message = "The batch has not ended yet. Wait until its processing_status is `ended`, or cancel it."


class _Creation(msgspec.Struct, forbid_unknown_fields=True):
    requests: list[MessagesRequest]


_decoder: Final = msgspec.json.Decoder(_Creation)


async def load(session: AsyncSession, caller: Caller, batch_id: UUID | None, *, lock: bool = False) -> BatchRow:
    """Return a message batch of the caller. Raises `BatchNotFound`."""
    query = table.owned_batches(caller, API).where(BatchRow.id == batch_id)
    row = (await session.scalars(query.with_for_update() if lock else query)).one_or_none()
    if row is None:
        raise BatchNotFound
    return row


async def create(transactions: SplitTransactions, host: Host, identified: Identified, body: bytes) -> BatchRow:
    """Create a batch from the calls in the body. Raises `MalformedCall`, `InvalidField`, `InvalidLine`,
    `TooManyLines`, `EmptyBatch`, `QuotaExceeded`, `TooManyBatches` and `StorageFull`."""
    try:
        creation = _decoder.decode(body)
    except msgspec.ValidationError as error:
        raise InvalidField("requests", f"The body must be an object with `requests`: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise MalformedCall from None
    new_lines = await lines.of_requests(creation.requests, identified, host.settings.batch_max_lines)
    await storing.require_budget(identified, new_lines, host)
    async with transactions.changing() as change:
        return await storing.store(change, host, identified, new_lines, api=API, endpoint=MESSAGES_ENDPOINT)


async def list_page(
    session: AsyncSession, caller: Caller, base_url: str, *, after: UUID | None, before: UUID | None, limit: int
) -> MessageBatchList:
    """Return message batches of the caller, the newest first. With `before`, return the page that directly precedes
    this batch."""
    query = table.owned_batches(caller, API)
    if after is not None:
        query = query.where(BatchRow.id < after)
    if before is not None:
        query = query.where(BatchRow.id > before)
    backwards = before is not None and after is None
    query = query.order_by(BatchRow.id if backwards else BatchRow.id.desc()).limit(limit + 1)
    rows = list((await session.scalars(query)).all())
    page = rows[:limit][::-1] if backwards else rows[:limit]
    batches = [shown(row, base_url) for row in page]
    return MessageBatchList(
        data=batches,
        first_id=batches[0].id if batches else None,
        last_id=batches[-1].id if batches else None,
        has_more=len(rows) > limit,
    )


async def cancel(change: Change, row: BatchRow) -> None:
    """Begin the cancellation of a batch. Raises `BatchHasEnded`."""
    begin_cancellation(change, row, shown_status="ended")


def require_ended(row: BatchRow) -> BatchRow:
    """Return the batch if it has ended. Raises `MessageBatchNotEnded`."""
    if row.ended_at is None:
        raise MessageBatchNotEnded
    return row


async def remove(change: Change, row: BatchRow) -> None:
    """Delete an ended batch with its results."""
    await change.session.delete(require_ended(row))
    change.record("batch.deleted", "batch", row.id)


def shown(row: BatchRow, base_url: str) -> MessageBatch:
    batch_id = shown_id(MESSAGE_BATCH_PREFIX, row.id)
    ended = row.succeeded + row.errored + row.cancelled + row.expired
    status = "in_progress" if row.cancelling_at is None else "canceling"
    return MessageBatch(
        id=batch_id,
        processing_status="ended" if row.ended_at is not None else status,
        request_counts=MessageRequestCounts(
            processing=row.total - ended,
            succeeded=row.succeeded,
            errored=row.errored,
            canceled=row.cancelled,
            expired=row.expired,
        ),
        created_at=row.created_at,
        expires_at=row.expires_at,
        ended_at=row.ended_at,
        cancel_initiated_at=row.cancelling_at,
        results_url=None if row.ended_at is None else f"{base_url}/v1/messages/batches/{batch_id}/results",
        cost_usd=f"{row.cost_usd:f}",
    )
