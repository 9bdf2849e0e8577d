"""The outbox's one reader: hands events to everybody who listens (reference 3, Events).

An event is written with the change that caused it. It is marked as dispatched in the transaction in which the listeners
note what it means to them, so each listener has it once, whatever is killed meanwhile. Listeners are named in
`keeper.work`; they write rows and nothing else: what asks the outside world works from these rows afterwards.
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
    #: as JSON
    payload: str
    created_at: datetime


#: Called in the service role's transaction, with events in their order. Raises nothing that it can help.
Listener: TypeAlias = Callable[[AsyncSession, Sequence[Event]], Awaitable[None]]

#: Events of one transaction.
BATCH: Final = 1000

# Most of the time there is nothing, which takes one round trip to know.
_ANY: Final = text("SELECT EXISTS (SELECT FROM outbox WHERE dispatched_at IS NULL)")
# One reader at a time, on whatever machine: two would mix up the order.
_LOCK: Final = text(GlobalLock.OUTBOX_READER.try_sql)
_WAITING: Final = text(
    "SELECT id, tenant_id, event_type, payload::text, created_at FROM outbox WHERE dispatched_at IS NULL"
    " ORDER BY created_at, id LIMIT :most"
)
_DISPATCHED: Final = text("UPDATE outbox SET dispatched_at = now() WHERE id = ANY(CAST(:ids AS uuid[]))")


async def dispatch(database: Database, listeners: Sequence[Listener], *, most: int = BATCH) -> int:
    """Tells the listeners of the oldest events that wait. Returns how many these were; none while another process is
    at it."""
    async with database.at_once() as connection:
        if not (await connection.execute(_ANY)).scalar_one():
            return 0
    async with database.service() as session:
        if not (await session.execute(_LOCK)).scalar_one():
            return 0
        events = [Event(*row) for row in await session.execute(_WAITING, {"most": most})]
        if events:
            for listener in listeners:
                await _tell(session, listener, events)
            await session.execute(_DISPATCHED, {"ids": [event.id for event in events]})
            await session.commit()
        return len(events)


async def _tell(session: AsyncSession, listener: Listener, events: Sequence[Event]) -> None:
    """An event that a listener cannot take costs that listener this event: it must not hold up everybody's others for
    ever."""
    try:
        async with session.begin_nested():
            await listener(session, events)
    except (OperationalError, InterfaceError):
        # The database's trouble, not the event's: all of it is tried again.
        raise
    except Exception as error:
        if len(events) > 1:
            for event in events:
                await _tell(session, listener, [event])
            return
        log.warning(
            "outbox.event_not_taken", event_id=str(events[0].id), event_type=events[0].event_type,
            listener=f"{listener.__module__}.{listener.__qualname__}", reason=type(error).__name__,
        )  # fmt: skip
