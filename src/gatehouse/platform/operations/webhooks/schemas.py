"""Bodies of the endpoints of webhooks (docs/webhooks.md)."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AfterValidator, Field, StringConstraints

from gatehouse.foundation.http.bodies import Body, ResponseBody, partial

#: All types of events (docs/webhooks.md, Events).
EventType = Literal[
    "new_conversation", "dlp_trigger", "quota_exceeded", "bundle_state_change", "usage_threshold", "invoice_generated",
    "webhook_test",
]  # fmt: skip
Sort = Literal["created_at", "-created_at", "name", "-name"]
Status = Literal["pending", "delivered", "failed", "dead_letter"]

Name = Annotated[str, Field(min_length=1, max_length=255, examples=["ticket system"])]
Url = Annotated[
    str,
    Field(
        min_length=1,
        max_length=2000,
        description="HTTPS URL of the receiver, on the open internet.",
        examples=["https://hooks.example.com/gatehouse"],
    ),
]
Events = Annotated[
    list[EventType],
    Field(min_length=1, max_length=100, description="Types of events to send.", examples=[["dlp_trigger"]]),
    AfterValidator(lambda events: list(dict.fromkeys(events))),
]
Secret = Annotated[
    str,
    StringConstraints(strip_whitespace=False, min_length=8, max_length=255),
    Field(
        description="Secret that signs deliveries. It is stored sealed. Only a response to a creation can contain it."
    ),
]


IncludeLogged = Annotated[
    bool,
    Field(description="Whether `dlp_trigger` is also sent if rules only logged, with the logged findings."),
]


class NewWebhook(Body):
    name: Name
    url: Url
    events: Events
    secret: Secret
    enabled: bool = True
    include_logged: IncludeLogged = False


@partial
class WebhookUpdate(NewWebhook):
    """A partial update: fields that are not sent, including `secret`, keep their values."""


class Webhook(ResponseBody):
    id: UUID
    name: str
    url: str
    events: list[str]
    enabled: bool
    include_logged: bool
    created_at: datetime
    updated_at: datetime


class WebhookCreated(Webhook):
    """The response to a creation in variant A."""

    secret: Annotated[str, Field(description="The secret as it was sent. Only this response contains it.")]


class DeliveryA(ResponseBody):
    id: UUID
    webhook_id: UUID
    event_type: str
    payload: dict[str, Any]
    response_status: int | None
    response_body: Annotated[str | None, Field(description="The first 1000 characters of the response.")]
    success: bool
    attempt_count: int
    last_error: Annotated[str | None, Field(description="Reason why the last attempt failed.")]
    delivered_at: datetime | None
    created_at: datetime


class DeliveryB(ResponseBody):
    id: UUID
    webhook_id: UUID
    event_type: str
    status: Status
    attempt_count: int
    last_attempt_at: datetime | None
    next_retry_at: Annotated[datetime | None, Field(description="Null if there is no further attempt.")]
    response_code: int | None
    error_message: str | None
    payload: Annotated[str, Field(description="The first 10000 characters of the payload as JSON.")]


class DeliveryC(ResponseBody):
    id: UUID
    webhook_id: UUID
    event_type: str
    payload: dict[str, Any]
    status: Literal["pending", "delivered", "failed"]
    attempts: int
    last_error: str | None
    response_status: int | None
    created_at: datetime


class WebhookA(Webhook):
    recent_deliveries: Annotated[list[DeliveryA], Field(description="The last 20, newest first.")]


class WebhookB(Webhook):
    deliveries: Annotated[list[DeliveryB], Field(description="The last 20, newest first.")]


class WebhookC(Webhook):
    recent_deliveries: Annotated[list[DeliveryC], Field(description="The last 20, newest first.")]


class Tested(ResponseBody):
    success: bool
    status_code: Annotated[int | None, Field(description="Null without a response.")]
    error: str | None


class TestedA(Tested):
    latency_ms: float | None
