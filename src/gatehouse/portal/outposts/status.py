"""What an outpost's state is called."""

from datetime import datetime, timedelta
from typing import Final, Literal

from gatehouse.foundation.clock import utc_now

Status = Literal["active", "stale", "revoked"]
#: An outpost that has not been seen for as long is stale (reference 2, Cloud portal).
STALE_AFTER: Final = timedelta(minutes=5)


def status(seen_at: datetime, revoked_at: datetime | None) -> Status:
    if revoked_at is not None:
        return "revoked"
    return "active" if utc_now() - seen_at < STALE_AFTER else "stale"
