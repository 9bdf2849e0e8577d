"""One turn of a batch: runs its lines for some time, and then queues the next turn or ends the batch."""

import asyncio
import math
import time
from contextlib import AbstractAsyncContextManager, suppress
from datetime import timedelta
from typing import Any, Final
from uuid import UUID, uuid4

import msgspec
import structlog

from gatehouse.engine import pipeline
from gatehouse.engine.exchange import Received
from gatehouse.engine.ports import Reserved
from gatehouse.engine.stages.calls.budget import reserve_in_advance
from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.errors import Refusal, Unauthenticated
from gatehouse.foundation.identity import Caller, TenantId
from gatehouse.foundation.storage.away import DATABASE_UNAVAILABLE_ERRORS
from gatehouse.platform.batches.running import statements
from gatehouse.platform.batches.running.jobs import BATCH_JOBS, BatchInterrupted, run_batch
from gatehouse.platform.batches.running.line import RECORDED_PATHS, released_once, run_line
from gatehouse.platform.batches.storage.contents import BatchContents
from gatehouse.platform.batches.storage.room import StorageFull
from gatehouse.platform.batches.storage.table import BatchRow, usage_of
from gatehouse.platform.changes.change import Change
from gatehouse.platform.live.stored_callers import StoredCaller
from gatehouse.platform.request.ports import Host
from gatehouse.policy.budgets import CallAmounts

log = structlog.get_logger(__name__)

#: Time after its first line after which a turn starts no more lines.
TURN_SECONDS: Final = 15.0
#: Delay of the next turn while the platform accepts no model calls.
_CLOSED_RETRY: Final = timedelta(seconds=15)
#: Time for which a turn tries to store a result while the database is unavailable.
_STORE_SECONDS: Final = 120.0
_STORE_RETRY_SECONDS: Final = 1.0


class BatchCredentialRevoked(Unauthenticated):
    code = "credential_revoked"
    message = "The credential that created the batch is no longer valid, so the batch was stopped."


class Capacity:
    """The lines that a worker runs: up to `concurrency` at the same time. No line is started after `stopping` is
    set."""

    def __init__(self, concurrency: int) -> None:
        self.concurrency = concurrency
        self.slots = asyncio.Semaphore(concurrency)
        self.stopping = asyncio.Event()


