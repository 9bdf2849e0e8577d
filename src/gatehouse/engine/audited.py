"""What audit and DLP events say of a request: the platform writes it into the chain, an outpost tells its SIEM, and
both say the same under the same ids."""

from typing import Any, Final, TypeAlias
from uuid import UUID, uuid5

import msgspec

from gatehouse.engine.notices import Operated
from gatehouse.engine.outcome import Opened, Outcome, Scanned, group_of

ACTION: Final = "gateway.request"
#: An operator's call at an outpost.
OPERATED: Final = "outpost.operated"

#: What DLP events come with: a request, or a scan.
Found: TypeAlias = Outcome[str] | Scanned[str]


def details(outcome: Outcome[str], outpost_id: UUID | None) -> dict[str, Any]:
    """`outpost_id` is whose request it was, where it was not the platform that answered it."""
    said = outcome.rule_events
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
        **({"outpost_id": str(outpost_id)} if outpost_id is not None else {}),
        # Of the few requests that have any: what content filters and policy rules said.
        **({"rules": [msgspec.structs.asdict(event) for event in said]} if said else {}),
    }


def operator_details(call: Operated) -> dict[str, Any]:
    return {**call.details, "call": call.call}


def interrupted(opened: Opened[str]) -> Outcome[str]:
    """How a stream ended whose process is dead."""
    known = {name: getattr(opened, name) for name in Opened.__struct_fields__}
    # Nobody decides about a request any more whose worker is dead.
    known["dlp_events"] = tuple(
        msgspec.structs.replace(event, status="cancelled") if event.status == "pending" else event
        for event in opened.dlp_events
    )
    return Outcome(
        **known,
        path="",
        outcome="interrupted",
        # What the client was given: its headers had gone out.
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


def dlp_event_ids(entry: Found) -> list[str]:
    """They follow from the entry's, so that the same entry always gives the same events."""
    namespace = UUID(entry.id)
    return [str(uuid5(namespace, str(number))) for number in range(len(entry.dlp_events))]


def model_of(entry: Found) -> str | None:
    """The model that answered; where none did, what was asked for."""
    if entry.provider is None or entry.model_id is None:
        return entry.requested_model
    return f"{entry.provider}/{entry.model_id}"
