"""Response bodies of the audit endpoints."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import BeforeValidator, Field

from gatehouse.foundation.http.bodies import ResponseBody


def _hexadecimal(value: object) -> object:
    return value.hex() if isinstance(value, bytes) else value


Hash = Annotated[str, BeforeValidator(_hexadecimal), Field(description="SHA-256, hexadecimal.", examples=["9f86d081"])]


class AuditEventShown(ResponseBody):
    id: Annotated[UUID, Field(description="For a `gateway.request` also the id of its usage record.")]
    sequence: Annotated[int, Field(description="Counts from 1 in each organization, without a gap.", examples=[1])]
    timestamp: datetime
    actor_id: str | None
    actor_type: Annotated[
        str, Field(description="`user`, `api_key`, `oauth_client`, `application`, `scim`, `system`, `outpost`.")
    ]
    action: Annotated[str, Field(examples=["api_key.created"])]
    resource_type: Annotated[str | None, Field(examples=["api_key"])]
    resource_id: str | None
    request_id: str | None
    ip: Annotated[str | None, Field(examples=["203.0.113.7"])]
    outcome: Annotated[str, Field(examples=["success"])]
    target_provider: str | None
    target_model: str | None
    reason: str | None
    details: dict[str, Any]
    prev_hash: Annotated[Hash, Field(description="The previous event's hash; empty for the first event.")]
    hash: Hash


class AuditEventsPage(ResponseBody):
    events: list[AuditEventShown]
    next_cursor: Annotated[str | None, Field(description="Pass it back unchanged as `cursor`; null when finished.")]
    has_more: bool
    tail_cursor: Annotated[
        str, Field(description="Passed as `cursor`, now or later, it returns the events after this page.")
    ]


class ActionShown(ResponseBody):
    action: Annotated[str, Field(examples=["api_key.created"])]
    description: str


class ActionList(ResponseBody):
    actions: list[ActionShown]


class ChainPlace(ResponseBody):
    sequence: Annotated[int, Field(description="Of the event, or of the first missing one.", examples=[17])]
    reason: Annotated[str, Field(examples=["does not follow the event before it"])]


class AuditVerification(ResponseBody):
    first_sequence: Annotated[int, Field(description="The event from which on the chain was checked.")]
    last_sequence: Annotated[int, Field(description="The last event that was checked.")]
    events: Annotated[int, Field(description="Number of events that were checked.")]
    archived_until: Annotated[
        int,
        Field(description="Events up to this one are in the archive, which `gatehouse audit verify` reads. 0: none."),
    ]
    head_sequence: Annotated[int, Field(description="The newest event of the chain.")]
    head_hash: Annotated[Hash, Field(description="The newest event's hash. Store it elsewhere, to compare it later.")]
    breaks: Annotated[list[ChainPlace], Field(description="Where the chain is broken: the first 100 places.")]
    break_count: Annotated[int, Field(description="Number of all places of this part.")]
    gaps: Annotated[
        list[ChainPlace], Field(description="Events that document records lost by an outpost: the first 100.")
    ]
    next_after: Annotated[
        int | None, Field(description="Pass it back as `after` to go on. Null: the end of the chain was checked.")
    ]
