"""Contents of the audit events and DLP events of a request. The platform writes the events to the audit chain, and an
outpost sends them to its SIEM. Both use the same contents and ids."""

from typing import Any, Final, TypeAlias
from uuid import UUID, uuid5

import msgspec

from gatehouse.engine.records.outcome import (
    Opened,
    Outcome,
    Scanned,
    ToolCalled,
    group_of,
)
from gatehouse.engine.records.upload_notices import Operated

ACTION: Final = "gateway.request"
#: Action of the audit event of a call of a tool.
TOOL_CALL: Final = "mcp.tool_call"
#: Type of the resource of this event.
MCP_SERVER: Final = "mcp_server"
#: Action of the audit event of an operator's call at an outpost.
OPERATED: Final = "outpost.operated"

#: A journal entry that can have DLP events: a request, a scan or a call of a tool.
DlpEntry: TypeAlias = Outcome[str] | Scanned[str] | ToolCalled[str]


def details(outcome: Outcome[str], outpost_id: UUID | None) -> dict[str, Any]:
    """Return the details of a request's audit event. `outpost_id` is the outpost that answered the request, or None for
    the platform."""
    rule_events = outcome.rule_events
    return {
        "api_key_id": outcome.api_key_id,
        "path": outcome.path,
        "model": outcome.requested_model,
        "status": outcome.status,
        "stream": outcome.stream,
        "input_tokens": outcome.input_tokens,
        "output_tokens": outcome.output_tokens,
        "cost_usd": outcome.cost_usd,
        **({"cache": outcome.cache} if outcome.cache else {}),
        **({"model_alias": outcome.model_alias} if outcome.model_alias else {}),
        **({"shadow": True} if outcome.shadow else {}),
        **({"outpost_id": str(outpost_id)} if outpost_id is not None else {}),
        # Few requests have results of content filters and policy rules.
        **({"rules": [msgspec.structs.asdict(event) for event in rule_events]} if rule_events else {}),
    }


def tool_call_details(call: ToolCalled[str], outpost_id: UUID | None) -> dict[str, Any]:
    """Return the details of the audit event of a call of a tool. `outpost_id` is the outpost that made the call. It is
    None for the platform."""
    rule_events = call.rule_events
    return {
        "api_key_id": call.api_key_id,
        "server": call.server,
        "tool": call.tool,
        "definition_hash": call.definition_hash,
        "arguments_digest": call.arguments_digest,
        "status": call.status,
        "is_error": call.is_error,
        "latency_ms": call.latency_ms,
        "upstream_ms": call.upstream_ms,
        "result_bytes": call.result_bytes,
        "dlp_action": call.dlp_action,
        **({"outpost_id": str(outpost_id)} if outpost_id is not None else {}),
        **({"rules": [msgspec.structs.asdict(event) for event in rule_events]} if rule_events else {}),
    }


def operator_details(call: Operated) -> dict[str, Any]:
    """Return the details of the audit event of an operator's call."""
    return {**call.details, "call": call.call}


def interrupted(opened: Opened[str]) -> Outcome[str]:
    """Return the outcome of a stream that was interrupted because its process died."""
    fields = {name: getattr(opened, name) for name in Opened.__struct_fields__}
    # A pending approval is treated as cancelled, because a request cannot be approved after the death of its worker.
    fields["dlp_events"] = tuple(
        msgspec.structs.replace(event, status="cancelled") if event.status == "pending" else event
        for event in opened.dlp_events
    )
    return Outcome(
        **fields,
        path="",
        outcome="interrupted",
        # The client had already received the headers with this status.
        status=200,
        error_code=None,
        stream=True,
        input_tokens=None,
        output_tokens=None,
        cached_tokens=None,
        cost_usd=None,
        latency_ms=0.0,
        time_to_first_token_ms=None,
        provider_latency_ms=None,
        fallbacks=0,
        dlp_action=None,
        group_id=group_of(opened.group_ids),
    )


def dlp_event_ids(entry: DlpEntry) -> list[str]:
    """Return the ids of the entry's DLP events. The ids derive from the entry's id, so the same entry always has the
    same events."""
    namespace = UUID(entry.id)
    return [str(uuid5(namespace, str(number))) for number in range(len(entry.dlp_events))]


def model_of(entry: DlpEntry) -> str | None:
    """Return the model that answered, or else the requested model."""
    if entry.provider is None or entry.model_id is None:
        return entry.requested_model
    return f"{entry.provider}/{entry.model_id}"
