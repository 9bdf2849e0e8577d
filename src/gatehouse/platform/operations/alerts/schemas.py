"""Bodies of the endpoints of alert rules (docs/alerts.md)."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from gatehouse.foundation.http.bodies import Body, ResponseBody, partial

Metric = Annotated[
    Literal["cost", "error_rate", "latency_p95", "dlp_trigger_count", "blocked_request_count"],
    Field(
        description="The metric, which determines the unit of the threshold: `cost` in USD, `error_rate` in percent"
        " (0 to 100), `latency_p95` in milliseconds. The other metrics are counts."
    ),
]
Comparison = Annotated[
    Literal["gt", "lt", "gte", "lte"],
    Field(description="The comparison of the metric with the threshold at which the rule triggers."),
]
Sort = Literal["created_at", "-created_at", "name", "-name", "last_triggered_at", "-last_triggered_at"]
Name = Annotated[str, Field(min_length=1, max_length=255, examples=["Spend of an hour"])]
Threshold = Annotated[float, Field(allow_inf_nan=False, ge=-1e15, le=1e15, examples=[50])]
Window = Annotated[
    int,
    Field(
        ge=1,
        le=10_080,
        description="Length of the evaluated period in minutes, at most a week. The period ends at the evaluation.",
        examples=[60],
    ),
]
Cooldown = Annotated[
    int, Field(ge=1, le=10_080, description="Minutes after a trigger in which the rule does not trigger again.")
]
WebhookUrl = Annotated[
    str | None,
    Field(
        max_length=2048,
        description="HTTPS URL of the receiver. Null: no notification.",
        examples=["https://hooks.example.com/alerts"],
    ),
]


class NewAlertRule(Body):
    name: Name
    metric_type: Metric
    threshold: Threshold
    comparison: Comparison
    window_minutes: Window
    webhook_url: WebhookUrl = None
    enabled: bool = True
    cooldown_minutes: Cooldown = 60


@partial
class AlertRuleUpdate(NewAlertRule):
    """A partial update: fields that are not sent keep their values."""


class AlertRule(ResponseBody):
    id: UUID
    tenant_id: UUID
    name: str
    metric_type: Metric
    threshold: float
    comparison: Comparison
    window_minutes: int
    webhook_url: str | None
    enabled: bool
    cooldown_minutes: int
    last_triggered_at: datetime | None
    created_at: datetime
    updated_at: datetime


class HistoryRecord(ResponseBody):
    id: UUID
    rule_id: UUID
    rule_name: Annotated[
        str, Field(description="Name of the rule at the time of the trigger. `threshold` is from that time too.")
    ]
    metric_value: float
    threshold: float
    triggered_at: datetime
    webhook_delivered: Annotated[bool, Field(description="Whether the receiver answered with a status 2xx.")]
    webhook_error: Annotated[
        str | None,
        Field(
            description="Why the notification was not delivered. Null if it was delivered or was not sent yet, or if"
            " the rule had no `webhook_url`."
        ),
    ]


class History(ResponseBody):
    history: list[HistoryRecord]
    total: int


class Triggered(ResponseBody):
    rule_id: UUID
    rule_name: str
    metric_value: float


class Evaluated(ResponseBody):
    rules_evaluated: Annotated[int, Field(description="Number of evaluated rules, including rules in cooldown.")]
    rules_triggered: int
    triggered: list[Triggered]
