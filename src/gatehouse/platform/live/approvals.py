"""Requests that wait for a person's decision: the engine's port `Approvals`.

A held request is a row that any administrator sees, whichever worker holds it. The decision comes back over the change
feed (topic `approval`), and is looked for every second in case no news comes. Whoever cannot ask, or hear the answer,
refuses: nothing is let through because the database is away.

    pending -> approved | denied     a person (`governance.approvals`)
            -> expired               nobody in `DLP_PROMPT_TIMEOUT_SECONDS`
            -> cancelled             the client left, or the worker that held the request ended
"""

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import Any, Final, TypeVar
from uuid import UUID

import msgspec
import psycopg
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.engine.exchange import Asked
from gatehouse.engine.verdict import Ask
from gatehouse.foundation.errors import Unavailable
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.storage.database import Database
from gatehouse.platform.live.nodes import FORGOTTEN, Node
from gatehouse.platform.live.state import Replica

T = TypeVar("T")

#: Requests that a worker holds at most, and an organization's share of them.
MOST_HELD: Final = 1_000
MOST_OF_ONE: Final = 250
#: Seconds between two looks for decisions without news.
LOOK_EVERY: Final = 1.0
#: Seconds that one question to the database may take.
_PATIENCE: Final = 5.0
#: Seconds after which somebody else expires what its own worker did not.
_OVERDUE: Final = 5.0
_DATABASE_ERRORS: Final = (SQLAlchemyError, psycopg.Error, OSError, TimeoutError)

_ASK = text(
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
    " AND nodes.seen_at > now() - make_interval(secs => :forgotten)))"
)


class ApprovalUnavailable(Unavailable):
    code = "approval_unavailable"
    message = "This needs a person's approval, and nobody can be asked now. Try again."


class TooManyHeld(Unavailable):
    code = "approvals_overloaded"
    message = "Too many requests wait for approval already. Try again later."


class _Held(msgspec.Struct, frozen=True, eq=False):
    tenant_id: UUID
    #: is told the status
    answer: asyncio.Future[str]


class LiveApprovals:
    """One worker's. Costs a request that is not held nothing."""

    def __init__(self, database: Database, node: Node, replica: Replica, *, seconds: float) -> None:
        self._database = database
        self._node = node
        self._replica = replica
        self._seconds = seconds
        self._held: dict[UUID, _Held] = {}
        self._watcher: asyncio.Task[None] | None = None
        #: notes of clients that have left, and questions that took too long: not to be dropped half-way
        self._leaving: set[asyncio.Task[Any]] = set()

    async def start(self) -> None:
        """Ends what the workers before held. Raises what the database raises."""
        async with self._database.service() as session:
            await end_abandoned(session)
            await session.commit()

    async def stop(self) -> None:
        """Nobody waits here any more. Whoever is not told is found by `end_abandoned`."""
        if self._watcher is not None:
            self._watcher.cancel()
        with contextlib.suppress(*_DATABASE_ERRORS):
            async with asyncio.timeout(_PATIENCE):
                await asyncio.gather(*self._leaving, return_exceptions=True)
                async with self._database.service() as session:
                    await session.execute(_END_ALL, {"node": self._node.id})
                    await session.commit()

    async def decision(self, x: Asked, ask: Ask) -> bool:
        """See `engine.ports.Approvals`. Raises `ApprovalUnavailable`, `TooManyHeld`."""
        tenant_id = x.identified.policy.tenant_id
        of_tenant = sum(held.tenant_id == tenant_id for held in self._held.values())
        if len(self._held) >= MOST_HELD or of_tenant >= MOST_OF_ONE:
            raise TooManyHeld
        approval_id = new_id()
        held = self._held[approval_id] = _Held(tenant_id, asyncio.get_running_loop().create_future())
        try:
            await self._ask(approval_id, x, ask)
            self._watch()
            done, _ = await asyncio.wait({held.answer}, timeout=self._seconds)
            status = held.answer.result() if done else await self._expired(approval_id)
        except asyncio.CancelledError:
            self._leave(approval_id)
            raise
        finally:
            del self._held[approval_id]
        return status == "approved"

    async def _ask(self, approval_id: UUID, x: Asked, ask: Ask) -> None:
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
                await session.execute(_ASK, values)
                await session.commit()

        try:
            await self._in_time(insert())
        except _DATABASE_ERRORS:
            raise ApprovalUnavailable from None

    async def _expired(self, approval_id: UUID) -> str:
        """Time is up. The status is what became of it: a decision may have come at the last moment."""

        async def end() -> str:
            async with self._database.service() as session:
                await session.execute(_END, {"id": approval_id, "status": "expired"})
                await session.commit()
                return str((await session.execute(_DECIDED, {"ids": [approval_id]})).one().status)

        try:
            return await self._in_time(end())
        except _DATABASE_ERRORS:
            return "expired"

    async def _in_time(self, question: Coroutine[Any, Any, T]) -> T:
        """Raises `TimeoutError` when it is time: to cancel what goes over a dead connection takes ten seconds more."""
        task = asyncio.create_task(question)
        try:
            done, _ = await asyncio.wait({task}, timeout=_PATIENCE)
        except asyncio.CancelledError:
            # Before anything else is said of this row.
            task.cancel()
            self._finish_behind(task)
            await asyncio.wait({task})
            raise
        if not done:
            task.cancel()
            self._finish_behind(task)
            raise TimeoutError
        return task.result()

    def _leave(self, approval_id: UUID) -> None:
        self._finish_behind(asyncio.create_task(self._cancelled(approval_id)))

    def _finish_behind(self, task: asyncio.Task[Any]) -> None:
        self._leaving.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[Any]) -> None:
        self._leaving.discard(task)
        # Asked for, so that nobody logs it: whoever waited has had an answer.
        _ = task.cancelled() or task.exception()

    async def _cancelled(self, approval_id: UUID) -> None:
        with contextlib.suppress(*_DATABASE_ERRORS):
            async with asyncio.timeout(_PATIENCE), self._database.service() as session:
                await session.execute(_END, {"id": approval_id, "status": "cancelled"})
                await session.commit()

    def _watch(self) -> None:
        """One for all that are held, as long as there are some."""
        if self._watcher is None or self._watcher.done():
            self._watcher = asyncio.create_task(self._look_for_decisions(), name="approvals")

    async def _look_for_decisions(self) -> None:
        news = self._replica.decisions
        while self._held:
            # Before the look: what is decided during it is looked for again.
            news.clear()
            with contextlib.suppress(*_DATABASE_ERRORS):
                await self._look()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_EVERY):
                    await news.wait()

    async def _look(self) -> None:
        async with asyncio.timeout(_PATIENCE), self._database.service() as session:
            rows = (await session.execute(_DECIDED, {"ids": list(self._held)})).all()
        for row in rows:
            held = self._held.get(row.id)
            if held is not None and not held.answer.done():
                held.answer.set_result(row.status)


async def end_abandoned(session: AsyncSession) -> None:
    """Ends what nobody holds any more, as the service role: the worker is dead, or away for longer than it may be."""
    await session.execute(_END_ABANDONED, {"overdue": _OVERDUE, "forgotten": FORGOTTEN})
