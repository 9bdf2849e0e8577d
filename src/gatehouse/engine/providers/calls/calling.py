"""One attempt at one candidate: sends the call in the provider's dialect, and returns the answer in the client's.

If both dialects are the same, bytes pass unchanged, with two exceptions: a stage may have changed the call, and the
model's name in the answer is replaced by the name that the client requested. Otherwise call and answer are converted
through the internal form.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import msgspec

from gatehouse.engine.conversation.call import ModelCall
from gatehouse.engine.conversation.conversion import lost, naming
from gatehouse.engine.conversation.decoding.answers import check_text
from gatehouse.engine.conversation.decoding.bodies import encode
from gatehouse.engine.conversation.decoding.multipart import write_form
from gatehouse.engine.conversation.dialect import Dialect, ProviderDialect
from gatehouse.engine.conversation.dialects import DIALECTS, NATIVE, PASSING
from gatehouse.engine.conversation.dialects.anthropic_messages import containers
from gatehouse.engine.conversation.errors import InvalidField, NotConvertible, ResponseNotFound
from gatehouse.engine.conversation.form import Completion, EmbeddingsRequest, Reasoning, Request
from gatehouse.engine.providers.calls.binary import Binary, check_recording, recording_headers
from gatehouse.engine.providers.credentials import lacks_secret
from gatehouse.engine.providers.failure import NOT_CONVERTIBLE, ProviderFailed, of_transport
from gatehouse.engine.providers.kind import (
    Endpoint,
    ProviderKind,
    ProviderNotConfigured,
    ProviderTarget,
    offer_to,
)
from gatehouse.engine.providers.offers import not_offered
from gatehouse.engine.providers.quirks import apply_quirks
from gatehouse.engine.providers.rate_limit_headers import exhausted_seconds
from gatehouse.engine.providers.registry import KINDS, SPOKEN
from gatehouse.engine.providers.reply import EVENTS, Reply
from gatehouse.engine.providers.streams import LOST_REASONING, Converting, Passing, Stream
from gatehouse.foundation.outbound import Outbound, OutboundFailed, OutboundReply, OutboundRequest
from gatehouse.policy.catalog import Candidate

#: Maximum bytes of an error's body that are read.
MAX_ERROR_BYTES = 64 * 1024
_MAX_CONNECT_SECONDS: Final = 5.0


async def call_provider(
    call: ModelCall,
    candidate: Candidate,
    *,
    secret: Mapping[str, str],
    outbound: Outbound,
    max_response_bytes: int,
    gate: Callable[[], None] | None = None,
    headers: Mapping[str, str] | None = None,
    output_limit: int | None = None,
    as_chat: bool = False,
) -> Reply:
    """Send a call. Return once the whole answer or, for a stream, its first event has arrived. Until then nothing has
    been sent to the client, so that another attempt may follow. A cancelled call is cancelled upstream too. `gate` is
    called right before the first byte is sent. `headers` are sent in addition to the kind's. `output_limit` limits the
    answer, in tokens, if the caller sets no limit. `as_chat` converts a text completion to a chat. Raises
    `ProviderFailed`, and the errors of `gate`."""
    parties = _parties(call, candidate, secret, as_chat=as_chat)
    sent = _request(call, candidate, parties, output_limit)
    endpoint, carrier = _destination(call, candidate, parties, secret, outbound)
    sent_headers = endpoint.headers
    if sent.content_type is not None:
        sent_headers = {**sent_headers, "Content-Type": sent.content_type}
    if headers:
        sent_headers = {**sent_headers, **headers}
    seconds = candidate.provider.config.timeout_ms / 1000
    request = OutboundRequest(
        method="POST",
        url=endpoint.url,
        headers=sent_headers,
        body=sent.body,
        connect_timeout=min(seconds, _MAX_CONNECT_SECONDS),
        first_byte_timeout=seconds,
        idle_timeout=seconds,
        before_first_byte=gate,
        egress=candidate.provider.egress,
    )
    try:
        reply = await carrier.send(request)
    except OutboundFailed as error:
        raise of_transport(error) from None
    try:
        if not 200 <= reply.status < 300:
            raise await _failure(parties.kind, reply, call, secret)  # noqa: TRY301 - closed below, as every other failure
        if sent.stream is None:
            return await _whole_reply(reply, call, candidate, parties, sent, limit=max_response_bytes)
        return await _streamed_reply(reply, sent.stream, call, sent)
    except OutboundFailed as error:
        await reply.close()
        raise of_transport(error, reply.status) from None
    except ProviderFailed as error:
        await reply.close()
        error.status = reply.status
        raise
    except BaseException:
        await reply.close()
        raise


def _destination(
    call: ModelCall, candidate: Candidate, parties: "_Parties", secret: Mapping[str, str], outbound: Outbound
) -> tuple[Endpoint, Outbound]:
    """Return the endpoint of a call and its transport. Raises `ProviderFailed`."""
    kind, config = parties.kind, candidate.provider.config
    try:
        endpoint = kind.endpoint(parties.target, config, secret)
        carrier = kind.carrier(outbound, candidate.provider, secret)
    except ProviderNotConfigured:
        raise ProviderFailed("not_configured") from None
    if call.headers and parties.client.name == parties.spoken.name:
        endpoint = Endpoint(endpoint.url, {**call.headers, **endpoint.headers})
    return endpoint, carrier


def dropped_fields(call: ModelCall, candidate: Candidate) -> str:
    """Return the names of the fields that the candidate's provider does not receive, for an answer from the cache."""
    client, kind, config = DIALECTS[call.dialect], KINDS.get(candidate.provider.kind), candidate.provider.config
    try:
        offered = None if kind is None else offer_to(kind, client, config, candidate.model.model_id)
        if kind is None or offered is None:
            return ""
        passing = PASSING.get(call.dialect)
        spoken = SPOKEN[offered.dialect]
        if passing is not None and passing is spoken:
            body, lost_names = passing.forward(call, candidate.model.model_id, candidate.provider.id)
            dropped = lost.header(lost_names)
        else:
            request = _for_candidate(client.to_internal(call), candidate, kind, None)
            body, dropped = spoken.from_internal(request), _dropped(request, client, spoken)
    except (ProviderNotConfigured, InvalidField):
        return ""
    if config.quirks is not None and offered.operation == "chat":
        return lost.extended(dropped, apply_quirks(body, config.quirks, spoken.name, call.body)[1])
    return dropped


