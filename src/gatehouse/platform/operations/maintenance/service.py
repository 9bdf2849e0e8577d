"""Turns maintenance on and off."""

import asyncio
import time
from typing import Any, Final

from gatehouse.foundation.clock import iso, utc_now
from gatehouse.platform.changes.change import Change
from gatehouse.platform.operations.maintenance import table
from gatehouse.platform.operations.maintenance.schemas import Maintenance, MaintenanceState, MaintenanceSwitch
from gatehouse.platform.operations.maintenance.table import PlatformState
from gatehouse.platform.request.injected import commit
from gatehouse.platform.request.ports import Host

#: Value of the header `Retry-After` in refusals.
RETRY_AFTER_SECONDS: Final = 60
#: Interval at which the workers' calls in progress are polled. Workers report them twice a second.
_POLL_INTERVAL_SECONDS: Final = 0.25


async def switch(change: Change, host: Host, row: PlatformState, body: MaintenanceSwitch) -> MaintenanceState:
    """Store the state in its locked row, wait until every worker has confirmed it, and then wait for the requests that
    were admitted before."""
    before = row.value
    value = _enabled(before, body) if body.enabled else {"enabled": False}
    row.value, row.updated_at = value, utc_now()
    if body.enabled:
        change.record("maintenance.enabled", "platform", "maintenance", message=value["message"])
    elif before.get("enabled"):
        change.record("maintenance.disabled", "platform", "maintenance")
    change.touch("maintenance", "-", urgent=True)
    # The change is committed here, so that no database connection is in use during the wait.
    await commit(change, host)
    assert change.revision is not None
    drained = await _drain(host, change.revision, body.drain_timeout_seconds) if body.enabled else 0
    return MaintenanceState(**_shown(value), active_requests_drained=drained)


def current(row: PlatformState) -> Maintenance:
    return Maintenance(**_shown(row.value))


def _shown(value: dict[str, Any]) -> dict[str, Any]:
    return {
        "maintenance_enabled": value.get("enabled", False),
        "enabled_at": value.get("enabled_at"),
        "message": value.get("message") or None,
    }


def _enabled(before: dict[str, Any], body: MaintenanceSwitch) -> dict[str, Any]:
    """Return the new state. A repeated call changes the message, and keeps `enabled_at`."""
    since = before.get("enabled_at") if before.get("enabled") else None
    return {
        "enabled": True,
        "message": body.message or "",
        "retry_after": RETRY_AFTER_SECONDS,
        "enabled_at": since or iso(utc_now()),
    }


async def _drain(host: Host, revision: int, timeout_seconds: float) -> int:
    """Wait until every worker refuses new requests and has no model call in progress.

    Returns the number of calls that ended meanwhile. Calls of workers that died are included; calls of workers that
    stopped sending heartbeats are not.
    """
    deadline = time.monotonic() + timeout_seconds
    busy = await _busy(host, revision)
    max_calls = busy.calls
    while busy.workers and time.monotonic() < deadline:
        await asyncio.sleep(min(_POLL_INTERVAL_SECONDS, max(0.0, deadline - time.monotonic())))
        busy = await _busy(host, revision)
        max_calls = max(max_calls, busy.calls)
    return max_calls - busy.calls


async def _busy(host: Host, revision: int) -> table.BusyWorkers:
    async with host.database.service() as session:
        return await table.busy(session, revision)
