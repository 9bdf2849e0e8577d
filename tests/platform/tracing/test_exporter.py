"""Traces as a collector gets them: a real one over HTTP, its messages parsed."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from tests.support.engine import HeldEngine, completion, events
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.engine.exchange import Received
from gatehouse.foundation.clock import SYSTEM_CLOCK
from gatehouse.foundation.settings import BadSettings, Settings
from gatehouse.platform.metrics import Figures
from gatehouse.platform.tracing import exporter
from gatehouse.platform.tracing.exporter import Exporter

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
CONTEXT = f"00-{TRACE}-{PARENT}-01"
BROKEN: tuple[int, list[bytes | Exception]] = (503, [b"{}"])
SECRET = "the moon is made of cheese"


@dataclass
class Collector:
    """Answers with `statuses` in turn, then 200."""

    url: str = ""
    statuses: list[int] = field(default_factory=list)
    got: list[ExportTraceServiceRequest] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    raw: bytes = b""
    asked: int = 0

    async def take(self, request: web.Request) -> web.Response:
        self.asked += 1
        body = await request.read()
        if self.statuses:
            return web.Response(status=self.statuses.pop(0))
        self.raw += body
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        self.got.append(ExportTraceServiceRequest.FromString(body))
        return web.Response()

    @property
    def spans(self) -> list[dict[str, Any]]:
        """Those that came, each with its attributes as plain values."""
        return [
            {
                "name": span.name,
                "kind": Span.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_"),
                "trace": span.trace_id.hex(),
                "id": span.span_id.hex(),
                "parent": span.parent_span_id.hex(),
                "state": span.trace_state,
                "took": span.end_time_unix_nano - span.start_time_unix_nano,
                "error": span.status.code == Status.STATUS_CODE_ERROR,
                **{pair.key: getattr(pair.value, pair.value.WhichOneof("value") or "") for pair in span.attributes},
            }
            for request in self.got
            for of_resource in request.resource_spans
            for of_scope in of_resource.scope_spans
            for span in of_scope.spans
        ]


@pytest.fixture
async def collector() -> AsyncIterator[Collector]:
    made = Collector()
    app = web.Application()
    app.router.add_post("/otlp/v1/traces", made.take)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}/otlp"
    yield made
    await runner.cleanup()


@asynccontextmanager
async def exporting(url: str, home: Path, **environment: str) -> AsyncIterator[tuple[Exporter, Figures]]:
    """Stopped at the end, so that what waits is sent."""
    figures = Figures(home)
    settings = Settings.from_environment({"OTEL_EXPORTER_OTLP_ENDPOINT": url, **environment})
    made = Exporter(settings, SYSTEM_CLOCK, figures.spans_exported, figures.spans_dropped)
    await made.start()
    try:
        yield made, figures
    finally:
        await made.stop()


def engine(traces: Exporter) -> tuple[HeldEngine, Received]:
    held = HeldEngine()
    held.serve("one", "m")
    held.serve("two", "m", kind="mistral")
    held.ports.traces = traces
    # Moments are told by the real clock: spans are compared with it.
    held.ports.clock = SYSTEM_CLOCK
    body = {"model": "one/m", "fallbacks": ["two/m"], "messages": [{"role": "user", "content": SECRET}]}
    received = held.request(body)
    received.received_at, received.started = SYSTEM_CLOCK.now(), SYSTEM_CLOCK.monotonic()
    received.headers = {"traceparent": CONTEXT, "tracestate": "vendor=1"}
    return held, received


async def test_a_request_is_a_server_span_with_a_client_span_a_try(collector: Collector, tmp_path: Path) -> None:
    async with exporting(collector.url, tmp_path) as (traces, figures):
        held, received = engine(traces)
        held.outbound.script = [BROKEN, (200, [completion(SECRET, usage=(10, 5))])]
        assert (await held.engine.answer(received)).status == 200
    failed, good, server = collector.spans
    assert {span["trace"] for span in (failed, good, server)} == {TRACE}
    assert {span["state"] for span in (failed, good, server)} == {"vendor=1"}
    assert (server["kind"], server["name"], server["parent"]) == ("SERVER", "POST /v1/chat/completions", PARENT)
    assert [(span["kind"], span["name"], span["parent"]) for span in (failed, good)] == [
        ("CLIENT", "chat m", server["id"])
    ] * 2
    sent = [request.headers["traceparent"].split("-")[2] for request in held.outbound.sent]
    assert [failed["id"], good["id"]] == sent
    assert (failed["error"], failed["error.type"], failed["http.response.status_code"]) == (True, "http_503", 503)
    assert (failed["gatehouse.provider_id"], failed["gen_ai.system"]) == ("one", "openai_compatible")
    assert "gen_ai.usage.input_tokens" not in failed
    assert (good["error"], "error.type" in good) == (False, False)
    expected = {
        "gen_ai.operation.name": "chat", "gen_ai.provider.name": "mistral_ai", "gen_ai.request.model": "m",
        "gen_ai.response.model": "m", "gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 5,
    }  # fmt: skip
    assert expected.items() <= good.items()
    assert {**expected, "gen_ai.request.model": "one/m"}.items() <= server.items()
    assert server["gatehouse.fallbacks"] == 1
    assert server["gatehouse.stream"] is False
    assert server["gatehouse.cost_usd"] == pytest.approx(0.00002)
    assert server["took"] >= good["took"] > 0
    assert figures.spans_exported.values == {(): 3.0}
    assert figures.spans_dropped.values.get(("stopped",), 0.0) == 0


async def test_no_text_of_a_request_or_an_answer_is_in_a_span(collector: Collector, tmp_path: Path) -> None:
    async with exporting(collector.url, tmp_path) as (traces, _):
        for model in ("one/m", f"{SECRET}/x"):
            held, received = engine(traces)
            held.outbound.script = [(200, [completion(SECRET)])]
            received.body = json.dumps(
                {"model": model, "messages": [{"role": "user", "content": SECRET}], "user": SECRET}
            ).encode()
            await held.engine.answer(received)
    assert len(collector.spans) == 3
    assert SECRET.encode() not in collector.raw
    refused = collector.spans[-1]
    assert (refused["error.type"], refused["error"], "gen_ai.request.model" in refused) == (
        "model_not_found", False, False,
    )  # fmt: skip


async def test_a_broken_streams_call_and_request_are_both_errors(collector: Collector, tmp_path: Path) -> None:
    async with exporting(collector.url, tmp_path) as (traces, _):
        held, received = engine(traces)
        received.body = received.body.replace(b'"model"', b'"stream": true, "model"')
        held.outbound.script = [(200, [*events("x", done=False)[:1], OSError()])]
        answer = await held.engine.answer(received)
        assert answer.stream is not None
        assert [block async for block in answer.stream]
    client, server = collector.spans
    assert (client["error"], server["error"], client["error.type"]) == (True, True, server["error.type"])


async def test_the_resource_is_what_the_environment_says(collector: Collector, tmp_path: Path) -> None:
    told = {
        "OTEL_SERVICE_NAME": "the-gateway", "OTEL_RESOURCE_ATTRIBUTES": "team=ai, region=eu",
        "OTEL_EXPORTER_OTLP_HEADERS": "api-key=k=1, x-team=ai", "ENVIRONMENT": "staging",
    }  # fmt: skip
    async with exporting(collector.url, tmp_path, **told) as (traces, _):
        held, received = engine(traces)
        held.outbound.script = [(200, [completion()])]
        await held.engine.answer(received)
    (of_resource,) = collector.got[0].resource_spans
    attributes = {pair.key: pair.value.string_value for pair in of_resource.resource.attributes}
    assert {
        "service.name": "the-gateway", "team": "ai", "region": "eu", "deployment.environment.name": "staging",
    }.items() <= attributes.items()  # fmt: skip
    headers = collector.headers[0]
    assert (headers["content-type"], headers["api-key"], headers["x-team"]) == ("application/x-protobuf", "k=1", "ai")


async def test_what_the_collector_refuses_for_a_while_is_sent_again(
    collector: Collector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporter, "_RETRIES", (0.0, 0.0))
    collector.statuses = [503, 429]
    async with exporting(collector.url, tmp_path) as (traces, figures):
        held, received = engine(traces)
        held.outbound.script = [(200, [completion()])]
        await held.engine.answer(received)
    assert (collector.asked, len(collector.spans)) == (3, 2)
    assert figures.spans_exported.values == {(): 2.0}


@pytest.mark.parametrize("statuses", [[400], [503, 503, 503]])
async def test_what_it_does_not_take_is_dropped_and_counted(
    collector: Collector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, statuses: list[int]
) -> None:
    monkeypatch.setattr(exporter, "_RETRIES", (0.0, 0.0))
    collector.statuses = list(statuses)
    async with exporting(collector.url, tmp_path) as (traces, figures):
        held, received = engine(traces)
        held.outbound.script = [(200, [completion()])]
        await held.engine.answer(received)
    assert (collector.asked, collector.spans) == (len(statuses), [])
    assert figures.spans_dropped.values[("not_taken",)] == 2.0


async def test_more_than_the_queue_holds_is_dropped_and_the_request_goes_on(
    collector: Collector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporter, "QUEUE", 5)
    async with exporting(collector.url, tmp_path) as (traces, figures):
        for _ in range(4):
            held, received = engine(traces)
            held.outbound.script = [(200, [completion()])]
            assert (await held.engine.answer(received)).status == 200
    assert len(collector.spans) == 4
    assert figures.spans_dropped.values[("queue_full",)] == 4.0


async def test_batches_hold_whole_requests(
    collector: Collector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporter, "BATCH", 5)
    async with exporting(collector.url, tmp_path) as (traces, _):
        for _ in range(5):
            held, received = engine(traces)
            held.outbound.script = [(200, [completion()])]
            await held.engine.answer(received)
    sizes = [len(request.resource_spans[0].scope_spans[0].spans) for request in collector.got]
    assert sizes == [4, 4, 2]


async def test_a_collector_that_is_away_keeps_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporter, "_RETRIES", (0.0,))
    async with exporting("http://127.0.0.1:9", tmp_path) as (traces, figures):
        held, received = engine(traces)
        held.outbound.script = [(200, [completion()])]
        assert (await held.engine.answer(received)).status == 200
    assert figures.spans_dropped.values[("not_taken",)] == 2.0


async def test_an_unsampled_request_is_not_sent(collector: Collector, tmp_path: Path) -> None:
    async with exporting(collector.url, tmp_path) as (traces, _):
        held, received = engine(traces)
        received.headers = {"traceparent": CONTEXT.removesuffix("01") + "00"}
        held.outbound.script = [(200, [completion()])]
        await held.engine.answer(received)
    assert collector.asked == 0


async def test_spans_are_sent_while_it_runs(
    collector: Collector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporter, "_PAUSE", 0.01)
    async with exporting(collector.url, tmp_path) as (traces, _):
        held, received = engine(traces)
        held.outbound.script = [(200, [completion()])]
        await held.engine.answer(received)
        async with asyncio.timeout(10):
            while len(collector.spans) < 2:
                await asyncio.sleep(0.01)


async def test_the_platforms_own_requests_are_traced_over_http(
    platform: RunningPlatform, tenant: Tenant, collector: Collector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await platform.add_provider(tenant.id, "sandbox", "sandbox", "echo")
    async with exporting(collector.url, tmp_path) as (traces, _):
        monkeypatch.setattr(platform.host.ports, "traces", traces)
        answer = await tenant.admin.client.post(
            "/v1/chat/completions",
            json={"model": "sandbox/echo", "messages": [{"role": "user", "content": SECRET}]},
            headers={"traceparent": CONTEXT, "X-Gateway-Timing": "1"},
        )
    assert answer.status_code == 200
    assert "total;dur=" in answer.headers["X-Gateway-Timing"]
    client, server = collector.spans
    assert (server["trace"], server["parent"], server["gatehouse.tenant_id"]) == (TRACE, PARENT, str(tenant.id))
    assert server["gatehouse.request_id"] == answer.headers["X-Request-Id"]
    assert (client["gen_ai.provider.name"], client["error"]) == ("sandbox", False)
    assert SECRET.encode() not in collector.raw


@pytest.mark.parametrize("url", ["collector:4318", "ftp://collector", "http://"])
def test_an_endpoint_that_is_no_web_address_ends_the_start(url: str) -> None:
    with pytest.raises(BadSettings, match="OTEL_EXPORTER_OTLP_ENDPOINT"):
        Settings.from_environment({"OTEL_EXPORTER_OTLP_ENDPOINT": url})
