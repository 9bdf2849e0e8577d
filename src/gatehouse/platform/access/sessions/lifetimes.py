"""Lifetimes of sessions and their tokens under a session policy (docs/sessions.md). Durations in seconds, times in UTC.

With refresh tokens a session counts as used when it is refreshed. Its access tokens therefore live half the idle time
at most, so that an active client refreshes in time. Without refresh tokens a session ends with its timeout.
"""

from datetime import datetime, timedelta

from gatehouse.foundation.clock import utc_now
from gatehouse.platform.access.revoking import ACCESS_TOKEN_SECONDS
from gatehouse.platform.access.sessions.table import SessionRow
from gatehouse.platform.organization.policies.values import SessionRules


def ends_at(session: SessionRow, policy: SessionRules) -> datetime:
    """Return when the session ends unless it is used again, by the current policy and `not_after`. The `expires_at` of
    its row may be earlier."""
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
    """Return the lifetime in seconds of an access token issued now; it ends with the session at the latest."""
    seconds_left = int((ends_at(session, policy) - utc_now()).total_seconds())
    if not policy.refresh_token_enabled:
        return max(seconds_left, 1)
    return max(min(ACCESS_TOKEN_SECONDS, policy.idle_timeout_minutes * 30, seconds_left), 1)
