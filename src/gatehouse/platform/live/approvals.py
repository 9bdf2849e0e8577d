"""Holds requests until a person decides. Implements the engine's port `Approvals`.

A held request is a row, which administrators can see on every worker. The worker is notified of the decision by the
change feed (topic `approval`), and also polls every second in case a notification is lost. If the row cannot be written
or read, the request is refused, so an outage of the database never lets a request through.

    pending -> approved | denied     by a person (`governance.approvals`)
            -> expired               no decision within `DLP_PROMPT_TIMEOUT_SECONDS`
            -> cancelled             the client disconnected, or the worker that held the request stops
"""

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import Any, Final, Literal, TypeVar
from uuid import UUID

import msgspec
import psycopg
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.engine.exchange import CallRequest
from gatehouse.engine.verdict import ApprovalResult, Ask
from gatehouse.foundation.errors import Unavailable
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.storage.database import Database
from gatehouse.platform.live.nodes import NODE_EXPIRY_SECONDS, Node
from gatehouse.platform.live.replica.state import Replica

T = TypeVar("T")

#: Maximum number of requests that a worker holds, in total and for one organization.
MAX_WAITING_REQUESTS: Final = 1_000
MAX_WAITING_PER_TENANT: Final = 250
#: Interval at which decisions are polled if no notification arrives.
POLL_INTERVAL_SECONDS: Final = 1.0
#: Timeout of one database operation.
_DATABASE_TIMEOUT_SECONDS: Final = 5.0
#: Time after which another worker expires an approval that its own worker failed to expire.
_OVERDUE_SECONDS: Final = 5.0
_DATABASE_ERRORS: Final = (SQLAlchemyError, psycopg.Error, OSError, TimeoutError)

_STOPPING: Final = "stopping"

_INSERT = text(
    "INSERT INTO approvals (id, tenant_id, request_id, user_id, client_id, reason, rule_id, rule_name, entity_types,"
    " direction, model, node, expires_at) VALUES (:id, :tenant, :request, :user, :client, :reason, :rule, :rule_name,"
    " CAST(:entity_types AS jsonb), :direction, :model, :node, now() + make_interval(secs => :seconds))"
)
_DECIDED = text("SELECT id, status FROM approvals WHERE id = ANY(:ids) AND status <> 'pending'")
_END = text("UPDATE approvals SET status = :status, decided_at = now() WHERE id = :id AND status = 'pending'")
_END_ALL = text(
    "UPDATE approvals SET status = 'cancelled', decided_at = now() WHERE node = :node AND status = 'pending'"
)
_END_ABANDONED = text(
    "UPDATE approvals SET status = CASE WHEN expires_at < now() THEN 'expired' ELSE 'cancelled' END,"
    " decided_at = now() WHERE status = 'pending' AND (expires_at < now() - make_interval(secs => :overdue)"
    " OR NOT EXISTS (SELECT FROM nodes WHERE nodes.id = approvals.node"
    " AND nodes.seen_at > now() - make_interval(secs => :node_expiry)))"
)


class ApprovalUnavailable(Unavailable):
    code = "approval_unavailable"
    message = "This request needs an approval, but approvals are temporarily unavailable. Try again."


class TooManyWaitingRequests(Unavailable):
    code = "approvals_overloaded"
    message = "Too many requests are waiting for approval. Try again later."


class WorkerStopping(Unavailable):
    """The worker has finished draining, and the request still waits: 503."""

    code = "worker_stopping"
    message = (
        "This request waits for an approval, and the worker that holds it is stopping. The approval is cancelled. Send"
        " the request again."
    )

    def __init__(self) -> None:
        super().__init__(headers={"Retry-After": "1"})


class _WaitingRequest(msgspec.Struct, frozen=True, eq=False):
    tenant_id: UUID
    #: future that is resolved with the status of the approval, or with `_STOPPING`
    status: asyncio.Future[ApprovalResult | Literal["stopping"]]


