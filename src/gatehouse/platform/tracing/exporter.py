"""Sends spans to a collector, beside the requests: a bounded queue, batches, retries. What has no room or cannot be
sent is dropped and counted; no request ever waits for it."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Final

import aiohttp
import structlog

from gatehouse.engine import tracing
from gatehouse.engine.exchange import Answered, Received
from gatehouse.engine.tracing import Trace
from gatehouse.foundation.clock import Clock
from gatehouse.foundation.lazily import Lazily
from gatehouse.foundation.metrics import Counter
from gatehouse.foundation.settings import Settings
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
#: Seconds that a stopping worker gives to what waits.
_LAST: Final = 3.0


class Exporter:
    """One worker's: the engine's `Traces`. `exported` and `dropped` count spans, `dropped` by reason."""

    def __init__(self, settings: Settings, clock: Clock, exported: Counter, dropped: Counter) -> None:
        assert settings.otel_exporter_otlp_endpoint is not None
        self._url = settings.otel_exporter_otlp_endpoint.rstrip("/") + "/v1/traces"
        self._headers = {"content-type": "application/x-protobuf", **_pairs(settings)}
        self._ratio = settings.otel_traces_sampler_arg
        self._settings = settings
        self._clock = clock
        self._exported = exported
        self._dropped = dropped
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
        made = spans.of_request(x, self._clock.monotonic())
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
        try:
            body = await asyncio.to_thread(self._encoded, batch)
            for pause in (*_RETRIES, None):
                status = await self._post(body)
                if status is not None and 200 <= status < 300:
                    self._exported.add((), len(batch))
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
        self._dropped.add(("not_taken",), len(batch))
        if not self._told:
            # Once, until one is taken again.
            self._told = True
            log.warning("tracing.not_taken", status=status, spans=len(batch))

    def _encoded(self, batch: Sequence[Span]) -> bytes:
        told = self._settings
        resource = messages.resource(told.otel_service_name, told.otel_resource_attributes, told.environment)
        body: bytes = messages.encoded(batch, resource)
        return body

    async def _post(self, body: bytes) -> int | None:
        """The status; None where there was none."""
        assert self._session is not None
        try:
            async with self._session.post(self._url, data=body, headers=self._headers, allow_redirects=False) as answer:
                return answer.status
        except (aiohttp.ClientError, TimeoutError, OSError):
            return None


def _pairs(settings: Settings) -> Mapping[str, str]:
    """`OTEL_EXPORTER_OTLP_HEADERS`: `name=value`, comma-separated."""
    told = settings.otel_exporter_otlp_headers
    pairs = told.get_secret_value().split(",") if told is not None else ()
    return {name.strip(): value.strip() for name, _, value in (pair.partition("=") for pair in pairs) if name}
