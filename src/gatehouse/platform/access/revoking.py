"""Revokes access at once: a revocation is active on every worker when the response is sent.

Sessions are rows, but their access tokens are verified by signature only. Ending a session therefore also writes its id
to `revocations`, which every worker keeps in memory until the last affected token has expired.
"""

import math
from datetime import timedelta
from typing import Final
from uuid import UUID

from sqlalchemy import text

from gatehouse.foundation.clock import utc_now
from gatehouse.platform.changes.change import Change

#: maximum lifetime of a session's access token if refresh tokens are enabled (docs/sessions.md)
ACCESS_TOKEN_SECONDS: Final = 900
#: A revocation is kept this many seconds longer than the tokens that it affects, because clocks differ.
_MAX_CLOCK_SKEW_SECONDS: Final = 60

_REVOKE = text(
    "INSERT INTO revocations (subject, kind, expires_at) VALUES (:subject, :kind, :until)"
    " ON CONFLICT (subject) DO UPDATE SET expires_at = GREATEST(revocations.expires_at, excluded.expires_at)"
)
_END_SESSIONS = text(
    "UPDATE sessions SET revoked_at = now(), revoked_reason = :reason"
    " WHERE user_id = :user AND revoked_at IS NULL AND expires_at > now()"
    " AND id = COALESCE(CAST(:only AS uuid), id) AND id IS DISTINCT FROM CAST(:but AS uuid) RETURNING id, tokens_until"
)
# Deletes the sign-ins that wait for a second factor, because their password was verified earlier.
_DELETE_PENDING_LOGINS = text("DELETE FROM pending_logins WHERE user_id = :user")


async def revoke(change: Change, subject: UUID, kind: str, lifetime_seconds: int) -> None:
    """Refuse all tokens of this subject from now on. `kind` is `session`, `oauth_client` or `grant`. `lifetime_seconds`
    is the maximum remaining lifetime of the subject's tokens."""
    expires_at = utc_now() + timedelta(seconds=lifetime_seconds + _MAX_CLOCK_SKEW_SECONDS)
    await change.session.execute(_REVOKE, {"subject": subject, "kind": kind, "until": expires_at})
    change.touch("revocation", subject, urgent=True)


async def end_sessions(
    change: Change, user_id: UUID, reason: str, *, only: UUID | None = None, but: UUID | None = None
) -> list[UUID]:
    """End a user's sessions: all of them, only the session `only`, or all except the session `but`. Without `only`, end
    sign-ins that wait for a second factor too. Return the ids of the sessions that were open."""
    values = {"user": user_id, "reason": reason, "only": only, "but": but}
    await change.session.flush()
    if only is None:
        await change.session.execute(_DELETE_PENDING_LOGINS, {"user": user_id})
    ended = (await change.session.execute(_END_SESSIONS, values)).all()
    for row in ended:
        seconds_left = (row.tokens_until - utc_now()).total_seconds() if row.tokens_until else 0
        await revoke(change, row.id, "session", max(ACCESS_TOKEN_SECONDS, math.ceil(seconds_left)))
    return [row.id for row in ended]
