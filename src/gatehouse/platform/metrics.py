"""Defines all metrics that the platform publishes at `/metrics` (docs/operations.md): those of the gateway, the
database, administration and outgoing notifications."""

from pathlib import Path

from gatehouse.foundation.metrics import Counter
from gatehouse.ingress.metrics import (
    GatewayMetrics,
    counter,
    max_gauge,
    sum_gauge,
)


def notifications() -> Counter:
    """Return the counter of notifications to webhooks and receivers of alerts. It counts attempts (`delivered`,
    `failed`, `blocked`), and deliveries that are no longer retried (`dead_letter`)."""
    return counter(
        "service_notifications_total", "Attempts at receivers of webhooks and alerts; dead letters.", "kind", "result"
    )


class PlatformMetrics(GatewayMetrics):
    """The metrics of one process."""

    def __init__(self, home: Path) -> None:
        self.pool_available = sum_gauge("service_db_pool_available_connections", "Database connections free to take.")
        self.pool_max = sum_gauge("service_db_pool_max_connections", "Database connections that the pools may have.")
        self.group_spend = max_gauge("service_group_spend_current_month_usd", "A group's spend this month.", "group_id")
        self.group_limit = max_gauge("service_group_budget_limit_usd", "A group's monthly budget.", "group_id")
        self.mfa_verifications = counter("service_mfa_verifications_total", "Second factors tried.", "method", "result")
        self.drain_lag = max_gauge(
            "service_drain_lag_seconds", "Age of the oldest record that is not in the database yet."
        )
        self.notifications = notifications()
        self.webhook_lag = max_gauge("service_webhook_lag_seconds", "Age of the oldest event that is due.")
        self.siem_backlog = max_gauge("service_siem_backlog_events", "Events that wait to be forwarded to a SIEM.")
        self.siem_failing = max_gauge("service_siem_failing_receivers", "SIEM receivers that do not take what waits.")
        self.archiver_failing = max_gauge(
            "service_archiver_failing_organizations", "Organizations whose last run of the archiver failed."
        )
        self.redis_degraded = max_gauge("service_redis_degraded", "1: a process counts by itself, without Redis.")
        self.redis_local_takes = sum_gauge(
            "service_redis_local_takes", "Requests counted without Redis since the start."
        )
        self.feed_lag = max_gauge("service_change_feed_lag_seconds", "Since a process last heard from the database.")
        super().__init__(home)
