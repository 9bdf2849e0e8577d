"""Encodes spans as OTLP messages. The module is imported at the first export, because few installations use tracing,
and the import takes time and memory."""

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1 import trace_pb2

from gatehouse import __version__
from gatehouse.platform.tracing.spans import Attributes, TraceSpan

_FIELDS: Final[Mapping[type, str]] = {
    str: "string_value",
    bool: "bool_value",
    int: "int_value",
    float: "double_value",
}


def encoded(spans: Sequence[TraceSpan], resource: Attributes) -> bytes:
    """Return the spans as a serialized `ExportTraceServiceRequest`."""
    scope = trace_pb2.ScopeSpans(
        scope=InstrumentationScope(name="gatehouse", version=__version__), spans=map(_message, spans)
    )
    resource_spans = trace_pb2.ResourceSpans(resource=Resource(attributes=_attributes(resource)), scope_spans=[scope])
    request: bytes = ExportTraceServiceRequest(resource_spans=[resource_spans]).SerializeToString()
    return request


def rejected(response: bytes) -> int:
    """Return the number of spans that the collector rejected, or 0 if the response is not an OTLP message."""
    try:
        count: int = ExportTraceServiceResponse.FromString(response).partial_success.rejected_spans
    except Exception:
        return 0
    return max(0, count)


def resource(service: str, attributes: Mapping[str, str], environment: str) -> Attributes:
    """Return the attributes of the resource. `attributes` are set by the operator. They override the others, except for
    the name of the service."""
    return {
        "service.version": __version__,
        "deployment.environment.name": environment,
        "process.pid": os.getpid(),
        **attributes,
        "service.name": service,
    }


def _message(span: TraceSpan) -> trace_pb2.Span:
    trace = span.trace
    attributes = span.attributes if span.failed is None else {**span.attributes, "error.type": span.failed}
    return trace_pb2.Span(
        trace_id=trace.trace_id,
        span_id=span.span_id,
        parent_span_id=span.parent_id or b"",
        trace_state=trace.state or "",
        # The lowest bit means that the trace is sampled.
        flags=1,
        name=span.name,
        kind=trace_pb2.Span.SPAN_KIND_SERVER if span.server else trace_pb2.Span.SPAN_KIND_CLIENT,
        start_time_unix_nano=_nanoseconds(span.started),
        end_time_unix_nano=max(_nanoseconds(span.ended), _nanoseconds(span.started)),
        attributes=_attributes(attributes),
        status=trace_pb2.Status(code=trace_pb2.Status.STATUS_CODE_ERROR) if span.broken else None,
    )


def _attributes(attributes: Attributes) -> Iterable[KeyValue]:
    return [_pair(name, value) for name, value in attributes.items() if value is not None]


@lru_cache(maxsize=4_096, typed=True)
def _pair(name: str, value: str | int | float | bool) -> KeyValue:
    """Return an attribute. Attributes are cached, because most of them recur, and creating one takes most of the time
    of the encoding."""
    field: dict[str, Any] = {_FIELDS[type(value)]: value}
    return KeyValue(key=name, value=AnyValue(**field))


def _nanoseconds(seconds: float) -> int:
    return int(seconds * 1_000_000_000)
