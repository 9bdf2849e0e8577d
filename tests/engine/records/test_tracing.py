"""The trace of a request: the received context, the context sent to providers, and the recorded attempts."""

import asyncio
import itertools
from typing import Any

import msgspec
import pytest
from tests.support.engine import EngineHarness, completion, events

from gatehouse.engine.exchange import Exchange, Received
from gatehouse.engine.records import tracing
from gatehouse.engine.records.tracing import Trace
from gatehouse.foundation.identity import Role

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
CONTEXT = f"00-{TRACE}-{PARENT}-01"
BROKEN: tuple[int, list[bytes | Exception]] = (500, [b"{}"])


class RecordingTraces:
    """Implements the engine's `Traces`, and records the exchanges that it receives."""

    def __init__(self, ratio: float = 1.0) -> None:
        self.ratio = ratio
        self.over: list[Exchange] = []

    def begin(self, x: Received) -> Trace | None:
        return tracing.begin(x.headers, self.ratio)

    def finished(self, x: Exchange) -> None:
        self.over.append(x)


def traced(**headers: str) -> tuple[EngineHarness, RecordingTraces, Received]:
    harness, kept = EngineHarness(), RecordingTraces()
    harness.serve("one", "m")
    harness.serve("two", "m")
    harness.ports.traces = kept
    received = harness.request(
        {"model": "one/m", "fallbacks": ["two/m"], "messages": [{"role": "user", "content": "hi"}]}
    )
    received = msgspec.structs.replace(received, headers=headers)
    return harness, kept, received


@pytest.mark.parametrize(
    ("sent", "sampled"),
    [
        (CONTEXT, True),
        (f"00-{TRACE}-{PARENT}-00", False),
        (f"00-{TRACE}-{PARENT}-03", True),
        (f"cc-{TRACE}-{PARENT}-01-what-the-future-adds", True),
    ],
)
def test_the_callers_trace_is_continued(sent: str, sampled: bool) -> None:
    trace = tracing.begin({"traceparent": sent, "tracestate": "vendor=1"}, 0.0)
    assert trace is not None
    assert (trace.trace_id.hex(), trace.sampled, trace.state) == (TRACE, sampled, "vendor=1")
    assert trace.parent_id is not None
    assert trace.parent_id.hex() == PARENT
    assert trace.span_id.hex() != PARENT


@pytest.mark.parametrize(
    "sent",
    [
        "", "nonsense", f"ff-{TRACE}-{PARENT}-01", f"00-{'0' * 32}-{PARENT}-01", f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE.upper()}-{PARENT}-01", f"00-{TRACE}-{PARENT}-01-more", f"00-{TRACE}-{PARENT}", f"{CONTEXT}\n",
    ],
)  # fmt: skip
def test_an_invalid_context_begins_a_new_trace(sent: str) -> None:
    trace = tracing.begin({"traceparent": sent, "tracestate": "vendor=1"}, 1.0)
    assert trace is not None
    assert (trace.parent_id, trace.sampled, trace.state) == (None, True, None)
    assert trace.trace_id.hex() != TRACE
    assert tracing.begin({"traceparent": sent}, 0.0) is None


def test_a_state_that_is_too_long_is_left_out() -> None:
    trace = tracing.begin({"traceparent": CONTEXT, "tracestate": "v=" + "1" * 511}, 1.0)
    assert trace is not None
    assert trace.state is None


async def test_every_attempt_has_its_own_span_and_sends_it_to_the_provider() -> None:
    harness, kept, received = traced(traceparent=CONTEXT, tracestate="vendor=1")
    harness.outbound.script = [BROKEN, (200, [completion()])]
    assert (await harness.engine.answer(received)).status == 200
    (over,) = kept.over
    assert over.trace is not None
    failed, good = over.trace.calls
    assert [(call.provider.id, call.status, call.failed) for call in (failed, good)] == [
        ("one", 500, "http_500"), ("two", 200, None),
    ]  # fmt: skip
    assert all(call.ended is not None and call.ended >= call.started for call in (failed, good))
    results = [request.headers["traceparent"] for request in harness.outbound.sent]
    assert results == [f"00-{TRACE}-{call.span_id.hex()}-01" for call in (failed, good)]
    assert {request.headers["tracestate"] for request in harness.outbound.sent} == {"vendor=1"}


async def test_an_unsampled_context_is_sent_on_unsampled() -> None:
    harness, kept, received = traced(traceparent=f"00-{TRACE}-{PARENT}-00")
    harness.outbound.script = [(200, [completion()])]
    await harness.engine.answer(received)
    assert harness.outbound.sent[0].headers["traceparent"].endswith("-00")
    assert len(kept.over) == 1