def _dropped(request: Request | EmbeddingsRequest, client: Dialect, spoken: ProviderDialect) -> str:
    unwritten, extra_fields = spoken.unwritten(request), spoken.extra_fields
    return lost.header(lost.lost_fields(request, unwritten, extra_fields, client.feature_fields))


class _Parties(msgspec.Struct, frozen=True):
    """The client's dialect, the provider's dialect, the provider's kind, and what the provider is called for."""

    client: Dialect
    spoken: ProviderDialect
    kind: ProviderKind
    target: ProviderTarget


def _parties(call: ModelCall, candidate: Candidate, secret: Mapping[str, str], *, as_chat: bool) -> _Parties:
    client = DIALECTS[call.dialect]
    kind = KINDS.get(candidate.provider.kind)
    if kind is None or lacks_secret(kind, candidate.provider.config, secret):
        raise ProviderFailed("not_configured")
    try:
        offered = offer_to(kind, client, candidate.provider.config, candidate.model.model_id, as_chat=as_chat)
    except ProviderNotConfigured:
        raise ProviderFailed("not_configured") from None
    if offered is None:
        raise ProviderFailed("refused", client_error=not_offered(client.operation, candidate))
    target = ProviderTarget(offered.operation, candidate.model.model_id, call.stream)
    return _Parties(client, SPOKEN[offered.dialect], kind, target)


