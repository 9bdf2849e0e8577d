"""Metrics that the portal publishes at `/metrics`."""

from pathlib import Path
from typing import Final

from gatehouse.foundation.metrics import Counter, Family, Gauge, Histogram, Metrics

_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_METHODS: Final = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})


class PortalMetrics:
    """The metrics of one process."""

    def __init__(self, directory: Path) -> None:
        self.requests = Counter(
            Family("portal_http_requests_total", "Answered requests.", ("method", "route", "status"))
        )
        self.durations = Histogram(
            Family("portal_http_request_duration_seconds", "From arrival to the last byte.", ("method", "route")),
            _SECONDS,
        )
        self.jobs = Counter(Family("portal_jobs_total", "Attempts of jobs, by result.", ("kind", "result")))
        self.jobs_waiting = Gauge(Family("portal_jobs_waiting", "Jobs that are not done.", merge="max"))
        self.pool_available = Gauge(Family("portal_db_pool_available_connections", "Free database connections."))
        self.exporter = Metrics(
            directory,
            [self.requests, self.durations, self.jobs, self.jobs_waiting, self.pool_available],
        )

    def http(self, method: str, route: str, status: int, seconds: float) -> None:
        method = method if method in _METHODS else "other"
        self.requests.add((method, route, str(status)))
        self.durations.observe(seconds, (method, route))
