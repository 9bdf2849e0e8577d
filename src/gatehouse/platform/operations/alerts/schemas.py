"""Bodies of the alerts' endpoints (reference 3, Alert rule and Endpoints, Alerts)."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from gatehouse.foundation.http.bodies import Body, Shown, unsent

Metric = Annotated[
    Literal["cost", "error_rate", "latency_p95", "dlp_trigger_count", "blocked_request_count"],
    Field(description="`cost` in USD, `error_rate` in percent (0 to 100), `latency_p95` in milliseconds, or a count."),
]
Comparison = Annotated[
    Literal["gt", "lt", "gte", "lte"], Field(description="How the metric has to compare with the threshold.")
]
Name = Annotated[str, Field(min_length=1, max_length=255, examples=["Spend of an hour"])]
Threshold = Annotated[float, Field(allow_inf_nan=False, ge=-1e15, le=1e15, examples=[50])]
Window = Annotated[int, Field(ge=1, le=10_080, description="The last minutes, up to a week.", examples=[60])]
Cooldown = Annotated[int, Field(ge=1, le=10_080, description="Minutes in which it does not trigger again.")]
WebhookUrl = Annotated[
    str | None,
    Field(max_length=2048, description="HTTPS. Null: nobody is told.", examples=["https://hooks.example.com/alerts"]),
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


class AlertRuleUpdate(Body):
    """Partial: what is left out stays."""

    name: Annotated[Name, Field(default_factory=unsent)]
    metric_type: Annotated[Metric, Field(default_factory=unsent)]
    threshold: Annotated[Threshold, Field(default_factory=unsent)]
    comparison: Annotated[Comparison, Field(default_factory=unsent)]
    window_minutes: Annotated[Window, Field(default_factory=unsent)]
    webhook_url: WebhookUrl = None
    enabled: Annotated[bool, Field(default_factory=unsent)]
    cooldown_minutes: Annotated[Cooldown, Field(default_factory=unsent)]


class AlertRule(Shown):
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


class HistoryRecord(Shown):
    id: UUID
    rule_id: UUID
    rule_name: Annotated[str, Field(description="As it was when it triggered, like the threshold.")]
    metric_value: float
    threshold: float
    triggered_at: datetime
    webhook_delivered: Annotated[bool, Field(description="Whether the receiver has answered with 2xx.")]
    webhook_error: Annotated[
        str | None, Field(description="Why it was not delivered; null also where nobody is told, or was not yet.")
    ]


class History(Shown):
    history: list[HistoryRecord]
    total: int


class Triggered(Shown):
    rule_id: UUID
    rule_name: str
    metric_value: float


class Evaluated(Shown):
    rules_evaluated: Annotated[int, Field(description="Those in cooldown too.")]
    rules_triggered: int
    triggered: list[Triggered]
