"""The rules of SCIM tokens."""

import time
from typing import Final
from uuid import UUID

from gatehouse.foundation import tokens
from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.errors import FieldFault, Unprocessable
from gatehouse.foundation.identity import Caller
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.storage.database import Database
from gatehouse.platform.access.scim import table
from gatehouse.platform.access.scim.schemas import NewScimToken, ScimTokenCreated
from gatehouse.platform.access.scim.table import ScimTokenRow
from gatehouse.platform.change import Change

_NOTE: Final = "Keep this token: it is not shown again. It is good under /api/scim/v2 alone."

_NOTED_SECONDS: Final = 60.0
#: More tokens than a worker meets in a minute.
_MOST_NOTED: Final = 10_000


async def create(change: Change, caller: Caller, new: NewScimToken) -> ScimTokenCreated:
    """A token of the organization's: it outlives who made it. Raises `Unprocessable` where it would be expired."""
    now = utc_now()
    if new.expires_at is not None and new.expires_at <= now:
        raise Unprocessable(faults=[FieldFault("expires_at", "must be in the future")])
    minted = tokens.mint_token("scim_")
    row = ScimTokenRow(
        id=new_id(),
        tenant_id=change.tenant_id,
        description=new.description,
        digest=minted.digest,
        created_by=caller.user_id,
        created_at=now,
        last_used_at=None,
        expires_at=new.expires_at,
    )
    change.session.add(row)
    change.record("scim_token.created", "scim_token", row.id, description=row.description, expires_at=row.expires_at)
    # Urgent, so that the directory can be set up with it right after the answer.
    change.touch("scim_token", row.id, urgent=True)
    shown = {name: getattr(row, name) for name in ("id", "description", "created_at", "last_used_at", "expires_at")}
    return ScimTokenCreated.model_validate({**shown, "token": minted.plaintext, "note": _NOTE})


async def delete(change: Change, row: ScimTokenRow) -> None:
    """Refused on every worker from the answer on."""
    await change.session.delete(row)
    change.record("scim_token.deleted", "scim_token", row.id, description=row.description)
    change.touch("scim_token", row.id, urgent=True)


class Uses:
    """Writes down that a token was used, once a minute for each: a directory may call a thousand times in that."""

    def __init__(self) -> None:
        self._noted: dict[UUID, float] = {}

    def due(self, token_id: UUID) -> bool:
        now = time.monotonic()
        if now - self._noted.get(token_id, -_NOTED_SECONDS) < _NOTED_SECONDS:
            return False
        if len(self._noted) >= _MOST_NOTED:
            self._noted.clear()
        self._noted[token_id] = now
        return True

    async def note(self, database: Database, token_id: UUID) -> None:
        async with database.service() as session:
            await table.note_use(session, token_id)
            await session.commit()
