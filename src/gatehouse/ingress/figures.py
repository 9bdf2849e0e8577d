"""Every figure of the gateway at `/metrics`, whichever host it runs in (reference 3, Health and system, Metric
families). A host with more of them
sets them before it calls `__init__`.

Made once a process: `figures.http(...)` and the like are what the request path calls.
"""

from itertools import product
from pathlib import Path
from typing import Final

import structlog

from gatehouse.detection.models import TierFailed
from gatehouse.engine.dlp.inspection import Inspection
from gatehouse.engine.exchange import Answered, Candidate
from gatehouse.engine.providers.registry import KINDS
from gatehouse.engine.stages import registry
from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.metrics import Counter, Family, Gauge, Histogram, Metrics

log = structlog.get_logger(__name__)

#: Models without a price that are remembered as named in the log.
_UNPRICED: Final = 10_000

#: below `GATEHOUSE_HOME`
DIRECTORY: Final = "metrics"

_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
_METHODS: Final = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})


def counter(name: str, text: str, *labels: str) -> Counter:
    return Counter(Family(name, text, labels))


def total(name: str, text: str, *labels: str) -> Gauge:
    return Gauge(Family(name, text, labels))


def highest(name: str, text: str, *labels: str) -> Gauge:
    """Of what all processes see alike, or of which the worst one counts."""
    return Gauge(Family(name, text, labels, "max"))


class GatewayFigures:
    """One process's. Families that nothing counts yet are there, with their name and meaning."""

    def __init__(self, home: Path) -> None:
        self.requests = counter(
            "service_http_requests_total", "Answered HTTP requests; 499: the client left.", "method", "route", "status"
        )
        self.durations = Histogram(
            Family("service_http_request_duration_seconds", "From arrival to the last byte.", ("method", "route")),
            _SECONDS,
        )
        self.dlp_requests = counter("service_dlp_pipeline_requests_total", "Requests that DLP looked at.")
        self.dlp_durations = Histogram(
            Family("service_dlp_pipeline_duration_seconds", "Time that DLP took for a request."), _SECONDS
        )
        self.dlp_triggers = counter("service_dlp_triggers_total", "DLP decisions that did something.", "action")
        self.tier_failures = counter(
            "service_dlp_tier_failures_total", "Requests that a model tier gave no answer.", "tier", "reason"
        )
        self.outpost_certificates = highest(
            "service_outpost_mtls_cert_expiry_timestamp_seconds", "When an outpost's certificate ends.", "outpost_id"
        )
        self.semantic_queue = total("service_deberta_queue_depth", "Texts that wait for the semantic tier.")

        self.active_calls = total("service_active_model_calls", "Model calls in progress.")
        self.attempts = counter(
            "service_provider_attempts_total", "Tries at providers, by kind and what came of them.", "kind", "result"
        )
        self.unknown_prices = counter(
            "service_unknown_price_total", "Answered calls whose cost is unknown: the catalog lacks a price.", "kind"
        )
        self.registry_flags = counter(
            "service_model_registry_flags_total",
            "Requests for which the model registry objected to a model; BLOCK: it left the chain.",
            "reason", "action",
        )  # fmt: skip
        self.cache_lookups = counter(
            "service_response_cache_total", "Requests that the response cache was asked for: `hit`, `miss`.", "result"
        )
        self.cache_bytes = total("service_response_cache_bytes", "Answers that the processes keep.")
        self.spans_exported = counter("service_trace_spans_exported_total", "Spans that the collector took.")
        self.spans_dropped = counter("service_trace_spans_dropped_total", "Spans that nobody got.", "reason")
        self.journal_bytes = highest("service_journal_bytes", "Records that are not in the database yet.")
        self.journal_half_full = highest("service_journal_half_full", "1: the journal is at half of its bound or more.")
        self.loop_lag = highest("service_event_loop_lag_seconds", "How late a process' event loop ran, at worst.")

        # From zero on: of a figure that begins at its first value nobody sees that it has grown.
        for objection, action in product(registry.CODES, ("LOG", "BLOCK")):
            self.registry_flags.add((objection, action), 0)
        for kind in KINDS:
            self.unknown_prices.add((kind,), 0)

        self.metrics = Metrics(home / DIRECTORY, list(vars(self).values()))
        #: models without a price that the log has named
        self._unpriced: set[tuple[TenantId, str, str]] = set()
        self.loop_lag.read(lambda: self.metrics.loop_lag)

    def http(self, method: str, route: str, status: int, seconds: float) -> None:
        """`route` is a template or another bounded word, never a path that a client makes up."""
        if method not in _METHODS:
            method = "other"
        self.requests.add((method, route, str(status)))
        self.durations.observe(seconds, (method, route))

    def finished(self, x: Answered) -> None:
        """A model call is over (`engine.ports.Meter`)."""
        if x.asked is None:
            return
        if x.asked.inspection is not None:
            self._inspected(x.asked.inspection)
        for event in x.asked.rule_events:
            if event.kind == registry.KIND:
                self.registry_flags.add((event.rule_id, event.action))
        providers = x.asked.identified.policy.providers
        for attempt in x.attempts:
            tried = providers.get(attempt.provider)
            self.attempts.add((tried.kind if tried else "other", attempt.reason))
        if x.cache is not None:
            self.cache_lookups.add((x.cache,))
        if x.chosen is None or x.cache == "hit":
            return
        kind = x.chosen.provider.kind
        self.attempts.add((kind, x.outcome))
        if x.usage is not None and x.cost_usd is None:
            self.unknown_prices.add((kind,))
            self._warn_of_price(x.asked.identified.policy.tenant_id, x.chosen)

    def tier_failed(self, failed: TierFailed) -> None:
        self.tier_failures.add((failed.tier, failed.reason))

    def _inspected(self, inspection: Inspection) -> None:
        self.dlp_requests.add()
        self.dlp_durations.observe(inspection.seconds)
        for event in inspection.events():
            if event.action != "allow":
                self.dlp_triggers.add((event.action,))

    def _warn_of_price(self, tenant_id: TenantId, chosen: Candidate) -> None:
        """Once a model: a line a request would bury it."""
        model = (tenant_id, chosen.provider.id, chosen.model.model_id)
        if model in self._unpriced:
            return
        if len(self._unpriced) >= _UNPRICED:
            self._unpriced.clear()
        self._unpriced.add(model)
        log.warning(
            "usage.unknown_price", tenant_id=str(tenant_id), provider=chosen.provider.id, model=chosen.model.model_id
        )
