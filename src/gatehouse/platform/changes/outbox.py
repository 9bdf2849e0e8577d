"""Reads the outbox, and passes its events to the listeners: webhooks (docs/webhooks.md) and SIEM targets.

An event is written in the transaction of the change that caused it. It is marked as dispatched in the transaction in
which the listeners write their rows. So each listener processes it exactly once, even if a process is killed.
`keeper.duties` lists the listeners. Listeners only write rows, from which the delivery to other systems starts later.
"""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Final, NamedTuple, TypeAlias
from uuid import UUID

import structlog
from sqlalchemy import text
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.storage.database import Database
from gatehouse.foundation.storage.locks import GlobalLock

log = structlog.get_logger(__name__)


class Event(NamedTuple):
    id: UUID
    tenant_id: UUID
    event_type: str
    #: a JSON object as text
    payload: str
    created_at: datetime


#: Processes events in order, in a transaction of the service role. A listener should not raise because of a single bad
#: event.
Listener: TypeAlias = Callable[[AsyncSession, Sequence[Event]], Awaitable[None]]

#: Maximum number of events in one transaction.
MAX_BATCH_EVENTS: Final = 1000

# Usually no event waits. This query finds out in one round trip.
_ANY_WAITING: Final = text("SELECT EXISTS (SELECT FROM outbox WHERE dispatched_at IS NULL)")
# Only one process on all machines reads at a time, because two readers would break the order.
_LOCK: Final = text(GlobalLock.OUTBOX_READER.try_sql)
_WAITING: Final = text(
    "SELECT id, tenant_id, event_type, payload::text, created_at FROM outbox WHERE dispatched_at IS NULL"
    " ORDER BY created_at, id LIMIT :limit"
)
_DISPATCHED: Final = text("UPDATE outbox SET dispatched_at = now() WHERE id = ANY(CAST(:ids AS uuid[]))")


async def dispatch(database: Database, listeners: Sequence[Listener], *, limit: int = MAX_BATCH_EVENTS) -> int:
    """Pass the oldest waiting events to the listeners, and return their number. Returns 0 while another process
    dispatches."""
    async with database.at_once() as connection:
        if not (await connection.execute(_ANY_WAITING)).scalar_one():
            return 0
    async with database.service() as session:
        if not (await session.execute(_LOCK)).scalar_one():
            return 0
        events = [Event(*row) for row in await session.execute(_WAITING, {"limit": limit})]
        if events:
            for listener in listeners:
                await _deliver(session, listener, events)
            await session.execute(_DISPATCHED, {"ids": [event.id for event in events]})
            await session.commit()
        return len(events)


async def _deliver(session: AsyncSession, listener: Listener, events: Sequence[Event]) -> None:
    """Pass events to one listener in a savepoint. If the listener fails, retry the events one by one, and skip an event
    that it cannot process, so that this event does not block later ones. Other listeners still receive the event."""
    try:
        async with session.begin_nested():
            await listener(session, events)
    except (OperationalError, InterfaceError):
        # The database failed, not an event, so the whole batch is retried.
        raise
    except Exception as error:
        if len(events) > 1:
            for event in events:
                await _deliver(session, listener, [event])
            return
        log.warning(
            "outbox.event_not_taken", event_id=str(events[0].id), event_type=events[0].event_type,
            listener=f"{listener.__module__}.{listener.__qualname__}", reason=type(error).__name__,
        )  # fmt: skip
