"""A finished request as spans. What was said by whom is in none of them, and no text of a request: only names that the
catalog knows, numbers and words of ours."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from gatehouse.engine.exchange import Answered
from gatehouse.engine.stages.route import AUTO
from gatehouse.engine.tracing import Call, Trace

#: What the conventions call a kind of provider, where they name it.
_PROVIDERS: Final[Mapping[str, str]] = {
    "azure_openai": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "gemini": "gcp.gemini",
    "mistral": "mistral_ai",
}
_OPERATIONS: Final[Mapping[str, str]] = {"openai_embeddings": "embeddings"}
_CHAT: Final = "chat"

Attributes = Mapping[str, str | int | float | bool | None]


class Span(NamedTuple):
    """Times are Unix time in seconds. `failed` is `error.type`; `broken` whether that makes the span an error."""

    trace: Trace
    span_id: bytes
    parent_id: bytes | None
    name: str
    server: bool
    started: float
    ended: float
    attributes: Attributes
    failed: str | None
    broken: bool


def of_request(x: Answered, now: float) -> list[Span]:
    """`now` is monotonic. Costs some microseconds: what is here is copied, encoded later."""
    trace, received = x.trace, x.identified.received
    assert trace is not None
    # Moments of the monotonic clock as Unix time.
    since = received.received_at - received.started
    operation = _OPERATIONS.get(received.dialect or "", _CHAT)
    spans = [_of_try(x, call, operation, since, now) for call in trace.calls]
    chosen, usage, asked = x.chosen, x.usage, x.asked
    failed = x.error_code if x.outcome != "success" else None
    if failed is None and x.outcome != "success":
        failed = x.outcome
    spans.append(
        Span(
            trace,
            trace.span_id,
            trace.parent_id,
            f"{received.method} {received.path}",
            True,
            received.received_at,
            now + since,
            {
                "http.request.method": received.method,
                "http.route": received.path,
                "http.response.status_code": x.status,
                "gen_ai.operation.name": operation,
                "gen_ai.request.model": _requested(x),
                "gen_ai.response.model": chosen.model.model_id if chosen else None,
                "gen_ai.provider.name": _provider(chosen.provider.kind) if chosen else None,
                "gen_ai.usage.input_tokens": usage.input_tokens + usage.cache_write_tokens if usage else None,
                "gen_ai.usage.output_tokens": usage.output_tokens if usage else None,
                "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens if usage else None,
                "gatehouse.tenant_id": str(x.identified.policy.tenant_id),
                "gatehouse.request_id": received.request_id,
                "gatehouse.outcome": x.outcome,
                "gatehouse.stream": asked.call.stream if asked else None,
                "gatehouse.fallbacks": x.fallbacks,
                "gatehouse.dlp_action": asked.inspection.action if asked and asked.inspection else None,
                "gatehouse.cost_usd": float(x.cost_usd) if x.cost_usd is not None else None,
                "gatehouse.time_to_first_token_ms": x.time_to_first_token_ms,
            },
            failed,
            x.status >= 500,
        )
    )
    return spans


def _of_try(x: Answered, call: Call, operation: str, since: float, now: float) -> Span:
    assert x.trace is not None
    provider, model = call.provider, call.model.model_id
    good = call.failed is None
    # A stream's call ends with the request, and what becomes of the one becomes of the other.
    open_end = call.ended is None and good
    failed = x.error_code or x.outcome if open_end and x.outcome != "success" else call.failed
    usage = x.usage if good else None
    return Span(
        x.trace,
        call.span_id,
        x.trace.span_id,
        f"{operation} {model}",
        False,
        call.started + since,
        (now if call.ended is None else call.ended) + since,
        {
            "gen_ai.operation.name": operation,
            "gen_ai.provider.name": _provider(provider.kind),
            # What `gen_ai.provider.name` was called before: tools go by either.
            "gen_ai.system": _provider(provider.kind),
            "gen_ai.request.model": model,
            "gen_ai.response.model": model if good else None,
            "gen_ai.usage.input_tokens": usage.input_tokens + usage.cache_write_tokens if usage else None,
            "gen_ai.usage.output_tokens": usage.output_tokens if usage else None,
            "http.response.status_code": call.status,
            "gatehouse.provider_id": provider.id,
        },
        failed,
        failed is not None,
    )


def _requested(x: Answered) -> str | None:
    """Only a name that the catalog has: any other is text of the caller's."""
    if x.asked is None:
        return None
    name = x.asked.call.model
    return name if name == AUTO or x.identified.policy.find_model(name) is not None else None


def _provider(kind: str) -> str:
    return _PROVIDERS.get(kind, kind)
