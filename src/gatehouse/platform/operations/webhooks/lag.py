"""Measures the lag of webhook deliveries for a metric."""

from typing import Final

import msgspec
from sqlalchemy import text

from gatehouse.platform.background.jobs import Tools

# The query covers the outbox and the queue. A leased turn is due in the future, so it does not count.
_MEASURE: Final = text(
    "SELECT coalesce(extract(epoch FROM now() - least((SELECT min(created_at) FROM outbox WHERE dispatched_at IS NULL),"
    " (SELECT min(due_at) FROM webhook_queues WHERE due_at <= now()))), 0)"
)


class Lag(msgspec.Struct):
    """The last measurement of this process."""

    #: time for which the oldest event has waited; 0 if no event waits
    seconds: float = 0.0

    async def measure(self, tools: Tools) -> None:
        """Take a new measurement."""
        async with tools.database.service() as session:
            self.seconds = float((await session.execute(_MEASURE)).scalar_one())
