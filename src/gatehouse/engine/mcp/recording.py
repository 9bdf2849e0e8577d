"""Records one call of a tool, however it ends."""

from collections.abc import Awaitable
from uuid import UUID

import msgspec

from gatehouse.engine.exchange import CallRequest, Identified
from gatehouse.engine.ports import Ports, Reserved
from gatehouse.engine.records.outcome import ToolCalled, encode
from gatehouse.engine.stages.calls.budget import TOOL_CALL_AMOUNTS
from gatehouse.engine.timing import milliseconds
from gatehouse.foundation.ids import new_id
from gatehouse.policy.mcp import McpServerRecord, McpToolRecord


class ToolCallState(msgspec.Struct, kw_only=True):
    """What is known of a tool call, from which its record is made whichever step ends it
    (docs/decisions/request-path.md). `outcome` is one of `success`, `error`, `refused`, `cancelled`."""

    identified: Identified
    server: McpServerRecord
    #: None if the named tool does not exist
    tool: McpToolRecord | None = None
    #: the user's connection with which the call is made; None if the server needs none
    connection_id: UUID | None = None
    call_request: CallRequest | None = None
    #: None if no budget applies
    reserved: Reserved | None = None
    #: whether the first byte of the call was sent
    sent: bool = False
    #: SHA-256 digest of the arguments that were sent
    arguments_digest: str | None = None
    outcome: str = "success"
    status: int = 200
    error_code: str | None = None
    #: whether the tool reports an error
    is_error: bool = False
    upstream_ms: float | None = None
    result_bytes: int | None = None

    @property
    def target(self) -> str:
        """Return the name of the server and the tool in records and approvals."""
        return f"mcp:{self.server.name}" if self.tool is None else f"mcp:{self.server.name}/{self.tool.name}"


def record(x: ToolCallState, ports: Ports) -> Awaitable[None]:
    """Settle and record the call. A call counts against budgets if it was sent, because the server may have run the
    tool even if its answer is an error or missing.

    The entry is queued even if the result of this function is not awaited. Raises `Unavailable`, at once or when
    awaited, if the journal refuses the entry."""
    received, caller = x.identified.received, x.identified.caller
    call_request = x.call_request
    inspection = None if call_request is None else call_request.inspection
    if x.reserved is not None:
        ports.spend.settle(x.reserved, TOOL_CALL_AMOUNTS if x.sent else None)
    ports.meter.tool_called(call_request, x.outcome, None if x.upstream_ms is None else x.upstream_ms / 1000)
    entry = ToolCalled(
        id=new_id(),
        tenant_id=x.identified.policy.tenant_id,
        timestamp=received.received_at,
        request_id=received.request_id,
        actor_type=caller.kind,
        user_id=caller.user_id,
        api_key_id=caller.api_key_id,
        client_id=caller.client_id,
        ip=received.client_address,
        requested_model=x.target,
        provider=None,
        model_id=None,
        path=received.path,
        server_id=x.server.id,
        server=x.server.name,
        tool=None if x.tool is None else x.tool.name,
        definition_hash=None if x.tool is None else x.tool.hash,
        arguments_digest=x.arguments_digest,
        outcome=x.outcome,
        status=x.status,
        error_code=x.error_code,
        is_error=x.is_error,
        latency_ms=milliseconds(ports.clock.monotonic() - received.started),
        upstream_ms=x.upstream_ms,
        result_bytes=x.result_bytes,
        dlp_action=None if inspection is None else inspection.action,
        dlp_events=() if inspection is None else inspection.events(),
        rule_events=() if call_request is None else tuple(call_request.rule_events),
        group_ids=caller.groups,
        budgets=x.reserved.periods if x.reserved is not None and x.sent else (),
    )
    return ports.journal.append(encode(entry))
