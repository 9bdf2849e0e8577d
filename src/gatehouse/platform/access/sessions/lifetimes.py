"""How long sessions and their tokens live under a policy (reference 2, Session policy). Seconds, moments in UTC.

With refresh tokens a session is used when it is refreshed, so its access tokens live half the idle time at most: who
goes on working comes by in time. Without them nothing tells that a session is used, and it ends with its timeout.
"""

from datetime import datetime, timedelta

from gatehouse.foundation.clock import utc_now
from gatehouse.platform.access.revoking import ACCESS_TOKEN_SECONDS
from gatehouse.platform.access.sessions.table import SessionRow
from gatehouse.platform.organization.policies.values import SessionPolicy


def ends_at(session: SessionRow, policy: SessionPolicy) -> datetime:
    """When the session ends unless it is used, by the policy of now, and no later than it may last at most. Its row's
    `expires_at` may be earlier."""
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


def access_token_seconds(session: SessionRow, policy: SessionPolicy) -> int:
    """Of a token that is made now: to the session's end at most."""
    left = int((ends_at(session, policy) - utc_now()).total_seconds())
    if not policy.refresh_token_enabled:
        return max(left, 1)
    return max(min(ACCESS_TOKEN_SECONDS, policy.idle_timeout_minutes * 30, left), 1)
