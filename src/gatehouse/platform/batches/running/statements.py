"""Changes of the state of batches and their lines."""

from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from sqlalchemy import func, select, text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.ids import new_id
from gatehouse.platform.batches.results import rendering
from gatehouse.platform.batches.results.reading import FAILED, SUCCEEDED
from gatehouse.platform.batches.storage.table import BatchRow, FileRow, LineRow
from gatehouse.platform.changes.change import Change
from gatehouse.policy.budgets import CallAmounts

_INTERRUPTED: Final = text(
    "WITH lines AS (UPDATE batch_lines SET status = 'errored', request = NULL"
    "  WHERE batch_id = :batch AND status = 'running' RETURNING request_bytes)"
    " UPDATE batches SET errored = errored + (SELECT count(*) FROM lines),"
    "  stored_bytes = stored_bytes - (SELECT coalesce(sum(request_bytes), 0) FROM lines) WHERE id = :batch"
)
_CLAIM: Final = text(
    "UPDATE batch_lines l SET status = 'running' FROM batches b"
    " WHERE b.id = :batch AND b.runner = :runner AND b.status = 'in_progress' AND b.expires_at > now()"
    " AND l.batch_id = b.id AND l.number = (SELECT number FROM batch_lines WHERE batch_id = :batch"
    "  AND status = 'pending' ORDER BY number LIMIT 1 FOR UPDATE SKIP LOCKED)"
    " RETURNING l.number, l.custom_id, l.request, l.estimated_nano_usd, l.estimated_tokens"
)
_UNCLAIM: Final = text(
    "UPDATE batch_lines SET status = 'pending' WHERE batch_id = :batch AND number = :number AND status = 'running'"
)
# The result of a line that another process has already marked as interrupted is dropped.
_STORE: Final = text(
    "WITH line AS (UPDATE batch_lines SET status = :status, result = :result, result_bytes = :result_bytes,"
    "  request = NULL WHERE batch_id = :batch AND number = :number AND status = 'running' RETURNING request_bytes)"
    " UPDATE batches SET succeeded = succeeded + :succeeded, errored = errored + 1 - :succeeded,"
    "  stored_bytes = stored_bytes + :result_bytes - line.request_bytes, input_tokens = input_tokens + :input_tokens,"
    "  cached_tokens = cached_tokens + :cached_tokens, output_tokens = output_tokens + :output_tokens,"
    "  cost_usd = cost_usd + CAST(:cost_usd AS numeric) FROM line WHERE id = :batch"
)
_END_PENDING: Final = text(
    "WITH lines AS (UPDATE batch_lines SET status = :status, request = NULL"
    "  WHERE batch_id = :batch AND status = 'pending' RETURNING request_bytes)"
    " UPDATE batches SET"
    "  expired = expired + (SELECT count(*) FILTER (WHERE :status = 'expired') FROM lines),"
    "  cancelled = cancelled + (SELECT count(*) FILTER (WHERE :status = 'cancelled') FROM lines),"
    "  stored_bytes = stored_bytes - (SELECT coalesce(sum(request_bytes), 0) FROM lines) WHERE id = :batch"
)
_SESSION_IS_REVOKED: Final = text("SELECT EXISTS (SELECT FROM sessions WHERE id = :session AND revoked_at IS NOT NULL)")
_ESTIMATE: Final = text(
    "SELECT count(*), coalesce(sum(estimated_nano_usd), 0), coalesce(sum(estimated_tokens), 0)"
    " FROM batch_lines WHERE batch_id = :batch AND status = 'pending'"
)


async def lock(session: AsyncSession, batch_id: UUID) -> BatchRow | None:
    query = select(BatchRow).where(BatchRow.id == batch_id).with_for_update().execution_options(populate_existing=True)
    return (await session.scalars(query)).one_or_none()


async def session_is_revoked(session: AsyncSession, session_id: UUID) -> bool:
    """Return whether a user's session was ended. A session that has expired was not ended."""
    return bool((await session.execute(_SESSION_IS_REVOKED, {"session": session_id})).scalar_one())


async def mark_interrupted(session: AsyncSession, batch_id: UUID) -> None:
    """Mark the running lines as errored. Call it only while no line of the batch is in progress."""
    await session.execute(_INTERRUPTED, {"batch": batch_id})


