"""The kill switches of MCP servers and tools. Releasing one needs a second factor if the organization requires it;
engaging one never does."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from pydantic import BaseModel

from gatehouse.foundation.clock import utc_now
from gatehouse.platform.changes.change import Change
from gatehouse.platform.live.nodes import Propagation
from gatehouse.platform.request.injected import commit
from gatehouse.platform.request.ports import Host
from gatehouse.platform.routing.kill_switch.schemas import PropagationStatus, Reason


class SwitchedRow(Protocol):
    """The row of a server or a tool."""

    id: UUID
    name: str
    switched_off_at: datetime | None
    switched_off_reason: str | None

    def assign(self, values: Mapping[str, Any]) -> None: ...


async def switch(change: Change, host: Host, row: SwitchedRow, kind: str, reason: Reason | None) -> PropagationStatus:
    """Switch a server or a tool off, or on if `reason` is None. Wait at most two seconds for the confirmations of all
    workers, and return them. `kind` is the resource type of the audit event."""
    since = None if reason is None else row.switched_off_at or utc_now()
    row.assign({"switched_off_at": since, "switched_off_reason": reason})
    change.record(
        "mcp_switch.released" if reason is None else "mcp_switch.engaged", kind, row.id, name=row.name, reason=reason
    )
    change.touch("mcp_switch", row.id, urgent=True)
    await change.session.flush()
    propagation = await commit(change, host)
    return PropagationStatus.model_validate(
        propagation or Propagation(confirmed=0, total=0, pending=[], elapsed_ms=0.0)
    )


def with_propagation(shown: BaseModel, propagation: PropagationStatus) -> dict[str, object]:
    """Return the fields of an answer to a switch."""
    return {**dict(shown), "propagation": propagation}
