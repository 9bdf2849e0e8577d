"""Creates and deletes SCIM tokens."""

from typing import Final

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.errors import FieldFault, Unprocessable
from gatehouse.foundation.identity import Caller
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.secrets import tokens
from gatehouse.foundation.storage.locks import ScopedLock, require_room
from gatehouse.platform.access.scim.errors import TooManyScimTokens
from gatehouse.platform.access.scim.schemas import NewScimToken, ScimTokenCreated
from gatehouse.platform.access.scim.table import ScimTokenRow, count_tokens
from gatehouse.platform.access.users import rights
from gatehouse.platform.changes.change import Change

#: Maximum number of tokens of an organization.
MAX_TOKENS: Final = 100
_NOTE: Final = "Keep this token: it is not shown again. It is good under /api/scim/v2 alone."


async def create(change: Change, caller: Caller, new: NewScimToken) -> ScimTokenCreated:
    """Create a token of the organization. The token stays valid when its creator is deleted. A directory creates users
    and changes their addresses, so the caller must be allowed to grant the role user. Raises `CannotGrant`,
    `TooManyScimTokens`, and `Unprocessable` if `expires_at` is not in the future."""
    rights.require_may_grant(caller, "user")
    now = utc_now()
    if new.expires_at is not None and new.expires_at <= now:
        raise Unprocessable(faults=[FieldFault("expires_at", "must be in the future")])
    await require_room(change.session, ScopedLock.SCIM_TOKENS, count_tokens, limit=MAX_TOKENS, full=TooManyScimTokens)
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
    # Urgent, so that the token works when the response is sent.
    change.touch("scim_token", row.id, urgent=True)
    fields = {name: getattr(row, name) for name in ("id", "description", "created_at", "last_used_at", "expires_at")}
    return ScimTokenCreated.model_validate({**fields, "token": minted.plaintext, "note": _NOTE})


async def delete(change: Change, row: ScimTokenRow) -> None:
    """Delete the token. Every worker refuses it when the response is sent."""
    await change.session.delete(row)
    change.record("scim_token.deleted", "scim_token", row.id, description=row.description)
    change.touch("scim_token", row.id, urgent=True)