async def claim(session: AsyncSession, batch_id: UUID, runner: UUID) -> Any:
    """Mark the next pending line as running, and return it. Returns None if there is none, if the batch was cancelled
    or has expired, or if another process has taken over."""
    return (await session.execute(_CLAIM, {"batch": batch_id, "runner": runner})).first()


async def unclaim(session: AsyncSession, batch_id: UUID, number: int) -> None:
    """Mark a line that was claimed, but not started, as pending."""
    await session.execute(_UNCLAIM, {"batch": batch_id, "number": number})


async def store_result(session: AsyncSession, batch_id: UUID, number: int, values: dict[str, Any]) -> None:
    """Store the result of a line, and add its usage to the batch."""
    # The batch is locked before the line, in the same order as by a worker that takes over the batch.
    await session.execute(select(BatchRow.id).where(BatchRow.id == batch_id).with_for_update())
    await session.execute(_STORE, {"batch": batch_id, "number": number, **values})


async def remaining(session: AsyncSession, batch_id: UUID) -> CallAmounts:
    """Return the estimated cost and tokens of all pending lines together."""
    requests, nano_usd, tokens = (await session.execute(_ESTIMATE, {"batch": batch_id})).one()
    return CallAmounts(nano_usd=int(nano_usd), requests=requests, tokens=int(tokens))


async def end_pending(session: AsyncSession, batch_id: UUID, status: str) -> None:
    """End the pending lines with the status `cancelled` or `expired`."""
    await session.execute(_END_PENDING, {"batch": batch_id, "status": status})


async def finish(change: Change, row: BatchRow) -> None:
    """Set the final status of a batch, and add files of its results. `row` is locked and in the status `finalizing`."""
    session = change.session
    if row.api == "openai":
        # The results are part of the batch, so they are deleted with the batch.
        row.delete_at = min(row.delete_at, utc_now() + timedelta(seconds=row.output_seconds))
        row.output_file_id = await _add_file(change, row, of_errors=False)
        row.error_file_id = await _add_file(change, row, of_errors=True)
    row.status, row.ended_at = final_status(row), utc_now()
    await session.flush()
    change.record(
        f"batch.{row.status}",
        "batch",
        row.id,
        reason=row.error_code,
        cost_usd=f"{row.cost_usd:f}",
        succeeded=row.succeeded,
        errored=row.errored,
        cancelled=row.cancelled,
        expired=row.expired,
    )


def final_status(row: BatchRow) -> str:
    """Return the final status of a batch without pending lines."""
    if row.error_code is not None:
        return "failed"
    if row.cancelling_at is not None:
        return "cancelled"
    return "expired" if row.expired else "completed"


async def _add_file(change: Change, row: BatchRow, *, of_errors: bool) -> UUID | None:
    """Add the file of the results, and return its id, or None if it would be empty."""
    statuses = FAILED if of_errors else SUCCEEDED
    size = await _results_size(change.session, row, statuses)
    if not size:
        return None
    kind = "error" if of_errors else "output"
    file = FileRow(
        id=new_id(),
        tenant_id=row.tenant_id,
        user_id=row.user_id,
        client_id=row.client_id,
        purpose="batch_output",
        filename=f"batch_{row.id.hex}_{kind}.jsonl",
        bytes=size,
        sealed_key=None,
        batch_id=row.id,
        of_errors=of_errors,
        created_at=utc_now(),
        expires_at=row.delete_at,
    )
    change.session.add(file)
    return file.id


async def _results_size(session: AsyncSession, row: BatchRow, statuses: tuple[str, ...]) -> int:
    """Return the number of bytes of the results. Results of lines that were not run are not stored, so their size is
    computed."""
    stored = select(func.coalesce(func.sum(LineRow.result_bytes), 0)).where(
        LineRow.batch_id == row.id, LineRow.status.in_(statuses)
    )
    size = int((await session.execute(stored)).scalar_one())
    not_run = select(LineRow.number, LineRow.custom_id, LineRow.status).where(
        LineRow.batch_id == row.id, LineRow.status.in_(statuses), LineRow.result.is_(None)
    )
    for number, custom_id, status in await session.execute(not_run):
        size += len(rendering.not_run(row.api, row.id, number, custom_id, status)) + 1
    return size
