"""Operations on a response that a provider keeps."""

from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import quote, urlencode

import msgspec

from gatehouse.engine.conversation.call import ModelCall
from gatehouse.engine.conversation.dialects.openai_responses.native import ResponseEditor
from gatehouse.engine.conversation.errors import NotConvertible, ResponseNotFound
from gatehouse.engine.providers.calls.calling import MAX_ERROR_BYTES
from gatehouse.engine.providers.credentials import lacks_secret
from gatehouse.engine.providers.failure import ProviderFailed, of_transport
from gatehouse.engine.providers.kind import ProviderNotConfigured, ProviderTarget
from gatehouse.engine.providers.registry import KINDS
from gatehouse.engine.providers.reply import Reply
from gatehouse.foundation.outbound import Outbound, OutboundFailed, OutboundRequest
from gatehouse.policy.catalog import Candidate

_MAX_CONNECT_SECONDS: Final = 5.0
_object: msgspec.json.Decoder[dict[str, msgspec.Raw]] = msgspec.json.Decoder(dict[str, msgspec.Raw])


async def kept_response(
    call: ModelCall,
    candidate: Candidate,
    *,
    secret: Mapping[str, str],
    outbound: Outbound,
    max_response_bytes: int,
    gate: Callable[[], None] | None = None,
    headers: Mapping[str, str] | None = None,
    output_limit: int | None = None,
) -> Reply:
    """Return the provider's answer with the client's ids. It has no cost. The parameters and errors are those of
    `call_provider`; no model answers, so `output_limit` has no effect."""
    request = _request(call, candidate, secret, gate, headers or {})
    kind = KINDS[candidate.provider.kind]
    try:
        reply = await kind.carrier(outbound, candidate.provider, secret).send(request)
        try:
            is_success = 200 <= reply.status < 300
            body = await reply.read(max_response_bytes if is_success else MAX_ERROR_BYTES)
        finally:
            await reply.close()
    except OutboundFailed as error:
        raise of_transport(error) from None
    if reply.status == 404:
        raise ProviderFailed("refused", status=404, client_error=ResponseNotFound())
    if not is_success:
        raise kind.failure(reply.status, reply.headers, body, secret.values())
    try:
        return Reply.again(_edited(body, call, candidate), stream=False)
    except NotConvertible:
        raise ProviderFailed("bad_reply", status=reply.status) from None


def _request(
    call: ModelCall,
    candidate: Candidate,
    secret: Mapping[str, str],
    gate: Callable[[], None] | None,
    headers: Mapping[str, str],
) -> OutboundRequest:
    kind, config = KINDS.get(candidate.provider.kind), candidate.provider.config
    if kind is None or lacks_secret(kind, config, secret):
        raise ProviderFailed("not_configured")
    kept, previous = call.kept, call.options.previous
    assert kept is not None
    assert previous is not None
    try:
        endpoint = kind.endpoint(ProviderTarget("responses", candidate.model.model_id), config, secret)
    except ProviderNotConfigured:
        raise ProviderFailed("not_configured") from None
    query = f"?{urlencode(kept.parameters)}" if kept.parameters else ""
    seconds = config.timeout_ms / 1000
    return OutboundRequest(
        method=kept.method,
        url=f"{endpoint.url}/{quote(previous.id, safe='')}{kept.path}{query}",
        headers={**endpoint.headers, **headers},
        connect_timeout=min(seconds, _MAX_CONNECT_SECONDS),
        first_byte_timeout=seconds,
        idle_timeout=seconds,
        before_first_byte=gate,
        egress=candidate.provider.egress,
    )


def _edited(body: bytes, call: ModelCall, candidate: Candidate) -> bytes:
    """Return the answer with the client's ids. Raises `NotConvertible`."""
    editor = ResponseEditor(call, candidate.provider.id, candidate.model.model_id)
    try:
        members = _object.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise NotConvertible("the answer is not an object") from None
    return editor.body(body) if "output" in members else editor.edited(body)
