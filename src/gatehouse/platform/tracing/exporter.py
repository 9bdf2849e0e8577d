"""Sends spans to a collector, beside the requests: a bounded queue, batches, retries. What has no room or cannot be
sent is dropped and counted; no request ever waits for it."""

import asyncio
import contextlib
import re
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import unquote

import aiohttp
import structlog

from gatehouse.engine import tracing
from gatehouse.engine.exchange import Answered, Received
from gatehouse.engine.tracing import Trace
from gatehouse.foundation.clock import Clock
from gatehouse.foundation.lazily import Lazily
from gatehouse.foundation.metrics import Counter
from gatehouse.foundation.settings import BadSettings, Settings
from gatehouse.platform.tracing import spans
from gatehouse.platform.tracing.spans import Span

messages: Any = Lazily("gatehouse.platform.tracing.messages")

log = structlog.get_logger(__name__)

#: Spans that wait at most.
QUEUE: Final = 8_192
#: Spans in a request to the collector.
BATCH: Final = 512
#: Seconds between two looks at the queue.
_PAUSE: Final = 1.0
_TIMEOUT: Final = aiohttp.ClientTimeout(total=10)
#: Seconds before another try at sending a batch; after the last it is dropped.
_RETRIES: Final = (0.5, 1.0, 2.0, 4.0)
#: What the OTLP specification has a client try again after.
_AGAIN: Final = frozenset({429, 502, 503, 504})
#: Why spans are dropped.
_REASONS: Final = ("queue_full", "not_made", "not_taken", "rejected", "stopped")
#: Seconds that a stopping worker gives to what waits.
_LAST: Final = 3.0
#: As much of the collector's answer as is read.
_MOST_BYTES: Final = 64 * 1024
#: What a header may be called (RFC 9110, 5.6.2).
_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+").fullmatch


class Exporter:
    """One worker's: the engine's `Traces`. `exported` and `dropped` count spans, `dropped` by reason."""

    def __init__(self, settings: Settings, clock: Clock, exported: Counter, dropped: Counter) -> None:
        assert settings.otel_exporter_otlp_endpoint is not None
        self._url = settings.otel_exporter_otlp_endpoint.rstrip("/") + "/v1/traces"
        self._headers = {"content-type": "application/x-protobuf", **headers_of(settings)}
        self._ratio = settings.otel_traces_sampler_arg
        self._settings = settings
        self._clock = clock
        self._exported = exported
        self._dropped = dropped
        for reason in _REASONS:
            # From zero on: of a figure that begins at its first value nobody sees that it has grown.
            dropped.add((reason,), 0)
        self._waiting: deque[list[Span]] = deque()
        self._count = 0
        self._told = False
        self._session: aiohttp.ClientSession | None = None
        self._sending: asyncio.Task[None] | None = None

    def begin(self, x: Received) -> Trace | None:
        return tracing.begin(x.headers, self._ratio)

    def finished(self, x: Answered) -> None:
        if x.trace is None or not x.trace.sampled:
            return
        try:
            made = spans.of_request(x, self._clock.monotonic())
        except Exception as error:
            # The request's record must not be lost for its trace. What was said in it is in no log.
            log.error("tracing.not_made", fault=type(error).__name__)  # noqa: TRY400
            self._dropped.add(("not_made",), len(x.trace.calls) + 1)
            return
        if self._count + len(made) > QUEUE:
            self._dropped.add(("queue_full",), len(made))
            return
        self._waiting.append(made)
        self._count += len(made)

    async def start(self) -> None:
        # The address is the operator's, as the database's is: no proxy of the environment's comes between.
        self._session = aiohttp.ClientSession(timeout=_TIMEOUT)
        self._sending = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Sends what waits, if the collector takes it."""
        if self._sending is None or self._session is None:
            return
        self._sending.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._sending
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST):
                while self._waiting:
                    await self._send(self._batch())
        self._dropped.add(("stopped",), self._count)
        await self._session.close()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(_PAUSE)
            while self._waiting:
                await self._send(self._batch())

    def _batch(self) -> list[Span]:
        """Whole requests, so that a trace's spans arrive together."""
        batch: list[Span] = []
        while self._waiting and len(batch) + len(self._waiting[0]) <= max(BATCH, len(self._waiting[0])):
            batch += self._waiting.popleft()
        self._count -= len(batch)
        return batch

    async def _send(self, batch: list[Span]) -> None:
        status = None
        try:
            body = await asyncio.to_thread(self._encoded, batch)
            for pause in (*_RETRIES, None):
                status, rejected = await self._post(body)
                if status is not None and 200 <= status < 300:
                    rejected = min(rejected, len(batch))
                    self._exported.add((), len(batch) - rejected)
                    self._dropped.add(("rejected",), rejected)
                    self._told = False
                    return
                if pause is None or (status is not None and status not in _AGAIN):
                    break
                await asyncio.sleep(pause)
        except asyncio.CancelledError:
            # The last flush may still get it there.
            self._waiting.appendleft(batch)
            self._count += len(batch)
            raise
        except Exception as error:
            # Whatever is wrong with these, those that come after them are sent.
            log.error("tracing.fault", fault=type(error).__name__)  # noqa: TRY400
        self._dropped.add(("not_taken",), len(batch))
        if not self._told:
            # Once, until one is taken again.
            self._told = True
            log.warning("tracing.not_taken", status=status, spans=len(batch))

    def _encoded(self, batch: Sequence[Span]) -> bytes:
        told = self._settings
        more = _pairs(told.otel_resource_attributes)
        resource = messages.resource(told.otel_service_name, more, told.environment)
        body: bytes = messages.encoded(batch, resource)
        return body

    async def _post(self, body: bytes) -> tuple[int | None, int]:
        """The status, None where there was none; and how many spans the collector will not have for good."""
        assert self._session is not None
        try:
            async with self._session.post(self._url, data=body, headers=self._headers, allow_redirects=False) as answer:
                told = await answer.content.read(_MOST_BYTES) if answer.status == 200 else b""
                return answer.status, messages.rejected(told)
        except (aiohttp.ClientError, TimeoutError, OSError):
            return None, 0


def _pairs(told: str) -> Mapping[str, str]:
    """`name=value`, comma-separated, values percent-encoded: as OpenTelemetry's variables are written."""
    pairs = (pair.partition("=") for pair in told.split(","))
    return {name.strip(): unquote(value.strip()) for name, _, value in pairs if name.strip()}


def headers_of(settings: Settings) -> Mapping[str, str]:
    """Raises `BadSettings`: no value is told, since they are secrets."""
    told = settings.otel_exporter_otlp_headers
    pairs = _pairs(told.get_secret_value()) if told is not None else {}
    for name, value in pairs.items():
        if not (_NAME(name) and value.isprintable()):
            raise BadSettings("OTEL_EXPORTER_OTLP_HEADERS: not `name=value`, comma-separated")
    return pairs
