"""Exports spans to a collector, outside of requests, with a bounded queue, batches and retries. Spans that do not fit
into the queue or cannot be sent are dropped and counted. No request waits for the export."""

import asyncio
import contextlib
import re
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import unquote

import aiohttp
import structlog

from gatehouse.engine.exchange import Exchange, Received
from gatehouse.engine.records import tracing
from gatehouse.engine.records.tracing import Trace
from gatehouse.foundation.clock import Clock
from gatehouse.foundation.lazy_import import LazyModule
from gatehouse.foundation.metrics import Counter
from gatehouse.foundation.outbound.operator_client import OperatorClient, read_bounded
from gatehouse.foundation.settings import BadSettings, Settings
from gatehouse.platform.tracing import spans
from gatehouse.platform.tracing.spans import TraceSpan

messages: Any = LazyModule("gatehouse.platform.tracing.messages")

log = structlog.get_logger(__name__)

#: Maximum number of spans in the queue.
MAX_QUEUED_SPANS: Final = 8_192
#: Maximum number of spans in a request to the collector.
MAX_BATCH_SPANS: Final = 512
_EXPORT_INTERVAL_SECONDS: Final = 1.0
_REQUEST_TIMEOUT_SECONDS: Final = 10.0
#: Delay before each retry of a batch. After the last failure, the batch is dropped.
_RETRY_DELAYS_SECONDS: Final = (0.5, 1.0, 2.0, 4.0)
#: Statuses after which the OTLP specification requires a retry.
_RETRYABLE_STATUSES: Final = frozenset({429, 502, 503, 504})
#: Reasons for dropping spans. They are the labels of the metric.
_DROP_REASONS: Final = ("queue_full", "not_made", "not_taken", "rejected", "stopped")
#: Time limit for the last export of a worker that stops.
_STOP_TIMEOUT_SECONDS: Final = 3.0
_MAX_RESPONSE_BYTES: Final = 64 * 1024
#: Matches the name of a header (RFC 9110, 5.6.2).
_is_header_name: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+").fullmatch