class LiveApprovals:
    """The requests that one worker holds, each for at most `seconds`. Requests that are not held cause no work."""

    def __init__(self, database: Database, node: Node, replica: Replica, *, seconds: float) -> None:
        self._database = database
        self._node = node
        self._replica = replica
        self._seconds = seconds
        self._waiting_requests: dict[UUID, _WaitingRequest] = {}
        self._is_stopping = False
        self._watcher: asyncio.Task[None] | None = None
        #: database operations that no caller awaits any more, but that must finish
        self._background_tasks: set[asyncio.Task[Any]] = set()

    async def start(self) -> None:
        """End the abandoned approvals of earlier workers. Exceptions of the database propagate."""
        async with self._database.service() as session:
            await end_abandoned(session)
            await session.commit()

    async def stop(self) -> None:
        """Cancel the approvals of this worker. If the database is unreachable, another worker cancels them with
        `end_abandoned`."""
        if self._watcher is not None:
            self._watcher.cancel()
        with contextlib.suppress(*_DATABASE_ERRORS):
            async with asyncio.timeout(_DATABASE_TIMEOUT_SECONDS):
                await asyncio.gather(*self._background_tasks, return_exceptions=True)
                async with self._database.service() as session:
                    await session.execute(_END_ALL, {"node": self._node.id})
                    await session.commit()

    def release(self) -> None:
        """End the wait of all requests with `WorkerStopping`, and hold no further requests."""
        self._is_stopping = True
        for request in self._waiting_requests.values():
            if not request.status.done():
                request.status.set_result(_STOPPING)

    async def decision(self, x: CallRequest, ask: Ask) -> ApprovalResult:
        """Hold the request, and return the result (see `engine.ports.Approvals`). Raises `ApprovalUnavailable`,
        `TooManyWaitingRequests` and `WorkerStopping`."""
        if self._is_stopping:
            raise WorkerStopping
        tenant_id = x.identified.policy.tenant_id
        tenant_count = sum(request.tenant_id == tenant_id for request in self._waiting_requests.values())
        if len(self._waiting_requests) >= MAX_WAITING_REQUESTS or tenant_count >= MAX_WAITING_PER_TENANT:
            raise TooManyWaitingRequests
        approval_id = new_id()
        request = self._waiting_requests[approval_id] = _WaitingRequest(
            tenant_id, asyncio.get_running_loop().create_future()
        )
        try:
            await self._insert(approval_id, x, ask)
            self._start_watcher()
            done, _ = await asyncio.wait({request.status}, timeout=self._seconds)
            result = request.status.result() if done else await self._end(approval_id, "expired")
            if result == _STOPPING:
                result = await self._end(approval_id, "cancelled")
                if result == "cancelled":
                    raise WorkerStopping
        except asyncio.CancelledError:
            self._finish_in_background(asyncio.create_task(self._cancel(approval_id)))
            raise
        finally:
            del self._waiting_requests[approval_id]
        return result

    async def _insert(self, approval_id: UUID, x: CallRequest, ask: Ask) -> None:
        caller = x.identified.caller
        values = {
            "id": approval_id, "tenant": x.identified.policy.tenant_id, "request": x.identified.received.request_id,
            "user": caller.user_id, "client": caller.client_id, "reason": ask.reason, "rule": ask.rule_id,
            "rule_name": ask.rule_name, "entity_types": msgspec.json.encode(ask.entity_types).decode(),
            "direction": ask.direction, "model": x.call.model,
            "node": self._node.id, "seconds": self._seconds,
        }  # fmt: skip

        async def insert() -> None:
            async with self._database.service() as session:
                await session.execute(_INSERT, values)
                await session.commit()

        try:
            await self._with_timeout(insert())
        except _DATABASE_ERRORS:
            raise ApprovalUnavailable from None

    async def _end(self, approval_id: UUID, status: Literal["expired", "cancelled"]) -> ApprovalResult:
        """Give the approval this status, and return its status. This is a decision if a person decided at the last
        moment."""

        async def end() -> ApprovalResult:
            async with self._database.service() as session:
                await session.execute(_END, {"id": approval_id, "status": status})
                await session.commit()
                result: ApprovalResult = (await session.execute(_DECIDED, {"ids": [approval_id]})).one().status
                return result

        try:
            return await self._with_timeout(end())
        except _DATABASE_ERRORS:
            return status

    async def _with_timeout(self, operation: Coroutine[Any, Any, T]) -> T:
        """Run a database operation. Raises `TimeoutError` immediately after the timeout. Cancelling an operation on a
        dead connection takes ten more seconds, which are spent in the background."""
        task = asyncio.create_task(operation)
        try:
            done, _ = await asyncio.wait({task}, timeout=_DATABASE_TIMEOUT_SECONDS)
        except asyncio.CancelledError:
            # The operation must have ended before the row is changed again.
            task.cancel()
            self._finish_in_background(task)
            await asyncio.wait({task})
            raise
        if not done:
            task.cancel()
            self._finish_in_background(task)
            raise TimeoutError
        return task.result()

    def _finish_in_background(self, task: asyncio.Task[Any]) -> None:
        self._background_tasks.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[Any]) -> None:
        self._background_tasks.discard(task)
        # Retrieves the exception so that asyncio does not log it. The caller already has a result.
        _ = task.cancelled() or task.exception()

    async def _cancel(self, approval_id: UUID) -> None:
        with contextlib.suppress(*_DATABASE_ERRORS):
            async with asyncio.timeout(_DATABASE_TIMEOUT_SECONDS), self._database.service() as session:
                await session.execute(_END, {"id": approval_id, "status": "cancelled"})
                await session.commit()

    def _start_watcher(self) -> None:
        """Start the task that watches all held requests, unless it is running. The task ends when no request is
        held."""
        if self._watcher is None or self._watcher.done():
            self._watcher = asyncio.create_task(self._watch(), name="approvals")

    async def _watch(self) -> None:
        decisions = self._replica.decisions
        while self._waiting_requests:
            # The event is cleared before the query, so that a decision made during the query causes another query.
            decisions.clear()
            with contextlib.suppress(*_DATABASE_ERRORS):
                await self._read_decisions()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(POLL_INTERVAL_SECONDS):
                    await decisions.wait()

    async def _read_decisions(self) -> None:
        async with asyncio.timeout(_DATABASE_TIMEOUT_SECONDS), self._database.service() as session:
            rows = (await session.execute(_DECIDED, {"ids": list(self._waiting_requests)})).all()
        for row in rows:
            request = self._waiting_requests.get(row.id)
            if request is not None and not request.status.done():
                request.status.set_result(row.status)


async def end_abandoned(session: AsyncSession) -> None:
    """End approvals that no live worker holds: approvals that are overdue, and approvals whose worker is dead or has
    been disconnected for too long. `session` has the service role."""
    await session.execute(_END_ABANDONED, {"overdue": _OVERDUE_SECONDS, "node_expiry": NODE_EXPIRY_SECONDS})