class _Sent(msgspec.Struct, frozen=True):
    """What is sent: the body, its size without the client's whitespace and without files, the content type of a form,
    the stream of the answer, and the names of the client's fields that the body does not express."""

    body: bytes
    size: int
    content_type: str | None
    stream: Stream | None
    dropped: str


def _request(call: ModelCall, candidate: Candidate, parties: _Parties, output_limit: int | None) -> _Sent:
    client, spoken, kind = parties.client, parties.spoken, parties.kind
    limit = None if output_limit is None else min(output_limit, candidate.model.max_output_tokens or output_limit)
    stream: Stream | None = None
    dropped = ""
    passing = PASSING.get(call.dialect)
    if passing is not None and passing is spoken:
        model, provider = candidate.model.model_id, candidate.provider.id
        try:
            body, lost_names = passing.forward(call, model, provider)
        except InvalidField as error:
            raise ProviderFailed(NOT_CONVERTIBLE, client_error=error) from None
        if lost_names:
            dropped = lost.header(lost_names)
        if limit is not None:
            body |= _limit_fields(limit, call, kind)
        if call.answer_form == "binary":
            stream = Binary()
        elif call.stream:
            stream = Passing(passing.tap(call, model, provider))
    else:
        try:
            client.refuse_unconvertible(call)
            request = _for_candidate(client.to_internal(call), candidate, kind, limit)
            body = kind.adapt(spoken.from_internal(request))
            dropped = _dropped(request, client, spoken)
        except InvalidField as error:
            raise ProviderFailed(NOT_CONVERTIBLE, client_error=error) from None
        if call.stream:
            hides = partial(client.hides, call=call)
            stream = Converting(spoken.stream_reader(), client.stream_writer(call), call.model, hides, client.name)
    fitted, dropped = _fitted(body, dropped, call, candidate, parties)
    if call.is_form:
        form, content_type = write_form(fitted, call.files)
        return _Sent(form, len(encode(fitted)), content_type, stream, dropped)
    return _Sent(*_encoded(fitted, call), None, stream, dropped)


def _fitted(
    body: dict[str, Any], dropped: str, call: ModelCall, candidate: Candidate, parties: _Parties
) -> tuple[dict[str, Any], str]:
    """Return the body for the provider's configuration and quirks, and the header with the names of the fields that the
    provider does not receive."""
    config = candidate.provider.config
    fitted = parties.kind.fit(body, parties.target, config)
    if config.quirks is None or parties.target.operation != "chat":
        return fitted, dropped
    fitted, removed = apply_quirks(fitted, config.quirks, parties.spoken.name, call.body)
    return fitted, lost.extended(dropped, removed) if removed else dropped


def _for_candidate(
    request: Request | EmbeddingsRequest, candidate: Candidate, kind: ProviderKind, limit: int | None
) -> Request | EmbeddingsRequest:
    """Return the request with the candidate's model, and with the settings of its catalog entry and its provider's
    kind."""
    model = candidate.model
    if isinstance(request, EmbeddingsRequest):
        return msgspec.structs.replace(request, model=model.model_id)
    reasons = model.capabilities.get("reasoning")
    request = msgspec.structs.replace(
        request,
        model=model.model_id,
        reasons=None if reasons is None else bool(reasons),
        max_output_tokens=model.max_output_tokens,
    )
    if limit is not None:
        request = msgspec.structs.replace(request, sampling=msgspec.structs.replace(request.sampling, max_tokens=limit))
    if request.prompt_cache_key is not None and not kind.has_prompt_cache_key(candidate.provider.config):
        request = msgspec.structs.replace(request, prompt_cache_key=None, lost=(*request.lost, "prompt_cache_key"))
    return request


def _encoded(body: dict[str, Any], call: ModelCall) -> tuple[bytes, int]:
    """Return a body's bytes, and their number without the client's whitespace and escapes. The bytes are the client's
    own if the body is unchanged. A comparison detects changes, so that no stage has to report them."""
    encoded = encode(body)
    return call.raw_body if encoded == call.unchanged_body else encoded, len(encoded)


