"""The metrics of the gateway at `/metrics`. They are the same on all hosts (docs/operations.md). A host with additional
metrics sets them as attributes before it calls `__init__`.

`GatewayMetrics` is created once in each process. The request path calls its methods, such as `http`.
"""

import os
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Final

import structlog

from gatehouse.detection.models import TierFailed
from gatehouse.engine.dlp.inspection import Inspection
from gatehouse.engine.exchange import CallRequest, Exchange
from gatehouse.engine.providers.registry import KINDS
from gatehouse.engine.records.outcome import RuleEvent
from gatehouse.engine.routing.circuits import Circuits
from gatehouse.engine.stages.candidates import registry, request_fields
from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.metrics import Counter, Family, Gauge, Histogram, Metrics
from gatehouse.policy.catalog import Candidate

log = structlog.get_logger(__name__)

#: maximum number of models in the set of models whose missing price has been logged
_MAX_LOGGED_MODELS: Final = 10_000

#: maximum number of models that have their own time series in each process
MAX_MODELS: Final = 100
_OTHER_MODELS: Final = ("other", "other")

#: name of the folder for metrics in `GATEHOUSE_HOME`
METRICS_DIRECTORY: Final = "metrics"

#: upper bounds of the buckets of histograms, in seconds
_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
_METHODS: Final = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})


def counter(name: str, text: str, *labels: str) -> Counter:
    return Counter(Family(name, text, labels))


def sum_gauge(name: str, text: str, *labels: str) -> Gauge:
    return Gauge(Family(name, text, labels))


def max_gauge(name: str, text: str, *labels: str) -> Gauge:
    """Return a gauge that is the maximum over all processes. It is for values that are the same in all processes, and
    for values of which only the worst matters."""
    return Gauge(Family(name, text, labels, "max"))


