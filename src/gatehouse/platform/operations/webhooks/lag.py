"""How late events are on their way to webhooks: for the figures."""

from typing import Final

import msgspec
from sqlalchemy import text

from gatehouse.platform.jobs import Tools

# In the outbox, and then in the queue. A turn that somebody has is due in the future.
_MEASURE: Final = text(
    "SELECT coalesce(extract(epoch FROM now() - least((SELECT min(created_at) FROM outbox WHERE dispatched_at IS NULL),"
    " (SELECT min(due_at) FROM webhook_queues WHERE due_at <= now()))), 0)"
)


class Lag(msgspec.Struct):
    """As it was when this process last looked."""

    #: since when the oldest waits; 0 where none does
    seconds: float = 0.0

    async def measure(self, tools: Tools) -> None:
        async with tools.database.service() as session:
            self.seconds = float((await session.execute(_MEASURE)).scalar_one())
