"""Stores a new batch with its lines, and queues the job that runs it."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

import msgspec
from sqlalchemy import text

from gatehouse.engine.exchange import Identified
from gatehouse.engine.stages.calls.budget import reserve_in_advance
from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.ids import new_id
from gatehouse.platform.batches.creation.estimates import total
from gatehouse.platform.batches.creation.lines import NewLine
from gatehouse.platform.batches.running.jobs import BATCH_JOBS, run_batch
from gatehouse.platform.batches.storage.contents import BatchContents
from gatehouse.platform.batches.storage.room import require_room_for_batch
from gatehouse.platform.batches.storage.table import BatchRow, owner
from gatehouse.platform.changes.change import Change
from gatehouse.platform.live.stored_callers import StoredCaller
from gatehouse.platform.request.ports import Host

#: Time after the creation of a batch in which its lines are run.
COMPLETION_WINDOW: Final = timedelta(hours=24)
#: Headers of the request that creates the batch. They also apply to the call of each line.
_CALL_HEADERS: Final = ("anthropic-version", "anthropic-beta", "user-agent", "x-gateway-tags")
_LINES_PER_STATEMENT: Final = 500
_ADD_LINES: Final = text(
    "INSERT INTO batch_lines (tenant_id, batch_id, number, custom_id, status, request, request_bytes,"
    " estimated_nano_usd, estimated_tokens)"
    " SELECT :tenant, :batch, number, custom_id, 'pending', request, request_bytes, nano_usd, tokens"
    " FROM unnest(CAST(:numbers AS int[]), CAST(:custom_ids AS text[]), CAST(:requests AS text[]),"
    " CAST(:sizes AS int[]), CAST(:nano_usd AS bigint[]), CAST(:tokens AS bigint[]))"
    " AS t (number, custom_id, request, request_bytes, nano_usd, tokens)"
)


async def require_budget(identified: Identified, lines: Sequence[NewLine], host: Host) -> None:
    """Check that the caller's budgets cover the estimates of all lines together. Raises `QuotaExceeded`. Nothing
    remains reserved, because the worker that runs the lines reserves the amounts."""
    reserved = await reserve_in_advance(identified, total(line.estimate for line in lines), host.ports)
    if reserved is not None:
        host.ports.spend.settle(reserved, None)


async def store(
    change: Change,
    host: Host,
    identified: Identified,
    lines: Sequence[NewLine],
    *,
    api: str,
    endpoint: str,
    input_file_id: UUID | None = None,
    annotations: Mapping[str, str] | None = None,
    output_seconds: int | None = None,
) -> BatchRow:
    """Store the batch. Raises `TooManyBatches` and `StorageFull`."""
    caller, received, settings = identified.caller, identified.received, host.settings
    size = sum(len(line.body) for line in lines)
    await require_room_for_batch(change.session, size, settings.files_max_bytes)
    now, batch_id = utc_now(), new_id()
    retention = timedelta(days=settings.file_retention_days)
    sealed_key, contents = BatchContents.new(host.sealer, batch_id)
    row = BatchRow(
        id=batch_id,
        tenant_id=change.tenant_id,
        **owner(caller),
        api=api,
        endpoint=endpoint,
        status="validating",
        annotations=None if annotations is None else dict(annotations),
        caller=msgspec.to_builtins(StoredCaller.of(caller)),
        headers={name: received.headers[name] for name in _CALL_HEADERS if name in received.headers},
        ip=received.client_address,
        sealed_key=sealed_key,
        input_file_id=input_file_id,
        output_seconds=min(output_seconds or int(retention.total_seconds()), int(retention.total_seconds())),
        total=len(lines),
        stored_bytes=size,
        created_at=now,
        expires_at=now + COMPLETION_WINDOW,
        delete_at=now + max(retention, COMPLETION_WINDOW + timedelta(hours=1)),
    )
    change.session.add(row)
    await change.session.flush()
    for first in range(0, len(lines), _LINES_PER_STATEMENT):
        part = lines[first : first + _LINES_PER_STATEMENT]
        await change.session.execute(_ADD_LINES, _columns(row, contents, part, first + 1))
    await BATCH_JOBS.queue(change.session, run_batch, change.tenant_id, batch_id=str(batch_id))
    change.record("batch.created", "batch", batch_id, api=api, endpoint=endpoint, lines=len(lines))
    return row


def _columns(row: BatchRow, contents: BatchContents, lines: Sequence[NewLine], first: int) -> dict[str, Any]:
    numbers = range(first, first + len(lines))
    return {
        "tenant": row.tenant_id,
        "batch": row.id,
        "numbers": list(numbers),
        "custom_ids": [line.custom_id for line in lines],
        "requests": [contents.seal(line.body, "request", number) for number, line in zip(numbers, lines, strict=True)],
        "sizes": [len(line.body) for line in lines],
        "nano_usd": [line.estimate.nano_usd for line in lines],
        "tokens": [line.estimate.tokens for line in lines],
    }
