"""Lifetimes of sessions and their tokens under a session policy (docs/sessions.md). Durations are in seconds and times
in UTC.

With refresh tokens a session is treated as used when it is refreshed. The lifetime of its access tokens is therefore at
most half the idle timeout, so that an active client refreshes in time. Without refresh tokens a session ends at its
timeout.
"""

from datetime import datetime, timedelta

from gatehouse.foundation.clock import utc_now
from gatehouse.platform.access.revoking import ACCESS_TOKEN_SECONDS
from gatehouse.platform.access.sessions.table import SessionRow
from gatehouse.platform.organization.policies.values import SessionRules


def ends_at(session: SessionRow, policy: SessionRules) -> datetime:
    """Return the time at which the session ends unless it is used again, under the current policy and `not_after`. The
    `expires_at` of its row may be earlier."""
    timeout = timedelta(minutes=policy.session_timeout_minutes)
    if policy.refresh_token_enabled:
        end = min(
            session.last_seen_at + timeout,
            session.last_seen_at + timedelta(minutes=policy.idle_timeout_minutes),
            session.created_at + timedelta(days=policy.refresh_token_ttl_days),
        )
    else:
        end = session.created_at + timeout
    return end if session.not_after is None else min(end, session.not_after)


def access_token_seconds(session: SessionRow, policy: SessionRules) -> int:
    """Return the lifetime in seconds of an access token that is issued now. The token expires no later than the
    session."""
    seconds_left = int((ends_at(session, policy) - utc_now()).total_seconds())
    if not policy.refresh_token_enabled:
        return max(seconds_left, 1)
    return max(min(ACCESS_TOKEN_SECONDS, policy.idle_timeout_minutes * 30, seconds_left), 1)
