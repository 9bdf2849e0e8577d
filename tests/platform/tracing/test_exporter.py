"""Traces at a collector, which is a real HTTP server that parses the messages."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from opentelemetry.semconv._incubating.attributes.gen_ai_attributes import GenAiProviderNameValues
from tests.support.engine import EngineHarness, completion, events
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.engine.exchange import Received
from gatehouse.engine.providers.registry import KINDS
from gatehouse.foundation.clock import SYSTEM_CLOCK
from gatehouse.foundation.settings import BadSettings, Settings
from gatehouse.platform.metrics import PlatformMetrics
from gatehouse.platform.tracing import exporter
from gatehouse.platform.tracing.exporter import Exporter

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
CONTEXT = f"00-{TRACE}-{PARENT}-01"
BROKEN: tuple[int, list[bytes | Exception]] = (503, [b"{}"])
SECRET = "the moon is made of cheese"
USAGE = b'{"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}'
CONVENTIONS = {result for name, result in vars(gen_ai_attributes).items() if name.startswith("GEN_AI_")}


@dataclass
class Collector:
    """A collector that answers with `statuses` in turn, then with 200."""

    url: str = ""
    statuses: list[int] = field(default_factory=list)
    got: list[ExportTraceServiceRequest] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    raw: bytes = b""
    request_count: int = 0
    #: The body of its answers, for example with the number of rejected spans.
    answer: bytes = b""

    async def take(self, request: web.Request) -> web.Response:
        self.request_count += 1
        body = await request.read()
        if self.statuses:
            return web.Response(status=self.statuses.pop(0))
        self.raw += body
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        self.got.append(ExportTraceServiceRequest.FromString(body))
        return web.Response(body=self.answer)

    @property
    def spans(self) -> list[dict[str, Any]]:
        """Return the received spans, with their attributes as plain values."""
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
async def exporting(url: str, home: Path, **environment: str) -> AsyncIterator[tuple[Exporter, PlatformMetrics]]:
    """Run an exporter. It is stopped at the end, so that waiting spans are sent."""
    figures = PlatformMetrics(home)
    settings = Settings.from_environment({"OTEL_EXPORTER_OTLP_ENDPOINT": url, **environment})
    made = Exporter(settings, SYSTEM_CLOCK, figures.spans_exported, figures.spans_dropped)
    await made.start()
    try:
        yield made, figures
    finally:
        await made.stop()


def engine(traces: Exporter) -> tuple[EngineHarness, Received]:
    harness = EngineHarness()
    harness.serve("one", "m")
    harness.serve("two", "m", kind="mistral")
    harness.ports.traces = traces
    # The real clock, with which the times of spans are compared.
    harness.ports.clock = SYSTEM_CLOCK
    body = {"model": "one/m", "fallbacks": ["two/m"], "messages": [{"role": "user", "content": SECRET}]}
    received = harness.request(body)
    now, started = SYSTEM_CLOCK.now(), SYSTEM_CLOCK.monotonic()
    received = msgspec.structs.replace(received, received_at=now, started=started)
    received = msgspec.structs.replace(received, headers={"traceparent": CONTEXT, "tracestate": "vendor=1"})
    return harness, received


async def test_a_request_is_a_server_span_with_a_client_span_for_each_attempt(
    collector: Collector, tmp_path: Path
) -> None:
    async with exporting(collector.url, tmp_path) as (traces, figures):
        harness, received = engine(traces)
        harness.outbound.script = [BROKEN, (200, [completion(SECRET, usage=(10, 5))])]
        assert (await harness.engine.answer(received)).status == 200
    failed, good, server = collector.spans
    assert {span["trace"] for span in (failed, good, server)} == {TRACE}
    assert {span["state"] for span in (failed, good, server)} == {"vendor=1"}
    assert (server["kind"], server["name"], server["parent"]) == ("SERVER", "POST /v1/chat/completions", PARENT)
    assert [(span["kind"], span["name"], span["parent"]) for span in (failed, good)] == [
        ("CLIENT", "chat m", server["id"])
    ] * 2
    sent = [request.headers["traceparent"].split("-")[2] for request in harness.outbound.sent]
    assert [failed["id"], good["id"]] == sent
    assert (failed["error"], failed["error.type"], failed["http.response.status_code"]) == (True, "http_503", 503)
    assert (failed["gatehouse.provider_id"], failed["gen_ai.system"]) == ("one", "openai_compatible")
    assert "gen_ai.usage.input_tokens" not in failed
    assert (good["error"], "error.type" in good) == (False, False)
    expected = {
        "gen_ai.operation.name": "chat", "gen_ai.provider.name": "mistral_ai", "gen_ai.request.model": "m",
        "gen_ai.request.stream": False, "gen_ai.response.model": "m", "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 5, "server.address": "two.test", "server.port": 80,
    }  # fmt: skip
    assert expected.items() <= good.items()
    # Tokens must be in only one span, so that sums over spans are correct.
    assert not [name for name in server if name.startswith("gen_ai.")]
    assert server["gatehouse.requested_model"] == "one/m"
    assert server["gatehouse.fallbacks"] == 1
    assert server["gatehouse.stream"] is False
    assert server["gatehouse.cost_usd"] == pytest.approx(0.00002)
    assert server["took"] >= good["took"] > 0
    assert figures.spans_exported.values == {(): 3.0}
    assert figures.spans_dropped.values.get(("stopped",), 0.0) == 0


async def test_spans_contain_no_text_of_requests_and_answers(collector: Collector, tmp_path: Path) -> None:
    async with exporting(collector.url, tmp_path) as (traces, _):
        for model in ("one/m", f"{SECRET}/x"):
            harness, received = engine(traces)
            harness.outbound.script = [(200, [completion(SECRET)])]
            received = msgspec.structs.replace(
                received,
                body=json.dumps(
                    {"model": model, "messages": [{"role": "user", "content": SECRET}], "user": SECRET}
                ).encode(),
            )
            await harness.engine.answer(received)
    assert len(collector.spans) == 3
    assert SECRET.encode() not in collector.raw
    refused = collector.spans[-1]
    assert (refused["error.type"], refused["error"], "gatehouse.requested_model" in refused) == (
        "model_not_found", False, False,
    )  # fmt: skip


async def test_cached_tokens_are_counted_as_input_tokens(collector: Collector, tmp_path: Path) -> None:
    async with exporting(collector.url, tmp_path) as (traces, _):
        harness, received = engine(traces)
        usage = {
            "prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 105,
            "prompt_tokens_details": {"cached_tokens": 80},
        }  # fmt: skip
        harness.outbound.script = [(200, [completion().replace(USAGE, json.dumps(usage).encode())])]
        await harness.engine.answer(received)
    good, _ = collector.spans
    assert {name: result for name, result in good.items() if name.startswith("gen_ai.usage.")} == {
        "gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 5,
        "gen_ai.usage.cache_read.input_tokens": 80, "gen_ai.usage.cache_creation.input_tokens": 0,
    }  # fmt: skip


@pytest.mark.parametrize("limit", ["max_tokens", "max_completion_tokens"])
async def test_parameters_of_a_request_are_traced_as_numbers_and_never_as_text(
    collector: Collector, tmp_path: Path, limit: str
) -> None:
    request = {
        limit: 50, "temperature": 0.5, "top_p": 1, "seed": 7, "n": 2, "frequency_penalty": None, "top_k": SECRET,
        "presence_penalty": 10**400,
    }  # fmt: skip
    async with exporting(collector.url, tmp_path) as (traces, figures):
        harness, received = engine(traces)
        received = msgspec.structs.replace(received, body=json.dumps({**json.loads(received.body), **request}).encode())
        harness.outbound.script = [(200, [completion()])]
        await harness.engine.answer(received)
    call, _ = collector.spans
    assert {name: result for name, result in call.items() if name in CONVENTIONS and "request" in name} == {
        "gen_ai.request.model": "m", "gen_ai.request.stream": False, "gen_ai.request.max_tokens": 50,
        "gen_ai.request.temperature": 0.5, "gen_ai.request.top_p": 1.0, "gen_ai.request.seed": 7,
        "gen_ai.request.choice.count": 2,
    }  # fmt: skip
    assert isinstance(call["gen_ai.request.top_p"], float)
    assert sum(figures.spans_dropped.values.values()) == 0


async def test_attribute_names_follow_the_semantic_conventions(collector: Collector, tmp_path: Path) -> None:
    async with exporting(collector.url, tmp_path) as (traces, _):
        for kind in KINDS:
            harness, received = engine(traces)
            received = msgspec.structs.replace(received, headers={})
            harness.serve("three", "x", kind=kind)
            received = msgspec.structs.replace(
                received, body=received.body.replace(b"one/m", b"three/x").replace(b"two/m", b"one/m")
            )
            harness.outbound.script = [(200, [completion()])] * 2
            await harness.engine.answer(received)
    result = {name for span in collector.spans for name in span if name.startswith("gen_ai.")}
    assert result <= CONVENTIONS
    assert {"gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model"} <= result
    known = {genaiprovidernamevalue.value for genaiprovidernamevalue in GenAiProviderNameValues}
    own = {span["gen_ai.provider.name"] for span in collector.spans if span["kind"] == "CLIENT"} - known
    # The conventions have no names for these providers.
    assert own <= {"openai_compatible", "ollama", "byoe", "sandbox"}
    assert {span["gen_ai.operation.name"] for span in collector.spans if span["kind"] == "CLIENT"} == {"chat"}


async def test_a_conversations_id_is_in_the_calls_span_and_not_in_the_route(
    collector: Collector, tmp_path: Path
) -> None:
    conversation = "01a20229-27de-792e-8b51-90ac3704c38f"
    async with exporting(collector.url, tmp_path) as (traces, _):
        harness, received = engine(traces)
        received = msgspec.structs.replace(received, path=f"/api/conversations/{conversation}/messages")
        harness.outbound.script = [(200, [completion()])]
        await harness.engine.answer(received)
    call, server = collector.spans
    assert (server["name"], server["http.route"]) == (
        "POST /api/conversations/{conversation_id}/messages", "/api/conversations/{conversation_id}/messages",
    )  # fmt: skip
    assert call["gen_ai.conversation.id"] == conversation


async def test_impossible_usage_of_a_provider_does_not_prevent_tracing(collector: Collector, tmp_path: Path) -> None:
    async with exporting(collector.url, tmp_path) as (traces, figures):
        for tokens in (10**30, 3):
            harness, received = engine(traces)
            harness.outbound.script = [(200, [completion(usage=(tokens, tokens))])]
            assert (await harness.engine.answer(received)).status == 200
    assert [span.get("gen_ai.usage.input_tokens") for span in collector.spans if span["kind"] == "CLIENT"] == [None, 3]
    assert figures.spans_exported.values == {(): 4.0}


async def test_spans_that_cannot_be_encoded_do_not_block_later_ones(
    collector: Collector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporter, "_EXPORT_INTERVAL_SECONDS", 0.01)
    async with exporting(collector.url, tmp_path) as (traces, figures):
        for request_id in ("\ud800", "good"):
            harness, received = engine(traces)
            received = msgspec.structs.replace(received, request_id=request_id)
            harness.outbound.script = [(200, [completion()])]
            with contextlib.suppress(UnicodeEncodeError):
                await harness.engine.answer(received)
            async with asyncio.timeout(60):
                while traces._waiting:
                    await asyncio.sleep(0.01)
    assert figures.spans_dropped.values[("not_taken",)] == 2.0
    assert len(collector.spans) == 2


async def test_a_request_is_answered_and_recorded_if_its_spans_cannot_be_created(
    collector: Collector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> None:
        raise RuntimeError

    monkeypatch.setattr(exporter.spans, "of_request", fails)
    async with exporting(collector.url, tmp_path) as (traces, figures):
        harness, received = engine(traces)
        harness.outbound.script = [(200, [completion()])]
        assert (await harness.engine.answer(received)).status == 200
    assert len(harness.outcomes) == 1
    assert figures.spans_dropped.values[("not_made",)] == 2.0


async def test_spans_that_the_collector_rejects_are_not_counted_as_sent(collector: Collector, tmp_path: Path) -> None:
    collector.answer = ExportTraceServiceResponse(
        partial_success=ExportTracePartialSuccess(rejected_spans=1, error_message="too old")
    ).SerializeToString()
    async with exporting(collector.url, tmp_path) as (traces, figures):
        harness, received = engine(traces)
        harness.outbound.script = [(200, [completion()])]
        await harness.engine.answer(received)
    assert (figures.spans_exported.values, figures.spans_dropped.values[("rejected",)]) == ({(): 1.0}, 1.0)


async def test_a_broken_streams_call_and_request_are_both_errors(collector: Collector, tmp_path: Path) -> None:
    async with exporting(collector.url, tmp_path) as (traces, _):
        harness, received = engine(traces)
        received = msgspec.structs.replace(received, body=received.body.replace(b'"model"', b'"stream": true, "model"'))
        harness.outbound.script = [(200, [*events("x", done=False)[:1], OSError()])]
        answer = await harness.engine.answer(received)
        assert answer.stream is not None
        assert [block async for block in answer.stream]
    client, server = collector.spans
    assert (client["error"], server["error"], client["error.type"]) == (True, True, server["error.type"])


async def test_the_resource_is_set_by_the_environment(collector: Collector, tmp_path: Path) -> None:
    body = {
        "OTEL_SERVICE_NAME": "the-gateway", "OTEL_RESOURCE_ATTRIBUTES": "team=ai%20platform, region=eu",
        "OTEL_EXPORTER_OTLP_HEADERS": "Authorization=Basic%20a2V5, api-key=k=1, x-team=ai", "ENVIRONMENT": "staging",
    }  # fmt: skip
    async with exporting(collector.url, tmp_path, **body) as (traces, _):
        harness, received = engine(traces)
        harness.outbound.script = [(200, [completion()])]
        await harness.engine.answer(received)
    (of_resource,) = collector.got[0].resource_spans
    attributes = {pair.key: pair.value.string_value for pair in of_resource.resource.attributes}
    assert {
        "service.name": "the-gateway", "team": "ai platform", "region": "eu", "deployment.environment.name": "staging",
    }.items() <= attributes.items()  # fmt: skip
    headers = collector.headers[0]
    assert (headers["content-type"], headers["api-key"], headers["x-team"]) == ("application/x-protobuf", "k=1", "ai")
    # The setting for headers is written in the formats that vendors document.
    assert headers["authorization"] == "Basic a2V5"


async def test_spans_that_the_collector_refuses_temporarily_are_sent_again(
    collector: Collector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporter, "_RETRY_DELAYS_SECONDS", (0.0, 0.0))
    collector.statuses = [503, 429]
    async with exporting(collector.url, tmp_path) as (traces, figures):
        harness, received = engine(traces)
        harness.outbound.script = [(200, [completion()])]
        await harness.engine.answer(received)
    assert (collector.request_count, len(collector.spans)) == (3, 2)
    assert figures.spans_exported.values == {(): 2.0}


@pytest.mark.parametrize("statuses", [[400], [503, 503, 503]])
async def test_spans_that_the_collector_refuses_are_dropped_and_counted(
    collector: Collector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, statuses: list[int]
) -> None:
    monkeypatch.setattr(exporter, "_RETRY_DELAYS_SECONDS", (0.0, 0.0))
    collector.statuses = list(statuses)
    async with exporting(collector.url, tmp_path) as (traces, figures):
        harness, received = engine(traces)
        harness.outbound.script = [(200, [completion()])]
        await harness.engine.answer(received)
    assert (collector.request_count, collector.spans) == (len(statuses), [])
    assert figures.spans_dropped.values[("not_taken",)] == 2.0


async def test_spans_beyond_the_queues_limit_are_dropped_and_the_request_continues(
    collector: Collector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporter, "MAX_QUEUED_SPANS", 5)
    async with exporting(collector.url, tmp_path) as (traces, figures):
        for _ in range(4):
            harness, received = engine(traces)
            harness.outbound.script = [(200, [completion()])]
            assert (await harness.engine.answer(received)).status == 200
    assert len(collector.spans) == 4
    assert figures.spans_dropped.values[("queue_full",)] == 4.0


async def test_all_spans_of_a_request_are_in_one_batch(
    collector: Collector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporter, "MAX_BATCH_SPANS", 5)
    async with exporting(collector.url, tmp_path) as (traces, _):
        for _ in range(5):
            harness, received = engine(traces)
            harness.outbound.script = [(200, [completion()])]
            await harness.engine.answer(received)
    sizes = [len(request.resource_spans[0].scope_spans[0].spans) for request in collector.got]
    assert sizes == [4, 4, 2]


async def test_an_unreachable_collector_does_not_affect_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporter, "_RETRY_DELAYS_SECONDS", (0.0,))
    async with exporting("http://127.0.0.1:9", tmp_path) as (traces, figures):
        harness, received = engine(traces)
        harness.outbound.script = [(200, [completion()])]
        assert (await harness.engine.answer(received)).status == 200
    assert figures.spans_dropped.values[("not_taken",)] == 2.0


async def test_a_stop_during_a_request_to_the_collector_sends_nothing_twice(
    collector: Collector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporter, "_EXPORT_INTERVAL_SECONDS", 0.01)
    for count in range(20):
        async with exporting(collector.url, tmp_path) as (traces, figures):
            harness, received = engine(traces)
            harness.outbound.script = [(200, [completion()])]
            await harness.engine.answer(received)
            async with asyncio.timeout(60):
                while collector.request_count == count:
                    await asyncio.sleep(0)
        assert figures.spans_exported.values == {(): 2.0}
    assert len(collector.spans) == 40


async def test_an_unsampled_request_is_not_sent(collector: Collector, tmp_path: Path) -> None:
    async with exporting(collector.url, tmp_path) as (traces, _):
        harness, received = engine(traces)
        received = msgspec.structs.replace(received, headers={"traceparent": CONTEXT.removesuffix("01") + "00"})
        harness.outbound.script = [(200, [completion()])]
        await harness.engine.answer(received)
    assert collector.request_count == 0


async def test_spans_are_sent_while_the_exporter_runs(
    collector: Collector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporter, "_EXPORT_INTERVAL_SECONDS", 0.01)
    async with exporting(collector.url, tmp_path) as (traces, _):
        harness, received = engine(traces)
        harness.outbound.script = [(200, [completion()])]
        await harness.engine.answer(received)
        async with asyncio.timeout(60):
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
            headers=[
                ("traceparent", CONTEXT),
                ("tracestate", "a=1"),
                ("tracestate", "b=2,c=3"),
                ("X-Gateway-Timing", "1"),
            ],
        )
    assert answer.status_code == 200
    assert "total;dur=" in answer.headers["X-Gateway-Timing"]
    client, server = collector.spans
    assert (server["trace"], server["parent"], server["gatehouse.tenant_id"]) == (TRACE, PARENT, str(tenant.id))
    # Several header lines are one list.
    assert server["state"] == "a=1,b=2,c=3"
    assert server["gatehouse.request_id"] == answer.headers["X-Request-Id"]
    assert (client["gen_ai.provider.name"], client["error"]) == ("sandbox", False)
    assert SECRET.encode() not in collector.raw


@pytest.mark.parametrize("url", ["collector:4318", "ftp://collector", "http://"])
def test_an_invalid_endpoint_prevents_the_start(url: str) -> None:
    with pytest.raises(BadSettings, match="OTEL_EXPORTER_OTLP_ENDPOINT"):
        Settings.from_environment({"OTEL_EXPORTER_OTLP_ENDPOINT": url})


@pytest.mark.parametrize("headers", ["key\u00e9=1", "x-key=a%0Ab", "two words=1"])
def test_invalid_headers_prevent_the_start_and_are_not_shown(tmp_path: Path, headers: str) -> None:
    settings = Settings.from_environment(
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_EXPORTER_OTLP_HEADERS": headers}
    )
    figures = PlatformMetrics(tmp_path)
    with pytest.raises(BadSettings, match="OTEL_EXPORTER_OTLP_HEADERS") as refused:
        Exporter(settings, SYSTEM_CLOCK, figures.spans_exported, figures.spans_dropped)
    assert headers not in str(refused.value)
