"""Bodies of the responses of the audit endpoints."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import BeforeValidator, Field

from gatehouse.foundation.http.bodies import ResponseBody


def _hexadecimal(value: object) -> object:
    return value.hex() if isinstance(value, bytes) else value


Hash = Annotated[
    str, BeforeValidator(_hexadecimal), Field(description="SHA-256 digest in hexadecimal.", examples=["9f86d081"])
]


class AuditEventShown(ResponseBody):
    id: Annotated[
        UUID, Field(description="Id of the event. For a `gateway.request`, it is also the id of the usage record.")
    ]
    sequence: Annotated[
        int, Field(description="Number of the event in its organization, counted from 1 without gaps.", examples=[1])
    ]
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
    prev_hash: Annotated[Hash, Field(description="Hash of the previous event. Empty for the first event.")]
    hash: Hash


class AuditEventsPage(ResponseBody):
    events: list[AuditEventShown]
    next_cursor: Annotated[str | None, Field(description="Pass it back unchanged as `cursor`. Null on the last page.")]
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
    sequence: Annotated[int, Field(description="Sequence of the event, or of the first missing event.", examples=[17])]
    reason: Annotated[str, Field(examples=["does not follow the previous event"])]


class AuditVerification(ResponseBody):
    first_sequence: Annotated[int, Field(description="Sequence of the first event that was checked.")]
    last_sequence: Annotated[int, Field(description="Sequence of the last event that was checked.")]
    events: Annotated[int, Field(description="Number of checked events.")]
    archived_until: Annotated[
        int,
        Field(
            description="Sequence up to which events are archived; `gatehouse audit verify` reads these. 0 means none."
        ),
    ]
    head_sequence: Annotated[int, Field(description="Sequence of the newest event of the chain.")]
    head_hash: Annotated[Hash, Field(description="Hash of the newest event. Store it elsewhere to compare it later.")]
    breaks: Annotated[list[ChainPlace], Field(description="The first 100 places where the chain is broken.")]
    break_count: Annotated[int, Field(description="Number of all broken places in this part.")]
    gaps: Annotated[
        list[ChainPlace], Field(description="The first 100 events that document records lost by an outpost.")
    ]
    next_after: Annotated[
        int | None, Field(description="Pass it back as `after` to continue. Null: the end of the chain was checked.")
    ]
