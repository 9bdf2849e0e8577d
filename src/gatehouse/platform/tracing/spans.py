"""A finished request as spans. What was said by whom is in none of them, and no text of a request: only names that the
catalog knows, numbers and words of ours.

What the conventions for generative AI name stands on the spans of tries, and there alone: a backend that adds up tokens
over spans must not find them twice.
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from gatehouse.engine.conversation.dialects import DIALECTS
from gatehouse.engine.exchange import Answered
from gatehouse.engine.providers.kind import NotConfigured, Target
from gatehouse.engine.providers.registry import KINDS
from gatehouse.engine.stages.route import AUTO
from gatehouse.engine.tracing import Call, Trace
from gatehouse.policy.records import ProviderConfig

#: What the conventions call a kind of provider, where they name it.
_PROVIDERS: Final[Mapping[str, str]] = {
    "azure_openai": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "gemini": "gcp.gemini",
    "mistral": "mistral_ai",
}
#: What a request may say of how it is to be answered, by the names of all dialects.
_SETTINGS: Final[Mapping[str, tuple[str, type[int] | type[float]]]] = {
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
#: What an attribute holds at most, either way.
_MOST: Final = 2**63 - 1
#: The one family of paths that name something.
_CONVERSATION: Final = re.compile(r"/api/conversations/([^/]+)(/.*)?").fullmatch
_ID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").fullmatch

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
    spans = [_of_try(x, call, since, now) for call in trace.calls]
    asked, route = x.asked, _route(received.path)
    failed = x.error_code if x.outcome != "success" else None
    if failed is None and x.outcome != "success":
        failed = x.outcome
    spans.append(
        Span(
            trace,
            trace.span_id,
            trace.parent_id,
            f"{received.method} {route}",
            True,
            received.received_at,
            now + since,
            {
                "http.request.method": received.method,
                "http.route": route,
                "http.response.status_code": x.status,
                "gatehouse.tenant_id": str(x.identified.policy.tenant_id),
                "gatehouse.request_id": received.request_id,
                "gatehouse.outcome": x.outcome,
                "gatehouse.requested_model": _requested(x),
                "gatehouse.stream": asked.call.stream if asked else None,
                "gatehouse.fallbacks": x.fallbacks,
                "gatehouse.cache": x.cache,
                "gatehouse.dlp_action": asked.inspection.action if asked and asked.inspection else None,
                "gatehouse.cost_usd": float(x.cost_usd) if x.cost_usd is not None else None,
                "gatehouse.time_to_first_token_ms": x.time_to_first_token_ms,
            },
            failed,
            x.status >= 500,
        )
    )
    return spans


def _of_try(x: Answered, call: Call, since: float, now: float) -> Span:
    assert x.trace is not None
    assert x.asked is not None
    provider, model, asked = call.provider, call.model.model_id, x.asked.call
    operation = DIALECTS[asked.dialect].operation
    name = _PROVIDERS.get(provider.kind, provider.kind)
    good = call.failed is None
    # A stream's call ends with the request, and what becomes of the one becomes of the other.
    open_end = call.ended is None and good
    failed = x.error_code or x.outcome if open_end and x.outcome != "success" else call.failed
    address, port = _server(provider.kind, provider.config, Target(operation, model, asked.stream))
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
            "gen_ai.provider.name": name,
            # What `gen_ai.provider.name` was called before: tools go by either.
            "gen_ai.system": name,
            "gen_ai.conversation.id": _conversation(x.identified.received.path),
            "gen_ai.request.model": model,
            "gen_ai.request.stream": asked.stream,
            **dict(_settings(asked.body)),
            "gen_ai.response.model": model if good else None,
            **(_used(x) if good else {}),
            "http.response.status_code": call.status,
            "server.address": address,
            "server.port": port,
            "gatehouse.provider_id": provider.id,
        },
        failed,
        failed is not None,
    )


def _used(x: Answered) -> Attributes:
    """Tokens as the conventions count them: the input's hold those of caches."""
    usage = x.usage
    if usage is None:
        return {}
    told = {
        "gen_ai.usage.input_tokens": usage.input_tokens + usage.cached_tokens + usage.cache_write_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens,
    }
    # What a provider claims to have used may be nonsense.
    return {name: tokens for name, tokens in told.items() if tokens <= _MOST}


def _settings(body: Mapping[str, Any]) -> Iterator[tuple[str, int | float]]:
    """Numbers alone: whatever else stands in their place is text of the caller's."""
    for name in _SETTINGS.keys() & body.keys():
        value = body[name]
        if type(value) in (int, float) and abs(value) <= _MOST:
            attribute, kind = _SETTINGS[name]
            yield attribute, kind(value)


@lru_cache(maxsize=1_024)
def _server(kind: str, config: ProviderConfig, target: Target) -> tuple[str | None, int | None]:
    """Of a provider that is called over the network."""
    try:
        at = urlsplit(KINDS[kind].endpoint(target, config, {}).url)
        port = at.port or (443 if at.scheme == "https" else 80)
    except (KeyError, NotConfigured, ValueError):
        return None, None
    return (at.hostname, port) if at.hostname else (None, None)


def _route(path: str) -> str:
    """With what a path names taken out: routes are few."""
    named = _CONVERSATION(path)
    return path if named is None else f"/api/conversations/{{conversation_id}}{named[2] or ''}"


def _conversation(path: str) -> str | None:
    named = _CONVERSATION(path)
    return named[1] if named is not None and _ID(named[1]) else None


def _requested(x: Answered) -> str | None:
    """Only a name that the catalog has: any other is text of the caller's."""
    if x.asked is None:
        return None
    name = x.asked.call.model
    return name if name == AUTO or x.identified.policy.find_models(name) else None
