"""Counting tries to get in, in PostgreSQL: of all workers together, with a Redis, without one, and while it is away.

What is tried is looked up in the database anyway, so nothing is lost where that is away: nobody gets in.
"""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from sqlalchemy import exc as sql
from sqlalchemy import text

from gatehouse.foundation.clock import SYSTEM_CLOCK, Clock
from gatehouse.foundation.counters import BUCKET_SECONDS, WINDOW_SECONDS, Claim, Taken, decision
from gatehouse.foundation.storage.database import Database

_TAKE: Final = text(
    "SELECT allowed, claim, used, wait"
    " FROM gatehouse_take_try(CAST(:keys AS bytea[]), CAST(:limits AS bigint[]), :span, :bucket)"
)

#: A crowd that tries one account waits for its turn with so many connections of a worker's, and leaves the others.
_CONNECTIONS: Final = 2
_PATIENCE_SECONDS: Final = 5
_MOST_REFUSED: Final = 10_000


class TryCounters:
    """Shape of `engine.ports.Counters`, but that it raises SQLAlchemy's errors where the database is away.

    A key without room is refused from memory until its next slot comes free: a flood of guesses does not become a
    flood of queries.
    """

    def __init__(self, database: Database, clock: Clock = SYSTEM_CLOCK, *, window: float = WINDOW_SECONDS) -> None:
        self._database = database
        self._clock = clock
        self._spans = {
            "span": timedelta(seconds=window),
            "bucket": timedelta(seconds=min(BUCKET_SECONDS, window / 600)),
        }
        self._turns = asyncio.Semaphore(_CONNECTIONS)
        #: by key, when (monotonic) it may have room again
        self._refused: OrderedDict[str, float] = OrderedDict()

    async def take(self, key: str, limit: int) -> Taken:
        """Counts one try of `key` against `limit` in the last 60 seconds, if it fits."""
        return await self.take_all((key, limit))

    async def take_all(self, *claims: Claim) -> Taken:
        """Counts one try against every claim, or against none if one has no room. At least one claim."""
        if (known := self._known(claims)) is not None:
            return known
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS), self._turns:
                # Refused meanwhile, perhaps.
                return self._known(claims) or await self._ask(claims)
        except TimeoutError:
            raise sql.TimeoutError("the database does not count") from None

    async def _ask(self, claims: Sequence[Claim]) -> Taken:
        values = {"keys": [_digest(key) for key, _ in claims], "limits": [limit for _, limit in claims]}
        async with self._database.at_once() as connection:
            row = (await connection.execute(_TAKE, values | self._spans)).one()
        key, limit = claims[row.claim]
        if not row.allowed:
            self._remember(key, self._clock.monotonic() + row.wait)
        return decision(
            allowed=row.allowed, claim=row.claim, limit=limit, used=row.used, wait=row.wait, now=self._clock.now()
        )

    def _known(self, claims: Sequence[Claim]) -> Taken | None:
        now = self._clock.monotonic()
        for index, (key, limit) in enumerate(claims):
            wait = self._refused.get(key, now) - now
            if wait > 0:
                return decision(allowed=False, claim=index, limit=limit, used=limit, wait=wait, now=self._clock.now())
        return None

    def _remember(self, key: str, until: float) -> None:
        if len(self._refused) >= _MOST_REFUSED:
            self._refused.popitem(last=False)
        self._refused[key] = until
        self._refused.move_to_end(key)


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
