"""Creates the spans of a finished request. Spans contain no text of the request or response, and do not name the
caller. They contain only names from the catalog, numbers, and the gateway's own words.

Attributes of the conventions for generative AI are only on the spans of attempts, so that a backend that sums tokens
over spans does not count them twice.
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from gatehouse.engine.conversation.dialects import DIALECTS
from gatehouse.engine.conversation.operations import Operation
from gatehouse.engine.exchange import Exchange
from gatehouse.engine.providers.kind import ProviderNotConfigured, ProviderTarget, offer
from gatehouse.engine.providers.registry import KINDS
from gatehouse.engine.records.tracing import Trace, TracedCall
from gatehouse.engine.stages.candidates.route import AUTO
from gatehouse.policy.catalog import ProviderConfig

#: Names of kinds of providers in the conventions, where they differ from the gateway's names.
_PROVIDER_NAMES: Final[Mapping[str, str]] = {
    "azure_openai": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "gemini": "gcp.gemini",
    "mistral": "mistral_ai",
    "vertex_ai": "gcp.vertex_ai",
}
#: Names of operations in the conventions, where they differ from the gateway's names.
_OPERATION_NAMES: Final[Mapping[Operation, str]] = {"completions": "text_completion"}
#: Attributes for the parameters of a request, by the names of the fields in all dialects.
_PARAMETERS: Final[Mapping[str, tuple[str, type[int] | type[float]]]] = {
    "max_completion_tokens": ("gen_ai.request.max_tokens", int),
    "max_output_tokens": ("gen_ai.request.max_tokens", int),
    "max_tokens": ("gen_ai.request.max_tokens", int),
    "temperature": ("gen_ai.request.temperature", float),
    "top_p": ("gen_ai.request.top_p", float),
    "top_k": ("gen_ai.request.top_k", float),
    "frequency_penalty": ("gen_ai.request.frequency_penalty", float),
    "presence_penalty": ("gen_ai.request.presence_penalty", float),
    "seed": ("gen_ai.request.seed", int),
    "n": ("gen_ai.request.choice.count", int),
    "dimensions": ("gen_ai.embeddings.dimension.count", int),
}
#: Largest absolute value of an attribute.
_MAX_INTEGER: Final = 2**63 - 1
#: Matches the only paths that contain an id.
_match_conversation: Final = re.compile(r"/api/conversations/([^/]+)(/.*)?").fullmatch
_is_id: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").fullmatch

Attributes = Mapping[str, str | int | float | bool | None]


class TraceSpan(NamedTuple):
    """A span. Times are Unix time in seconds. `failed` is the attribute `error.type`. `broken` is whether the span
    is treated as an error."""

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


def of_request(x: Exchange, now: float) -> list[TraceSpan]:
    """Return the spans of a request. `now` is monotonic time. The function takes only microseconds, because the spans
    are encoded later."""
    trace, received = x.trace, x.identified.received
    assert trace is not None
    # Offset that converts monotonic time into Unix time.
    offset = received.received_at - received.started
    spans = [_of_attempt(x, call, offset, now) for call in trace.calls]
    call_request, route = x.call_request, _route(received.path)
    failed = x.error_code if x.outcome != "success" else None
    if failed is None and x.outcome != "success":
        failed = x.outcome
    spans.append(
        TraceSpan(
            trace,
            trace.span_id,
            trace.parent_id,
            f"{received.method} {route}",
            True,
            received.received_at,
            now + offset,
            {
                "http.request.method": received.method,
                "http.route": route,
                "http.response.status_code": x.status,
                "gatehouse.tenant_id": str(x.identified.policy.tenant_id),
                "gatehouse.request_id": received.request_id,
                "gatehouse.outcome": x.outcome,
                "gatehouse.requested_model": _requested(x),
                "gatehouse.stream": call_request.call.stream if call_request else None,
                "gatehouse.fallbacks": x.fallbacks,
                "gatehouse.cache": x.cache,
                "gatehouse.dlp_action": call_request.inspection.action
                if call_request and call_request.inspection
                else None,
                "gatehouse.cost_usd": float(x.cost_usd) if x.cost_usd is not None else None,
                "gatehouse.time_to_first_token_ms": x.time_to_first_token_ms,
            },
            failed,
            x.status >= 500,
        )
    )
    return spans


def _of_attempt(x: Exchange, call: TracedCall, offset: float, now: float) -> TraceSpan:
    assert x.trace is not None
    assert x.call_request is not None
    provider, model, model_call = call.provider, call.model.model_id, x.call_request.call
    operation = DIALECTS[model_call.dialect].operation
    name = _PROVIDER_NAMES.get(provider.kind, provider.kind)
    succeeded = call.failed is None
    # The call of a stream ends with the request, and has the outcome of the request.
    is_stream = call.ended is None and succeeded
    failed = x.error_code or x.outcome if is_stream and x.outcome != "success" else call.failed
    address, port = _server(provider.kind, provider.config, operation, model)
    return TraceSpan(
        x.trace,
        call.span_id,
        x.trace.span_id,
        f"{_OPERATION_NAMES.get(operation, operation)} {model}",
        False,
        call.started + offset,
        (now if call.ended is None else call.ended) + offset,
        {
            "gen_ai.operation.name": _OPERATION_NAMES.get(operation, operation),
            "gen_ai.provider.name": name,
            # `gen_ai.system` is the former name of `gen_ai.provider.name`, which some tools still use.
            "gen_ai.system": name,
            "gen_ai.conversation.id": _conversation(x.identified.received.path),
            "gen_ai.request.model": model,
            "gen_ai.request.stream": model_call.stream,
            **dict(_parameters(model_call.body)),
            "gen_ai.response.model": model if succeeded else None,
            **(_usage(x) if succeeded else {}),
            "http.response.status_code": call.status,
            "server.address": address,
            "server.port": port,
            "gatehouse.provider_id": provider.id,
        },
        failed,
        failed is not None,
    )


def _usage(x: Exchange) -> Attributes:
    """Return the tokens as the conventions count them: the input tokens include tokens of caches."""
    usage = x.usage
    if usage is None:
        return {}
    counts = {
        "gen_ai.usage.input_tokens": usage.input_tokens + usage.cached_tokens + usage.cache_write_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens,
    }
    # A provider may report impossible numbers, which are left out.
    return {name: tokens for name, tokens in counts.items() if tokens <= _MAX_INTEGER}


def _parameters(body: Mapping[str, Any]) -> Iterator[tuple[str, int | float]]:
    """Yield the parameters of the request that are numbers. Other values may be text of the caller."""
    for name in _PARAMETERS.keys() & body.keys():
        value = body[name]
        if type(value) in (int, float) and abs(value) <= _MAX_INTEGER:
            attribute, kind = _PARAMETERS[name]
            yield attribute, kind(value)


@lru_cache(maxsize=1_024)
def _server(kind: str, config: ProviderConfig, operation: Operation, model: str) -> tuple[str | None, int | None]:
    """Return the host and port of the provider's endpoint, or None for both if it is not called over the network."""
    try:
        offered = offer(KINDS[kind], operation, config, model)
        target = ProviderTarget(offered.operation if offered is not None else "chat", model)
        url = urlsplit(KINDS[kind].endpoint(target, config, {}).url)
        port = url.port or (443 if url.scheme == "https" else 80)
    except (KeyError, ProviderNotConfigured, ValueError):
        return None, None
    return (url.hostname, port) if url.hostname else (None, None)


def _route(path: str) -> str:
    """Return the route of a path, in which ids are replaced."""
    match = _match_conversation(path)
    return path if match is None else f"/api/conversations/{{conversation_id}}{match[2] or ''}"


def _conversation(path: str) -> str | None:
    match = _match_conversation(path)
    return match[1] if match is not None and _is_id(match[1]) else None


def _requested(x: Exchange) -> str | None:
    """Return the requested model if the catalog has it. Any other name may be text of the caller."""
    if x.call_request is None:
        return None
    name = x.call_request.call.model
    return name if name == AUTO or x.identified.policy.knows(name) else None