class Turn:
    """A turn of one batch. `capacity` is shared by the turns of all batches of the worker."""

    def __init__(self, host: Host, capacity: Capacity, tenant_id: TenantId, batch_id: UUID) -> None:
        self._host = host
        self._capacity = capacity
        self._tenant_id = tenant_id
        self._batch_id = batch_id
        self._runner = uuid4()
        #: the reason why the whole batch is stopped
        self._fault: Refusal | None = None
        self._contents: BatchContents
        self._row: BatchRow
        self._stored_caller: StoredCaller
        self._advance: Reserved | None = None
        #: monotonic time in seconds after which the turn starts no more lines
        self._deadline = math.inf
        #: whether the batch had already ended, or was deleted
        self._has_ended = False

    async def run(self) -> None:
        """Run until the lines have ended, or the time is over. Raises `BatchInterrupted`."""
        try:
            if await self._begin():
                await self._run_lines()
            await self._end()
        except* DATABASE_UNAVAILABLE_ERRORS as group:
            raise BatchInterrupted(f"the database was unavailable: {type(group.exceptions[0]).__name__}") from None

    async def _begin(self) -> bool:
        """Take over the batch, and return whether its lines can be run now."""
        async with self._session() as session:
            row = await statements.lock(session, self._batch_id)
            if row is None or row.ended_at is not None:
                self._has_ended = True
                return False
            row.runner = self._runner
            if row.status == "validating":
                row.status, row.in_progress_at = "in_progress", utc_now()
            await session.flush()
            await statements.mark_interrupted(session, row.id)
            _, _, stored_bytes = await usage_of(session, self._tenant_id)
            self._stored_caller = msgspec.convert(row.caller, StoredCaller)
            session_id = self._stored_caller.session_id
            # The replica lists a revoked session only until its tokens have expired.
            if session_id is not None and await statements.session_is_revoked(session, session_id):
                self._fault = BatchCredentialRevoked()
            await session.commit()
        self._row = row
        self._contents = BatchContents.of(self._host.sealer, row.id, row.sealed_key)
        if stored_bytes > self._host.settings.files_max_bytes:
            self._fault = StorageFull(self._host.settings.files_max_bytes)
        return self._fault is None and row.status == "in_progress" and not self._closed()

    def _session(self) -> AbstractAsyncContextManager[Any]:
        return self._host.database.tenant(self._tenant_id)

    def _closed(self) -> bool:
        return self._host.ports.switches.closed() is not None

    async def _run_lines(self) -> None:
        caller = self._caller()
        if caller is None:
            return
        await self._reserve(caller)
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(self._capacity.concurrency):
                    group.create_task(self._work())
        finally:
            if self._advance is not None:
                self._host.ports.spend.settle(self._advance, None)

    def _caller(self) -> Caller | None:
        """Return the creator of the batch with their current rights. Returns None, and stops the batch, if the
        credential has been revoked or lost the right to call models."""
        try:
            caller = self._host.credentials.restore(self._stored_caller)
        except Unauthenticated:
            self._fault = BatchCredentialRevoked()
            return None
        if not caller.has_scope("chat:write"):
            self._fault = BatchCredentialRevoked()
            return None
        return caller

    async def _reserve(self, caller: Caller) -> None:
        """Reserve the estimated amounts of the pending lines, so that other calls cannot use that part of the budget.
        If too little is left, each line is admitted or refused by itself."""
        async with self._session() as session:
            amounts = await statements.remaining(session, self._batch_id)
        received = Received(
            request_id="", method="POST", path=RECORDED_PATHS[self._row.api], headers={}, client_address=self._row.ip,
            received_at=time.time(), started=time.monotonic(),
        )  # fmt: skip
        try:
            identified = pipeline.obeyed(
                await pipeline.IDENTIFY_KNOWN(received, caller, self._host.ports, "chat:write")
            )
            self._advance = await reserve_in_advance(identified, amounts, self._host.ports)
        except Refusal as error:
            log.info("batch.not_reserved", batch_id=str(self._batch_id), code=error.code)

    async def _work(self) -> None:
        """Run one line after the other."""
        while self._may_start():
            async with self._capacity.slots:
                # The wait for the slot may have been long. The credential is checked before each line.
                if not self._may_start() or self._fault is not None or (caller := self._caller()) is None:
                    return
                # The time of a turn begins with its first line, so the wait for a slot does not shorten the turn.
                self._deadline = min(self._deadline, time.monotonic() + TURN_SECONDS)
                line = await self._claim()
                if line is None:
                    return
                if self._is_stopped():
                    await self._unclaim(line.number)
                    return
                await self._run_claimed(caller, line)

    def _may_start(self) -> bool:
        """Return whether another line can be started in this turn."""
        return time.monotonic() < self._deadline and not self._is_stopped()

    def _is_stopped(self) -> bool:
        """Return whether no line can be started now, because the worker stops or the platform is closed."""
        return self._capacity.stopping.is_set() or self._closed()

    async def _claim(self) -> Any:
        """Return the next line, or None if there is none or the database is unavailable. No error is raised, because it
        would cancel the lines in progress."""
        try:
            async with self._session() as session:
                line = await statements.claim(session, self._batch_id, self._runner)
                await session.commit()
        except DATABASE_UNAVAILABLE_ERRORS:
            return None
        return line

    async def _unclaim(self, number: int) -> None:
        """Make a claimed line pending again. If the database is unavailable, the line ends as interrupted."""
        with suppress(*DATABASE_UNAVAILABLE_ERRORS):
            async with self._session() as session:
                await statements.unclaim(session, self._batch_id, number)
                await session.commit()

    async def _run_claimed(self, caller: Caller, line: Any) -> None:
        amounts = CallAmounts(nano_usd=line.estimated_nano_usd, requests=1, tokens=line.estimated_tokens)
        release = released_once(lambda: self._release(amounts))
        try:
            values = await run_line(
                self._host, self._row, line, contents=self._contents, caller=caller, release_advance=release
            )
        finally:
            release()
        await self._store(line.number, values)

    def _release(self, amounts: CallAmounts) -> None:
        if self._advance is not None:
            self._host.spender.release(self._advance, amounts)

    async def _store(self, number: int, values: dict[str, Any]) -> None:
        deadline = time.monotonic() + _STORE_SECONDS
        while True:
            try:
                async with self._session() as session:
                    await statements.store_result(session, self._batch_id, number, values)
                    await session.commit()
            except DATABASE_UNAVAILABLE_ERRORS:
                if time.monotonic() > deadline or self._capacity.stopping.is_set():
                    raise
                await asyncio.sleep(_STORE_RETRY_SECONDS)
            else:
                return

    async def _end(self) -> None:
        """End the batch if no line is left or if it was stopped; otherwise queue its next turn."""
        if self._has_ended:
            return
        async with self._session() as session:
            row = await statements.lock(session, self._batch_id)
            if row is None or row.runner != self._runner:
                # The batch was deleted, or another process has taken over.
                return
            # No line of this turn is in progress here. A line is still marked as running if the database became
            # unavailable while the line was claimed.
            await statements.mark_interrupted(session, row.id)
            pending = (await statements.remaining(session, row.id)).requests
            is_expired = row.expires_at <= utc_now()
            if pending and self._fault is None and row.status == "in_progress" and not is_expired:
                at = utc_now() + _CLOSED_RETRY if self._closed() else None
                await BATCH_JOBS.queue(session, run_batch, self._tenant_id, at=at, batch_id=str(row.id))
                await session.commit()
                return
            if pending:
                if self._fault is not None and row.status != "cancelling":
                    row.error_code, row.error_message = self._fault.code, self._fault.text
                expires = is_expired and self._fault is None and row.status != "cancelling"
                await session.flush()
                await statements.end_pending(session, row.id, "expired" if expires else "cancelled")
            row.status, row.finalizing_at = "finalizing", row.finalizing_at or utc_now()
            await session.commit()
        async with self._session() as session:
            row = await statements.lock(session, self._batch_id)
            if row is None or row.ended_at is not None:
                return
            change = Change(session, None, tenant_id=self._tenant_id)
            await statements.finish(change, row)
            await change.commit()