class Exporter:
    """Implements the engine's port `Traces` for one worker. `exported` and `dropped` count spans; `dropped` counts them
    by reason."""

    def __init__(self, settings: Settings, clock: Clock, exported: Counter, dropped: Counter) -> None:
        assert settings.otel_exporter_otlp_endpoint is not None
        self._url = settings.otel_exporter_otlp_endpoint.rstrip("/") + "/v1/traces"
        self._headers = {"content-type": "application/x-protobuf", **headers_of(settings)}
        self._ratio = settings.otel_traces_sampler_arg
        self._settings = settings
        self._clock = clock
        self._exported = exported
        self._dropped = dropped
        for reason in _DROP_REASONS:
            # The metric has the value 0 from the start, so that the first increase is visible.
            dropped.add((reason,), 0)
        self._waiting: deque[list[TraceSpan]] = deque()
        #: number of spans in `_waiting`
        self._count = 0
        #: whether the failure of the export was logged already
        self._logged = False
        self._client = OperatorClient()
        self._stopping = asyncio.Event()
        self._sending: asyncio.Task[None] | None = None

    def begin(self, x: Received) -> Trace | None:
        return tracing.begin(x.headers, self._ratio)

    def finished(self, x: Exchange) -> None:
        if x.trace is None or not x.trace.sampled:
            return
        try:
            request_spans = spans.of_request(x, self._clock.monotonic())
        except Exception as error:
            # A fault in tracing must not prevent the record of the request. The text of the error may contain text of
            # the request, so it is not logged.
            log.error("tracing.not_made", fault=type(error).__name__)  # noqa: TRY400
            self._dropped.add(("not_made",), len(x.trace.calls) + 1)
            return
        if self._count + len(request_spans) > MAX_QUEUED_SPANS:
            self._dropped.add(("queue_full",), len(request_spans))
            return
        self._waiting.append(request_spans)
        self._count += len(request_spans)

    async def start(self) -> None:
        self._sending = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Export the waiting spans, as far as the time allows. A batch whose sending was cancelled is not sent
        again."""
        if self._sending is None:
            return
        self._stopping.set()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_STOP_TIMEOUT_SECONDS):
                await self._sending
        self._dropped.add(("stopped",), self._count)
        await self._client.close()

    async def _run(self) -> None:
        stopping = False
        while not stopping:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_EXPORT_INTERVAL_SECONDS):
                    await self._stopping.wait()
            # Read before the last batches, so that spans that arrive in the meantime are not left behind.
            stopping = self._stopping.is_set()
            while self._waiting:
                await self._send(self._batch())

    def _batch(self) -> list[TraceSpan]:
        """Return the next batch. It contains whole requests, so that the spans of a trace arrive together."""
        batch: list[TraceSpan] = []
        while self._waiting and len(batch) + len(self._waiting[0]) <= max(MAX_BATCH_SPANS, len(self._waiting[0])):
            batch += self._waiting.popleft()
        self._count -= len(batch)
        return batch

    async def _send(self, batch: list[TraceSpan]) -> None:
        status = None
        try:
            body = await asyncio.to_thread(self._encoded, batch)
            for delay in (*_RETRY_DELAYS_SECONDS, None):
                status, rejected = await self._post(body)
                if status is not None and 200 <= status < 300:
                    rejected = min(rejected, len(batch))
                    self._exported.add((), len(batch) - rejected)
                    self._dropped.add(("rejected",), rejected)
                    self._logged = False
                    return
                if delay is None or (status is not None and status not in _RETRYABLE_STATUSES):
                    break
                await asyncio.sleep(delay)
        except asyncio.CancelledError:
            # The time limit of `stop` is over.
            self._waiting.appendleft(batch)
            self._count += len(batch)
            raise
        except Exception as error:
            # A fault in this batch must not stop the export of later batches.
            log.error("tracing.fault", fault=type(error).__name__)  # noqa: TRY400
        self._dropped.add(("not_taken",), len(batch))
        if not self._logged:
            # The failure is logged once, until a batch is accepted again.
            self._logged = True
            log.warning("tracing.not_taken", status=status, spans=len(batch))

    def _encoded(self, batch: Sequence[TraceSpan]) -> bytes:
        settings = self._settings
        attributes = _pairs(settings.otel_resource_attributes)
        resource = messages.resource(settings.otel_service_name, attributes, settings.environment)
        body: bytes = messages.encoded(batch, resource)
        return body

    async def _post(self, body: bytes) -> tuple[int | None, int]:
        """Return the status, or None without a response, and the number of spans that the collector rejected."""
        try:
            async with self._client.request(
                "POST", self._url, headers=self._headers, body=body, seconds=_REQUEST_TIMEOUT_SECONDS
            ) as response:
                body = await read_bounded(response, _MAX_RESPONSE_BYTES) if response.status == 200 else b""
                return response.status, messages.rejected(body)
        except (aiohttp.ClientError, TimeoutError, OSError):
            return None, 0


def _pairs(text: str) -> Mapping[str, str]:
    """Parse comma-separated pairs `name=value` with percent-encoded values, the format of OpenTelemetry's variables."""
    pairs = (pair.partition("=") for pair in text.split(","))
    return {name.strip(): unquote(value.strip()) for name, _, value in pairs if name.strip()}


def headers_of(settings: Settings) -> Mapping[str, str]:
    """Return the headers for the collector. Raises `BadSettings`. The message does not contain the values, which are
    secrets."""
    setting = settings.otel_exporter_otlp_headers
    pairs = _pairs(setting.get_secret_value()) if setting is not None else {}
    for name, value in pairs.items():
        if not (_is_header_name(name) and value.isprintable()):
            raise BadSettings("OTEL_EXPORTER_OTLP_HEADERS: must be comma-separated pairs `name=value`")
    return pairs