async def test_without_traces_nothing_is_exported() -> None:
    harness, _, received = traced(traceparent=CONTEXT)
    harness.ports.traces = None
    harness.outbound.script = [(200, [completion()])]
    await harness.engine.answer(received)
    assert "traceparent" not in harness.outbound.sent[0].headers


async def test_a_stream_is_exported_when_it_has_been_read() -> None:
    harness, kept, received = traced()
    received = msgspec.structs.replace(received, body=received.body.replace(b'"model"', b'"stream": true, "model"'))
    harness.outbound.script = [(200, events("x"))]
    answer = await harness.engine.answer(received)
    assert kept.over == []
    assert answer.stream is not None
    assert [block async for block in answer.stream]
    (over,) = kept.over
    assert over.trace is not None
    assert [(call.ended, call.failed) for call in over.trace.calls] == [(None, None)]


async def test_a_cancelled_attempt_is_recorded_as_cancelled() -> None:
    harness, kept, received = traced()
    harness.stop.at = "connecting"
    work = asyncio.create_task(harness.engine.answer(received))
    await harness.stop.reached.wait()
    work.cancel()
    await asyncio.wait({work})
    (over,) = kept.over
    assert over.trace is not None
    (call,) = over.trace.calls
    assert (call.failed, call.ended is not None) == ("cancelled", True)


async def test_a_refused_request_has_a_trace_without_attempts() -> None:
    harness, kept, received = traced()
    received = msgspec.structs.replace(
        received, body=received.body.replace(b"one/m", b"none/m").replace(b"two/m", b"none/n")
    )
    assert (await harness.engine.answer(received)).status == 404
    (over,) = kept.over
    assert over.trace is not None
    assert (over.status, over.trace.calls) == (404, [])


# times ---------------------------------------------------------------------------------------------------------------


def parts(header: str) -> dict[str, float]:
    return {name: float(took.removeprefix("dur=")) for name, took in (part.split(";") for part in header.split(", "))}


def asking(harness: EngineHarness, received: Received, role: str = "admin", **more: Any) -> Received:
    """Return the request with the header that requests its times, and give its caller the role."""
    assert harness.caller is not None
    harness.caller = msgspec.structs.replace(harness.caller, role=Role(role), **more)
    return msgspec.structs.replace(received, headers={**received.headers, "x-gateway-timing": "1"})


async def test_an_administrator_gets_the_timing_of_a_request() -> None:
    harness, _, received = traced()
    received = asking(harness, received)
    ticks = itertools.count(received.started + 0.001, 0.001)
    harness.clock.monotonic = lambda: next(ticks)  # type: ignore[method-assign]
    harness.outbound.script = [(200, [completion()])]
    answer = await harness.engine.answer(received)
    timing = parts(answer.headers["X-Gateway-Timing"])
    assert list(timing) == [
        "auth", "limits", "body", "dlp_in", "filters", "route", "budget", "provider", "dlp_out", "record", "total",
    ]  # fmt: skip
    assert min(timing.values()) >= 0.999
    assert timing["total"] == pytest.approx(sum(timing.values()) - timing["total"], abs=0.01)


async def test_a_refusal_has_the_timing_too() -> None:
    harness, _, received = traced()
    received = asking(harness, received)
    received = msgspec.structs.replace(
        received, body=received.body.replace(b"one/m", b"none/m").replace(b"two/m", b"none/n")
    )
    answer = await harness.engine.answer(received)
    assert answer.status == 404
    assert "refusal" in parts(answer.headers["X-Gateway-Timing"])


async def test_a_stream_has_the_timing_up_to_its_first_event() -> None:
    harness, _, received = traced()
    received = asking(harness, received)
    received = msgspec.structs.replace(received, body=received.body.replace(b'"model"', b'"stream": true, "model"'))
    harness.outbound.script = [(200, events("x"))]
    answer = await harness.engine.answer(received)
    assert list(parts(answer.headers["X-Gateway-Timing"]))[-2:] == ["provider", "total"]
    assert answer.stream is not None
    await answer.stream.aclose()  # type: ignore[attr-defined]


@pytest.mark.parametrize("role", ["user", "auditor"])
async def test_other_callers_get_no_timing(role: str) -> None:
    harness, _, received = traced()
    received = asking(harness, received, role)
    harness.outbound.script = [(200, [completion()])]
    assert "X-Gateway-Timing" not in (await harness.engine.answer(received)).headers


async def test_timings_are_not_returned_without_a_request_for_them() -> None:
    harness, _, received = traced()
    received = asking(harness, received)
    received = msgspec.structs.replace(received, headers={})
    harness.outbound.script = [(200, [completion()])]
    assert "X-Gateway-Timing" not in (await harness.engine.answer(received)).headers
