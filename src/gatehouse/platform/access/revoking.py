"""Taking rights away at once: what a revocation stops is stopped on every worker when the answer arrives.

Sessions are rows, but their access tokens are believed by signature alone. So whoever ends a session also writes its id
into `revocations`, which every worker keeps in memory until the last token that it could stop has expired.
"""

import math
from datetime import timedelta
from typing import Final
from uuid import UUID

from sqlalchemy import text

from gatehouse.foundation.clock import utc_now
from gatehouse.platform.change import Change

#: seconds that a session's access token is good for at most, where there are refresh tokens (decisions 3)
ACCESS_TOKEN_SECONDS: Final = 900
#: Clocks of machines differ; a revocation is kept this much longer than any token it could stop.
_SKEW_SECONDS: Final = 60

_REVOKE = text(
    "INSERT INTO revocations (subject, kind, expires_at) VALUES (:subject, :kind, :until)"
    " ON CONFLICT (subject) DO UPDATE SET expires_at = GREATEST(revocations.expires_at, excluded.expires_at)"
)
_END = text(
    "UPDATE sessions SET revoked_at = now(), revoked_reason = :reason"
    " WHERE user_id = :user AND revoked_at IS NULL AND expires_at > now()"
    " AND id = COALESCE(CAST(:only AS uuid), id) AND id IS DISTINCT FROM CAST(:but AS uuid) RETURNING id, tokens_until"
)
# Half-way sign-ins: their password was judged before.
_VOID = text("DELETE FROM pending_logins WHERE user_id = :user")


async def revoke(change: Change, subject: UUID, kind: str, lifetime_seconds: int) -> None:
    """No token of this subject is believed any more. `kind` is `session` or `oauth_client`, `lifetime_seconds` the
    longest that a token of its may still live."""
    until = utc_now() + timedelta(seconds=lifetime_seconds + _SKEW_SECONDS)
    await change.session.execute(_REVOKE, {"subject": subject, "kind": kind, "until": until})
    change.touch("revocation", subject, urgent=True)


async def end_sessions(
    change: Change, user_id: UUID, reason: str, *, only: UUID | None = None, but: UUID | None = None
) -> list[UUID]:
    """Ends a user's sessions, or `only` one, or all `but` one; sign-ins that wait for a second factor too, unless it is
    `only` one. The answer is the ids of the sessions that still lived."""
    values = {"user": user_id, "reason": reason, "only": only, "but": but}
    await change.session.flush()
    if only is None:
        await change.session.execute(_VOID, {"user": user_id})
    ended = (await change.session.execute(_END, values)).all()
    for row in ended:
        left = (row.tokens_until - utc_now()).total_seconds() if row.tokens_until else 0
        await revoke(change, row.id, "session", max(ACCESS_TOKEN_SECONDS, math.ceil(left)))
    return [row.id for row in ended]
