"""Counts the input tokens of a call: by an operation of the provider, or by an estimate if the provider has none."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

from gatehouse.engine.conversation.call import ModelCall
from gatehouse.engine.conversation.decoding.bodies import encode
from gatehouse.engine.conversation.dialects import DIALECTS
from gatehouse.engine.conversation.dialects.token_counts import COUNTING
from gatehouse.engine.conversation.errors import InvalidField, ResponseNotFound
from gatehouse.engine.providers import guess
from gatehouse.engine.providers.calls.calling import call_provider
from gatehouse.engine.providers.failure import ProviderFailed
from gatehouse.engine.providers.kind import ProviderNotConfigured, offer_to
from gatehouse.engine.providers.registry import KINDS
from gatehouse.engine.providers.reply import Reply
from gatehouse.engine.providers.token_counts import CONVERTED_COUNTS
from gatehouse.foundation.outbound import Outbound
from gatehouse.policy.catalog import Candidate

#: How long a provider may take to count. Clients ask for a count before a call, and wait for it.
_COUNT_TIMEOUT_SECONDS: Final = 10.0
#: Statuses of a provider that does not count this model's tokens, or whose credential may call the model but not count.
_NOT_COUNTED_CONVERTED_STATUSES: Final = frozenset({400, 403})
#: Statuses of servers that have Anthropic's or OpenAI's API without the operation that counts tokens.
_NOT_COUNTED_STATUSES: Final = frozenset({404, 405, 501})


async def count_tokens(
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
    """Return the answer with the count. It has no cost. The parameters and errors are those of `call_provider`."""
    spoken = _counting_dialect(call, candidate)
    if spoken is None:
        return _estimate(call)
    try:
        async with asyncio.timeout(_COUNT_TIMEOUT_SECONDS):
            reply = await call_provider(
                call,
                candidate,
                secret=secret,
                outbound=outbound,
                max_response_bytes=max_response_bytes,
                gate=gate,
                headers=headers,
                output_limit=output_limit,
            )
    except TimeoutError:
        return _estimate(call)
    except ProviderFailed as failed:
        if failed.reason == "timeout":
            return _estimate(call)
        if failed.status in _NOT_COUNTED_STATUSES and not isinstance(failed.client_error, ResponseNotFound):
            return _estimate(call)
        if spoken in CONVERTED_COUNTS and (
            failed.status in _NOT_COUNTED_CONVERTED_STATUSES or isinstance(failed.client_error, InvalidField)
        ):
            return _estimate(call)
        raise
    # Only the number is passed on, because no stage inspects the answer to a count.
    dialect = COUNTING[call.dialect]
    return Reply.count(dialect.render_count(dialect.read_count(reply.body or b"")), estimated=False)


def _counting_dialect(call: ModelCall, candidate: Candidate) -> str | None:
    """Return the dialect of the provider's operation that counts the call's tokens; None if it has none."""
    kind, config, model = KINDS.get(candidate.provider.kind), candidate.provider.config, candidate.model.model_id
    try:
        offered = None if kind is None else offer_to(kind, DIALECTS[call.dialect], config, model)
    except ProviderNotConfigured:
        return None
    if offered is None or offered.dialect not in {call.dialect, *CONVERTED_COUNTS}:
        return None
    return offered.dialect


def _estimate(call: ModelCall) -> Reply:
    """Return an estimate by the size of the call. Nothing is sent."""
    tokens = guess.read(call, len(encode(call.body)))
    return Reply.count(COUNTING[call.dialect].render_count(tokens), estimated=True)
