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