def _limit_fields(limit: int, call: ModelCall, kind: ProviderKind) -> dict[str, Any]:
    """Return the field with the output limit of a call that is passed through."""
    native = NATIVE.get(call.dialect)
    if native is not None:
        return {native.limit_field: limit} if native.limit_field else {}
    if call.dialect != "openai_completions":
        # Kinds differ in the name of the field.
        return kind.adapt({"max_tokens": limit})
    # A caller's limit of 0 remains: such a call only echoes its prompt.
    return {"max_tokens": limit} if call.body.get("max_tokens") is None else {}


async def _streamed_reply(reply: OutboundReply, stream: Stream, call: ModelCall, sent: _Sent) -> Reply:
    headers = EVENTS
    if call.answer_form == "binary":
        check_recording(reply.headers)
        headers = recording_headers(reply.headers)
    return await Reply.streaming(
        reply,
        stream,
        call,
        sent_bytes=sent.size,
        headers=headers,
        dropped=sent.dropped,
        exhausted_seconds=exhausted_seconds(reply.headers),
    )


async def _whole_reply(
    reply: OutboundReply, call: ModelCall, candidate: Candidate, parties: _Parties, sent: _Sent, *, limit: int
) -> Reply:
    client, spoken, kind = parties.client, parties.spoken, parties.kind
    lost_parts: tuple[str, ...] = ()
    body = await reply.read(limit)
    await reply.close()
    try:
        passing = PASSING.get(call.dialect)
        if passing is not None and passing is spoken:
            if call.answer_form == "text":
                usage = None
                check_text(body)
            else:
                usage = passing.check_reply(body)
                body = _edited(body, call, candidate)
        else:
            answer = spoken.parse_reply(body)
            answer = msgspec.structs.replace(
                answer,
                model=call.model,
                usage=answer.usage or kind.usage(reply.headers),
            )
            usage, body = answer.usage, client.render_reply(answer, call)
            if isinstance(answer, Completion):
                lost_parts = (
                    *answer.lost,
                    *_hidden_reasoning(answer, client, call),
                    *lost.unshown(client.name, answer.stop_sequence, usage),
                )
    except NotConvertible:
        raise ProviderFailed("bad_reply", status=reply.status) from None
    return Reply.whole(
        reply.status,
        body,
        usage,
        call,
        sent_bytes=sent.size,
        dropped=sent.dropped,
        lost_parts=lost_parts,
        exhausted_seconds=exhausted_seconds(reply.headers),
    )


def _edited(body: bytes, call: ModelCall, candidate: Candidate) -> bytes:
    """Return a complete answer that is passed through, with the client's name of the model and the client's ids."""
    model, provider = candidate.model.model_id, candidate.provider.id
    native = NATIVE.get(call.dialect)
    if native is not None:
        return native.edit_reply(body, call, model, provider)
    body = naming.in_body(body, call.model)
    public_container = call.options.public_container
    return body if public_container is None else containers.in_body(body, partial(public_container, provider, model))


def _hidden_reasoning(answer: Completion, client: Dialect, call: ModelCall) -> tuple[str, ...]:
    hidden = any(isinstance(part, Reasoning) and client.hides(part, call) for part in answer.parts)
    return (LOST_REASONING,) if hidden else ()


async def _failure(
    kind: ProviderKind, reply: OutboundReply, call: ModelCall, secret: Mapping[str, str]
) -> ProviderFailed:
    try:
        body = await reply.read(MAX_ERROR_BYTES)
    except OutboundFailed:
        # The status is sufficient; a body that is too large or truncated adds nothing.
        body = b""
    await reply.close()
    previous = call.options.previous
    if previous is not None:
        lacks_previous = b"model_not_found" not in body if reply.status == 404 else previous.id.encode() in body
        if reply.status in {400, 404} and lacks_previous:
            missing = ResponseNotFound(param="previous_response_id")
            return ProviderFailed("refused", status=reply.status, client_error=missing)
    return kind.failure(reply.status, reply.headers, body, secret.values())
