"""The rules of maintenance."""

import asyncio
import time
from typing import Any, Final

from gatehouse.foundation.clock import iso, utc_now
from gatehouse.platform.change import Change
from gatehouse.platform.operations.maintenance import table
from gatehouse.platform.operations.maintenance.schemas import MaintenanceState, MaintenanceSwitch
from gatehouse.platform.ports import Host
from gatehouse.platform.requests import commit

#: What refused clients are told to wait, in seconds.
RETRY_AFTER: Final = 60
#: Workers tell how busy they are twice a second.
_LOOK: Final = 0.25


async def switch(change: Change, host: Host, wanted: MaintenanceSwitch) -> MaintenanceState:
    """Stores it, waits until every worker has confirmed it, and then for the requests that were let in before."""
    was = await table.state(change.session)
    value = _on(was, wanted) if wanted.enabled else {"enabled": False}
    await table.store(change.session, value)
    if wanted.enabled:
        change.record("maintenance.enabled", "platform", "maintenance", message=value["message"])
    elif was.get("enabled"):
        change.record("maintenance.disabled", "platform", "maintenance")
    change.touch("maintenance", "-", urgent=True)
    # Now, so that the wait that follows holds no connection.
    await commit(change, host)
    assert change.revision is not None
    drained = await _drain(host, change.revision, wanted.drain_timeout_seconds) if wanted.enabled else 0
    return MaintenanceState(
        maintenance_enabled=wanted.enabled,
        enabled_at=value.get("enabled_at"),
        message=value.get("message") or None,
        active_requests_drained=drained,
    )


def _on(was: dict[str, Any], wanted: MaintenanceSwitch) -> dict[str, Any]:
    """A second call changes the message, not since when it is on."""
    since = was.get("enabled_at") if was.get("enabled") else None
    return {
        "enabled": True,
        "message": wanted.message or "",
        "retry_after": RETRY_AFTER,
        "enabled_at": since or iso(utc_now()),
    }


async def _drain(host: Host, revision: int, patience: float) -> int:
    """Waits until every worker refuses new requests and has no model call in progress. How many ended meanwhile; those
    of a worker that fell silent are not among them, those of one that died are."""
    deadline = time.monotonic() + patience
    now = await _busy(host, revision)
    most = now.calls
    while now.workers and time.monotonic() < deadline:
        await asyncio.sleep(min(_LOOK, max(0.0, deadline - time.monotonic())))
        now = await _busy(host, revision)
        most = max(most, now.calls)
    return most - now.calls


async def _busy(host: Host, revision: int) -> table.Busy:
    async with host.database.service() as session:
        return await table.busy(session, revision)
