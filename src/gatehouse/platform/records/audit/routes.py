"""The endpoints of the audit chain (docs/records.md)."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Depends, Query

from gatehouse.foundation.http.lists import CursorWindow, cursor_window
from gatehouse.platform.changes.chain.actions import ACTIONS
from gatehouse.platform.changes.chain.table import AuditEventRow
from gatehouse.platform.records.audit import verification
from gatehouse.platform.records.audit.listing import events_after
from gatehouse.platform.records.audit.schemas import (
    ActionList,
    ActionShown,
    AuditEventShown,
    AuditEventsPage,
    AuditVerification,
)
from gatehouse.platform.records.filters import ExactFilter, From, To
from gatehouse.platform.request.callers import RESPONSES, AuditReader
from gatehouse.platform.request.injected import Session
from gatehouse.platform.request.ports import TheHost

router = APIRouter(tags=["Audit"], responses=RESPONSES)

Window = Annotated[CursorWindow, Depends(cursor_window(default=50, maximum=500))]
#: Maximum number of events that one call verifies.
_MAX_VERIFIED_EVENTS: Final = 5_000

Order = Annotated[
    Literal["asc", "desc"] | None, Query(description="`desc`: newest first. `asc` (the default): oldest first.")
]


async def _filters(
    *,
    order: Order = None,
    action: ExactFilter = None,
    actor_id: ExactFilter = None,
    resource_type: ExactFilter = None,
    resource_id: ExactFilter = None,
    request_id: ExactFilter = None,
    outcome: ExactFilter = None,
    tool: Annotated[ExactFilter, Query(description="Only calls of tools with this name (`mcp.tool_call`).")] = None,
    sequence: Annotated[int | None, Query(ge=1, le=2**63 - 1, description="Only the event with this number.")] = None,
    since: From = None,
    until: To = None,
) -> dict[str, str | None]:
    """Return the filters in the form that is stored in the cursor."""
    return {
        "order": order,
        "action": action,
        "actor_id": actor_id,
        "resource_type": resource_type,
        "resource_id": resource_id,
        "request_id": request_id,
        "outcome": outcome,
        "tool": tool,
        "sequence": None if sequence is None else str(sequence),
        "from": None if since is None else since.isoformat(),
        "to": None if until is None else until.isoformat(),
    }


@router.get("/v1/audit/events", response_model=AuditEventsPage)
async def list_audit_events(
    caller: AuditReader,
    session: Session,
    host: TheHost,
    window: Window,
    filters: Annotated[Mapping[str, str | None], Depends(_filters)],
) -> dict[str, Any]:
    """Lists the organization's events by `sequence`, which an event receives when it is written. A client that
    continues from `tail_cursor` receives each later event exactly once, oldest first. The last page also has a
    `tail_cursor`."""
    opened = window.open(host.cursors, filters, context=f"audit_events:{caller.tenant_id}")
    rows = await events_after(session, opened)
    page = opened.envelope("events", rows, position=_sequence, shown=AuditEventShown.model_validate)
    return {**page, "tail_cursor": opened.tail(rows, position=_sequence)}


def _sequence(row: AuditEventRow) -> int:
    return row.sequence


@router.get("/v1/audit/actions", response_model=ActionList)
async def list_audit_actions(caller: AuditReader) -> ActionList:
    """Lists all audit actions."""
    return ActionList(
        actions=[ActionShown(action=name, description=ACTIONS[name]) for name in sorted(ACTIONS)],
    )


@router.get("/v1/audit/verification", response_model=AuditVerification)
async def verify_audit_chain(
    caller: AuditReader,
    session: Session,
    host: TheHost,
    after: Annotated[int, Query(ge=0, le=2**63 - 1, description="Check the events after this sequence.")] = 0,
    limit: Annotated[
        int, Query(ge=1, le=_MAX_VERIFIED_EVENTS, description="Maximum number of events to check.")
    ] = _MAX_VERIFIED_EVENTS,
) -> AuditVerification:
    """Checks that no event in a part of the chain was changed, removed, inserted or moved. Call it again with
    `next_after` until that is null. Archived events are not read, but the chain must continue where the archive
    ends."""
    return await verification.verification(session, host.sealer, after, limit)
