"""Another key signs from now on, without a token refused (`gatehouse keys rotate`).

Three steps: the new key is published; every live worker says that it knows it; then it signs and the old one retires,
published until the last token that it signed has expired. A worker that signed with a key which others do not know yet
would make tokens that they refuse.
"""

import asyncio
import time
from datetime import timedelta
from typing import Any, Final

import msgspec
from psycopg.types.json import Jsonb
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.jwt import SigningKey
from gatehouse.foundation.sealing import Sealer
from gatehouse.foundation.storage.database import Database
from gatehouse.foundation.storage.locks import GlobalLock, acquire
from gatehouse.platform.access.tokens.lifetimes import OUTLIVED_SECONDS
from gatehouse.platform.change import Change
from gatehouse.platform.live.nodes import wait_for

#: Seconds that the workers have to take up the new key.
PATIENCE: Final = 30.0

# Retired from the start: published and signing nothing. Should nobody come back to it, it fades away by itself.
_PUBLISH: Final = text(
    "INSERT INTO signing_keys (kid, public_jwk, sealed_private, retired_at, expires_at)"
    " VALUES (:kid, :public, :sealed, now(), now() + interval '1 hour')"
)
_RETIRE: Final = text(
    "UPDATE signing_keys SET retired_at = now(), expires_at = :expires_at WHERE retired_at IS NULL RETURNING kid"
)
_CUT_OFF: Final = text("UPDATE signing_keys SET expires_at = now() WHERE kid <> :kid AND expires_at > now()")
_SIGN: Final = text("UPDATE signing_keys SET retired_at = NULL, expires_at = NULL, created_at = now() WHERE kid = :kid")


class WorkersBehind(Exception):
    """Live workers that have not taken up the new key. The old one goes on signing."""

    def __init__(self, names: list[str]) -> None:
        super().__init__(", ".join(names))
        self.names = names


class Rotated(msgspec.Struct):
    new_kid: str
    old_kids: list[str]
    #: workers that know the new key
    workers: int


async def rotate(database: Database, sealer: Sealer, *, stolen: bool = False, patience: float = PATIENCE) -> Rotated:
    """Raises `WorkersBehind`. `stolen`: all older keys are refused from now on, and every token signed with them."""
    key = SigningKey.generate()
    revision = await _publish(database, sealer, key)
    workers = await _known_by_all(database, revision, patience)
    async with database.service() as session:
        change = Change(session, None)
        old = await _exchange(session, key.kid, stolen=stolen)
        change.record("signing_key.rotated", "signing_key", key.kid, retired=old, stolen=stolen)
        change.touch("signing_keys", key.kid, urgent=True)
        await change.commit()
        assert change.revision is not None
    await wait_for(database, change.revision)
    return Rotated(key.kid, old, workers)


async def _publish(database: Database, sealer: Sealer, key: SigningKey) -> int:
    sealed = sealer.seal(key.private_pem(), context=f"signing_key:{key.kid}".encode())
    async with database.service() as session:
        change = Change(session, None)
        values: dict[str, Any] = {"kid": key.kid, "public": Jsonb(key.published()), "sealed": str(sealed)}
        await session.execute(_PUBLISH, values)
        change.touch("signing_keys", key.kid)
        await change.commit()
    assert change.revision is not None
    return change.revision


async def _known_by_all(database: Database, revision: int, patience: float) -> int:
    deadline = time.monotonic() + patience
    while True:
        propagation = await wait_for(database, revision)
        if not propagation.pending:
            return propagation.total
        if time.monotonic() >= deadline:
            raise WorkersBehind(propagation.pending)
        await asyncio.sleep(0.1)


async def _exchange(session: AsyncSession, kid: str, *, stolen: bool) -> list[str]:
    # Each of two rotations at once must see the key that the one before it made current.
    await acquire(session, GlobalLock.SIGNING_KEY_ROTATION)
    expires_at = utc_now() + timedelta(seconds=OUTLIVED_SECONDS)
    old = list((await session.execute(_RETIRE, {"expires_at": expires_at})).scalars())
    if stolen:
        await session.execute(_CUT_OFF, {"kid": kid})
    await session.execute(_SIGN, {"kid": kid})
    return old
