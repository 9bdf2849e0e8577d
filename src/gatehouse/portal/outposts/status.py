"""The status of an outpost."""

from datetime import datetime, timedelta
from typing import Final, Literal

from gatehouse.foundation.clock import utc_now

Status = Literal["active", "stale", "revoked"]
#: Time without a heartbeat after which an outpost is stale.
STALE_AFTER: Final = timedelta(minutes=5)


def status(seen_at: datetime, revoked_at: datetime | None) -> Status:
    if revoked_at is not None:
        return "revoked"
    return "active" if utc_now() - seen_at < STALE_AFTER else "stale"
