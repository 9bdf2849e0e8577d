"""Rotates the signing key without refusing a token (`gatehouse keys rotate`).

A rotation has three steps: publish the new key, wait until every live worker has loaded it, then sign with it and
retire the old key. The old key stays published until its last token has expired. The wait is necessary, because workers
refuse tokens that are signed with a key that they have not loaded.
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
from gatehouse.foundation.secrets.sealing import Sealer
from gatehouse.foundation.storage.database import Database
from gatehouse.foundation.storage.locks import GlobalLock, acquire
from gatehouse.platform.access.tokens.lifetimes import MAX_TOKEN_AGE_SECONDS
from gatehouse.platform.changes.change import Change
from gatehouse.platform.live.nodes import wait_until_confirmed

#: Time within which all workers must load the new key.
WORKERS_TIMEOUT_SECONDS: Final = 30.0

# The new key is inserted as retired: it is published but does not sign. If the rotation is aborted, the key expires by
# itself.
_PUBLISH: Final = text(
    "INSERT INTO signing_keys (kid, public_jwk, sealed_private, retired_at, expires_at)"
    " VALUES (:kid, :public, :sealed, now(), now() + interval '1 hour')"
)
_RETIRE: Final = text(
    "UPDATE signing_keys SET retired_at = now(), expires_at = :expires_at WHERE retired_at IS NULL RETURNING kid"
)
_EXPIRE_OLD_KEYS: Final = text("UPDATE signing_keys SET expires_at = now() WHERE kid <> :kid AND expires_at > now()")
_ACTIVATE: Final = text(
    "UPDATE signing_keys SET retired_at = NULL, expires_at = NULL, created_at = now() WHERE kid = :kid"
)


class WorkersNotReady(Exception):
    """Some live workers have not loaded the new key. The old key still signs."""

    def __init__(self, names: list[str]) -> None:
        super().__init__(", ".join(names))
        self.names = names


class RotationResult(msgspec.Struct):
    new_kid: str
    old_kids: list[str]
    #: number of workers that have loaded the new key
    workers: int


async def rotate(
    database: Database, sealer: Sealer, *, stolen: bool = False, timeout_seconds: float = WORKERS_TIMEOUT_SECONDS
) -> RotationResult:
    """Rotate the signing key. With `stolen`, all older keys expire at once, and every token that they signed is
    refused.

    Raises `WorkersNotReady`."""
    key = SigningKey.generate()
    revision = await _publish(database, sealer, key)
    workers = await _wait_for_workers(database, revision, timeout_seconds)
    async with database.service() as session:
        change = Change(session, None)
        old = await _switch_keys(session, key.kid, stolen=stolen)
        change.record("signing_key.rotated", "signing_key", key.kid, retired=old, stolen=stolen)
        change.touch("signing_keys", key.kid, urgent=True)
        await change.commit()
        assert change.revision is not None
    await wait_until_confirmed(database, change.revision)
    return RotationResult(key.kid, old, workers)


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


async def _wait_for_workers(database: Database, revision: int, timeout_seconds: float) -> int:
    deadline = time.monotonic() + timeout_seconds
    while True:
        propagation = await wait_until_confirmed(database, revision)
        if not propagation.pending:
            return propagation.total
        if time.monotonic() >= deadline:
            raise WorkersNotReady(propagation.pending)
        await asyncio.sleep(0.1)


async def _switch_keys(session: AsyncSession, kid: str, *, stolen: bool) -> list[str]:
    # The lock makes a second concurrent rotation see the key that the first one activated.
    await acquire(session, GlobalLock.SIGNING_KEY_ROTATION)
    expires_at = utc_now() + timedelta(seconds=MAX_TOKEN_AGE_SECONDS)
    old = list((await session.execute(_RETIRE, {"expires_at": expires_at})).scalars())
    if stolen:
        await session.execute(_EXPIRE_OLD_KEYS, {"kid": kid})
    await session.execute(_ACTIVATE, {"kid": kid})
    return old
