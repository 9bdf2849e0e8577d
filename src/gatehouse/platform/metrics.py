"""All metrics that the platform publishes at `/metrics` (docs/operations.md): those of the gateway, the database,
administration and outgoing notifications."""

from pathlib import Path

from gatehouse.foundation.metrics import Counter
from gatehouse.ingress.figures import GatewayFigures, counter, highest, total


def notifications() -> Counter:
    """Return the counter of attempts at webhooks' and alerts' receivers (`delivered`, `failed`, `blocked`) and of
    deliveries that are not retried any more (`dead_letter`)."""
    return counter(
        "service_notifications_total", "Attempts at receivers of webhooks and alerts; dead letters.", "kind", "result"
    )


class Figures(GatewayFigures):
    """The metrics of one process."""

    def __init__(self, home: Path) -> None:
        self.pool_available = total("service_db_pool_available_connections", "Database connections free to take.")
        self.pool_max = total("service_db_pool_max_connections", "Database connections that the pools may have.")
        self.group_spend = highest("service_group_spend_current_month_usd", "A group's spend this month.", "group_id")
        self.group_limit = highest("service_group_budget_limit_usd", "A group's monthly budget.", "group_id")
        self.mfa_verifications = counter("service_mfa_verifications_total", "Second factors tried.", "method", "result")
        self.drain_lag = highest(
            "service_drain_lag_seconds", "Age of the oldest record that is not in the database yet."
        )
        self.notifications = notifications()
        self.webhook_lag = highest("service_webhook_lag_seconds", "Since when the oldest event waits for its turn.")
        self.siem_backlog = highest("service_siem_backlog_events", "Events that wait to be forwarded to a SIEM.")
        self.siem_failing = highest("service_siem_failing_receivers", "SIEM receivers that do not take what waits.")
        self.redis_degraded = highest("service_redis_degraded", "1: a process counts by itself, without Redis.")
        self.redis_local_takes = total("service_redis_local_takes", "Requests counted without Redis since the start.")
        self.feed_lag = highest("service_change_feed_lag_seconds", "Since a process last heard from the database.")
        super().__init__(home)
