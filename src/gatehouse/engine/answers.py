"""Builds the headers of answers, and the answers that report an error."""

from gatehouse.engine.conversation.conversion import lost
from gatehouse.engine.conversation.dialect import Dialect
from gatehouse.engine.exchange import Answer, Exchange
from gatehouse.engine.providers import Reply
from gatehouse.engine.stages.callers.maintenance import InMaintenance
from gatehouse.engine.stages.candidates import registry
from gatehouse.engine.timing import HEADER as TIMING
from gatehouse.foundation.errors import Refusal


def event_stream_headers(exchange: Exchange) -> dict[str, str]:
    """Return the headers of a stream that begins before its provider is known."""
    headers = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}
    if exchange.rate is not None:
        headers.update(exchange.rate.headers())
    return headers


def reply_headers(reply: Reply, exchange: Exchange) -> dict[str, str]:
    """Return the headers of a reply, which comes from a provider or from the response cache."""
    assert exchange.chosen is not None
    assert exchange.call_request is not None
    identified, call_request, chosen = exchange.identified, exchange.call_request, exchange.chosen
    headers = {
        **reply.headers,
        "X-Gateway-Provider": chosen.provider.id,
        "X-Gateway-Model": chosen.model.model_id,
        "X-Gateway-Fallbacks": str(exchange.fallbacks),
        # The header is `ALLOW` too if nothing was inspected. Only the usage record distinguishes the two cases.
        "X-DLP-Action": (call_request.inspection and call_request.inspection.action) or "ALLOW",
    }
    if reply.dropped:
        headers[lost.HEADER] = reply.dropped
    if exchange.cacheable is not None:
        headers["X-Gateway-Cache"] = exchange.cacheable.lookup
    policy = identified.policy
    if policy.registry_enforcement != "off" and (objection := registry.objection(policy, chosen)) is not None:
        headers["X-Gateway-Warning"] = objection.code
    if exchange.rate is not None:
        headers.update(exchange.rate.headers())
    if exchange.admitted is not None and exchange.admitted.reserved is not None:
        headers.update(exchange.admitted.reserved.headers())
    if exchange.timing is not None:
        headers[TIMING] = exchange.timing.header()
    return headers


def refusal(dialect: Dialect, error: Refusal, exchange: Exchange | None = None) -> Answer:
    """Return an error in the client's dialect. `exchange` is None if the caller is not known."""
    headers = {"content-type": "application/json"}
    if exchange is not None:
        if exchange.rate is not None:
            headers.update(exchange.rate.headers())
        if exchange.admitted is not None and exchange.admitted.reserved is not None:
            headers.update(exchange.admitted.reserved.headers())
        if exchange.timing is not None:
            headers[TIMING] = exchange.timing.header("refusal")
    if error.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    body = error.body() if isinstance(error, InMaintenance) else dialect.render_error(error)
    return Answer(status=error.status, headers={**headers, **error.headers}, body=body, refusal=error)