class GatewayMetrics:
    """The metrics of one process. A family that has no value yet is exported with its name and help text only."""

    def __init__(self, home: Path) -> None:
        self.requests = counter(
            "service_http_requests_total",
            "Answered HTTP requests. Status 499: the client disconnected before the response.",
            "method", "route", "status",
        )  # fmt: skip
        self.durations = Histogram(
            Family(
                "service_http_request_duration_seconds",
                "Time from the arrival of a request to the last byte of its response.",
                ("method", "route"),
            ),
            _BUCKETS,
        )
        self.dlp_requests = counter("service_dlp_pipeline_requests_total", "Requests that DLP inspected.")
        self.dlp_durations = Histogram(
            Family("service_dlp_pipeline_duration_seconds", "Time of the DLP inspection of a request."), _BUCKETS
        )
        self.dlp_triggers = counter(
            "service_dlp_triggers_total", "DLP decisions with an action other than allow.", "action"
        )
        self.tier_failures = counter(
            "service_dlp_tier_failures_total", "Requests to a detection tier that failed.", "tier", "reason"
        )
        self.outpost_certificates = max_gauge(
            "service_outpost_mtls_cert_expiry_timestamp_seconds",
            "Unix time at which an outpost's certificate expires.",
            "outpost_id",
        )
        self.semantic_queue = sum_gauge("service_deberta_queue_depth", "Texts that wait for the semantic tier.")

        self.active_calls = sum_gauge("service_active_model_calls", "Model calls in progress.")
        self.attempts = counter(
            "service_provider_attempts_total", "Attempts at providers, by kind and result.", "kind", "result"
        )
        self.refusals = counter(
            "service_requests_refused_total", "Model calls that were refused, by the code of the error.", "reason"
        )
        self.tool_calls = counter("service_mcp_calls_total", "Calls of tools of MCP servers, by outcome.", "outcome")
        self.tool_durations = Histogram(
            Family("service_mcp_call_duration_seconds", "Time from the call to an MCP server to its answer."), _BUCKETS
        )
        self.tokens = counter(
            "service_model_tokens_total",
            "Tokens of answered calls. `input` does not include tokens that were read from a cache or written to one.",
            "provider", "model", "type",
        )  # fmt: skip
        self.cost = counter("service_model_cost_usd_total", "Cost of calls with a known price.", "provider", "model")
        self.first_tokens = Histogram(
            Family(
                "service_model_time_to_first_token_seconds",
                "Time from the arrival of a streamed request to its first event.",
                ("provider", "model"),
            ),
            _BUCKETS,
        )
        self.provider_durations = Histogram(
            Family(
                "service_provider_duration_seconds",
                "Time from the first attempt to the last byte of a successful answer. For a stream, time from the"
                " arrival of the request.",
                ("provider", "model"),
            ),
            _BUCKETS,
        )
        self.open_circuits = sum_gauge(
            "service_open_circuits",
            "Open and half-open circuits: `model` after failed answers, `connection` after failed connections.",
            "kind",
        )
        self.unknown_prices = counter(
            "service_unknown_price_total",
            "Answered calls whose cost is unknown, because the catalog has no price for the model.",
            "kind",
        )
        self.registry_flags = counter(
            "service_model_registry_flags_total",
            "Objections of the model registry to the model of a request. BLOCK: the model was removed from the chain.",
            "reason", "action",
        )  # fmt: skip
        self.field_refusals = counter(
            "service_request_field_refusals_total",
            "Models that were excluded because of a field of the request, by reason.",
            "reason",
        )
        self.cache_lookups = counter(
            "service_response_cache_total", "Lookups in the response cache: `hit` or `miss`.", "result"
        )
        self.cache_bytes = sum_gauge("service_response_cache_bytes", "Size of the answers in the response cache.")
        self.spans_exported = counter("service_trace_spans_exported_total", "Spans that the collector accepted.")
        self.spans_dropped = counter("service_trace_spans_dropped_total", "Spans that were not exported.", "reason")
        self.journal_bytes = max_gauge("service_journal_bytes", "Size of the records that are not in the database yet.")
        self.journal_half_full = max_gauge(
            "service_journal_half_full", "1 if the journal has reached half of its maximum size, otherwise 0."
        )
        self.loop_lag = max_gauge("service_event_loop_lag_seconds", "Maximum delay of a process' event loop.")

        # These series start at zero, because `increase()` ignores the first value of a series that starts later.
        for objection, action in product(registry.CODES, ("LOG", "BLOCK")):
            self.registry_flags.add((objection, action), 0)
        for reason in request_fields.REASONS:
            self.field_refusals.add((reason,), 0)
        for kind in KINDS:
            self.unknown_prices.add((kind,), 0)

        # There is one series for each process. In a sum over all processes, a leak in one of them would be hard to see.
        self.loop_tasks = sum_gauge("service_event_loop_tasks", "Tasks of a process' event loop.", "pid")
        self.exporter = Metrics(home / METRICS_DIRECTORY, list(vars(self).values()))
        #: labels (provider, model) of the models that have their own series
        self._models: set[tuple[str, str]] = set()
        self.loop_tasks.read(lambda: self.exporter.loop_tasks, (str(os.getpid()),))
        #: models whose missing price has been logged
        self._logged_models: set[tuple[TenantId, str, str]] = set()
        self.loop_lag.read(lambda: self.exporter.loop_lag)

    def read_circuits(self, circuits: Circuits) -> None:
        self.open_circuits.read(lambda: circuits.count_open(connections=False), ("model",))
        self.open_circuits.read(lambda: circuits.count_open(connections=True), ("connection",))

    def http(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count an answered HTTP request. `route` is the template of a route or another text from a bounded set. It is
        never a path that a client has chosen."""
        if method not in _METHODS:
            method = "other"
        self.requests.add((method, route, str(status)))
        self.durations.observe(seconds, (method, route))

    def tool_called(self, x: CallRequest | None, outcome: str, upstream_seconds: float | None) -> None:
        self.tool_calls.add((outcome,))
        if upstream_seconds is not None:
            self.tool_durations.observe(upstream_seconds)
        if x is not None:
            if x.inspection is not None:
                self._count_inspection(x.inspection)
            self._count_rule_events(x.rule_events)

    def finished(self, x: Exchange) -> None:
        """Count a finished model call (`engine.ports.Meter`)."""
        if x.outcome == "refused":
            self.refused(x.error_code)
        if x.call_request is None:
            return
        inspection = x.call_request.inspection
        if inspection is not None and inspection.action is not None:
            self._count_inspection(inspection)
        if x.call_request.rule_events:
            self._count_rule_events(x.call_request.rule_events)
        providers = x.call_request.identified.policy.providers
        for attempt in x.attempts:
            provider = providers.get(attempt.provider)
            self.attempts.add((provider.kind if provider else "other", attempt.reason))
        if x.cacheable is not None:
            self.cache_lookups.add((x.cacheable.lookup,))
        if x.chosen is None or (x.cacheable is not None and x.cacheable.cached is not None):
            return
        kind = x.chosen.provider.kind
        self.attempts.add((kind, x.outcome))
        self._count_answer(x, self._model_labels(x.chosen))
        if x.usage is not None and x.cost_usd is None:
            self.unknown_prices.add((kind,))
            self._warn_of_missing_price(x.call_request.identified.policy.tenant_id, x.chosen)

    def refused(self, code: str | None) -> None:
        """Count a model call that was refused with this error code (`engine.ports.Meter`)."""
        self.refusals.add((code or "other",))

    def _count_rule_events(self, events: Sequence[RuleEvent]) -> None:
        for event in events:
            if event.kind == registry.KIND:
                self.registry_flags.add((event.rule_id, event.action))
            elif event.kind == request_fields.KIND and event.action == "BLOCK":
                self.field_refusals.add((request_fields.reason_of(event.rule_id),))

    def _count_answer(self, x: Exchange, model: tuple[str, str]) -> None:
        if x.usage is not None:
            for kind, tokens in (
                ("input", x.usage.input_tokens),
                ("output", x.usage.output_tokens),
                ("cached", x.usage.cached_tokens),
                ("cache_write", x.usage.cache_write_tokens),
            ):
                if tokens:
                    self.tokens.add((*model, kind), tokens)
        if x.cost_usd is not None:
            self.cost.add(model, float(x.cost_usd))
        if x.time_to_first_token_ms is not None:
            self.first_tokens.observe(x.time_to_first_token_ms / 1000, model)
        if x.provider_latency_ms is not None and x.outcome == "success":
            self.provider_durations.observe(x.provider_latency_ms / 1000, model)

    def _model_labels(self, chosen: Candidate) -> tuple[str, str]:
        """Return the labels of a model. After the first `MAX_MODELS` models of a process, all others share one
        series."""
        model = (chosen.provider.id, chosen.model.model_id)
        if model not in self._models:
            if len(self._models) >= MAX_MODELS:
                return _OTHER_MODELS
            self._models.add(model)
        return model

    def tier_failed(self, failed: TierFailed) -> None:
        self.tier_failures.add((failed.tier, failed.reason))

    def _count_inspection(self, inspection: Inspection) -> None:
        self.dlp_requests.add()
        self.dlp_durations.observe(inspection.seconds)
        for event in inspection.events():
            if event.action != "allow":
                self.dlp_triggers.add((event.action,))
            if event.entity_type == "tier_failure" and event.detector_type == "regex":
                # `tier_failed` counts the failures of the model tiers.
                self.tier_failures.add(("regex", event.rule_name.removeprefix("regex: ")))

    def _warn_of_missing_price(self, tenant_id: TenantId, chosen: Candidate) -> None:
        """Log a missing price, once for each model."""
        model = (tenant_id, chosen.provider.id, chosen.model.model_id)
        if model in self._logged_models:
            return
        if len(self._logged_models) >= _MAX_LOGGED_MODELS:
            self._logged_models.clear()
        self._logged_models.add(model)
        log.warning(
            "usage.unknown_price", tenant_id=str(tenant_id), provider=chosen.provider.id, model=chosen.model.model_id
        )
