"""Counts sign-in attempts in PostgreSQL, across all workers and independently of Redis.

A sign-in needs the database anyway, so the counters add no dependency.
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
from gatehouse.foundation.counters import BUCKET_SECONDS, WINDOW_SECONDS, Claim, RateDecision, decision
from gatehouse.foundation.storage.database import Database

_TAKE: Final = text(
    "SELECT allowed, claim, used, wait"
    " FROM gatehouse_take_try(CAST(:keys AS bytea[]), CAST(:limits AS bigint[]), :span, :bucket)"
)

#: Number of connections that a worker uses for counting. The other connections stay free during a flood of attempts.
_MAX_CONNECTIONS: Final = 2
_DATABASE_TIMEOUT_SECONDS: Final = 5
_MAX_REFUSED_KEYS: Final = 10_000


class TryCounters:
    """Implements `engine.ports.Counters` for sign-in attempts. Raises SQLAlchemy's errors if the database is
    unreachable.

    A key that has reached its limit is refused from memory until it may have room again, so that a flood of guesses
    does not cause a flood of queries.
    """

    def __init__(self, database: Database, clock: Clock = SYSTEM_CLOCK, *, window: float = WINDOW_SECONDS) -> None:
        self._database = database
        self._clock = clock
        self._spans = {
            "span": timedelta(seconds=window),
            "bucket": timedelta(seconds=min(BUCKET_SECONDS, window / 600)),
        }
        self._semaphore = asyncio.Semaphore(_MAX_CONNECTIONS)
        #: monotonic time at which a refused key may have room again, by key
        self._refused: OrderedDict[str, float] = OrderedDict()

    async def take(self, key: str, limit: int, *, own_limit: int | None = None) -> RateDecision:
        """Count one attempt of `key` if there were fewer than `limit` attempts in the last 60 seconds. All processes
        share the count, so `own_limit` is ignored."""
        del own_limit
        return await self.take_all((key, limit))

    async def take_all(self, *claims: Claim) -> RateDecision:
        """Count one attempt against every claim, or against none if the limit of one is reached. Needs at least one
        claim. Raises SQLAlchemy's errors."""
        if (refusal := self._cached_refusal(claims)) is not None:
            return refusal
        try:
            async with asyncio.timeout(_DATABASE_TIMEOUT_SECONDS), self._semaphore:
                # The check is repeated, because a concurrent attempt may have been refused while this attempt waited.
                return self._cached_refusal(claims) or await self._query(claims)
        except TimeoutError:
            raise sql.TimeoutError("the database did not count the attempt in time") from None

    async def _query(self, claims: Sequence[Claim]) -> RateDecision:
        values = {"keys": [_digest(key) for key, _ in claims], "limits": [limit for _, limit in claims]}
        async with self._database.at_once() as connection:
            row = (await connection.execute(_TAKE, values | self._spans)).one()
        key, limit = claims[row.claim]
        if not row.allowed:
            self._remember(key, self._clock.monotonic() + row.wait)
        return decision(
            allowed=row.allowed, claim=row.claim, limit=limit, used=row.used, wait=row.wait, now=self._clock.now()
        )

    def _cached_refusal(self, claims: Sequence[Claim]) -> RateDecision | None:
        now = self._clock.monotonic()
        for index, (key, limit) in enumerate(claims):
            wait = self._refused.get(key, now) - now
            if wait > 0:
                return decision(allowed=False, claim=index, limit=limit, used=limit, wait=wait, now=self._clock.now())
        return None

    def _remember(self, key: str, until: float) -> None:
        if len(self._refused) >= _MAX_REFUSED_KEYS:
            self._refused.popitem(last=False)
        self._refused[key] = until
        self._refused.move_to_end(key)


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
