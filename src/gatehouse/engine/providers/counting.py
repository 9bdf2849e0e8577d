"""Counts the input tokens of a call: asks a provider that counts in the client's dialect, and estimates for others."""

from collections.abc import Callable, Mapping
from typing import Final

from gatehouse.engine.conversation.call import ModelCall
from gatehouse.engine.conversation.decoding.bodies import encode
from gatehouse.engine.conversation.dialects.token_counts import COUNTING
from gatehouse.engine.providers import guess
from gatehouse.engine.providers.calling import call_provider
from gatehouse.engine.providers.failure import ProviderFailed
from gatehouse.engine.providers.kind import ProviderNotConfigured
from gatehouse.engine.providers.registry import KINDS
from gatehouse.engine.providers.reply import Reply
from gatehouse.foundation.outbound import Outbound
from gatehouse.policy.records import Candidate

#: Statuses of servers that resemble Anthropic's and do not count tokens.
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
) -> Reply:
    """Return the count, which costs nothing. The parameters and errors are those of `call_provider`."""
    if not _counts(call, candidate):
        return _estimate(call)
    try:
        reply = await call_provider(
            call,
            candidate,
            secret=secret,
            outbound=outbound,
            max_response_bytes=max_response_bytes,
            gate=gate,
            headers=headers,
        )
    except ProviderFailed as failed:
        if failed.status in _NOT_COUNTED_STATUSES:
            return _estimate(call)
        raise
    # Only the number: no stage inspects the answer to a count.
    dialect = COUNTING[call.dialect]
    return Reply.count(dialect.render_count(dialect.read_count(reply.body or b"")), estimated=False)


def _counts(call: ModelCall, candidate: Candidate) -> bool:
    """Return whether the candidate's provider counts tokens in the client's dialect."""
    kind = KINDS.get(candidate.provider.kind)
    try:
        return kind is not None and kind.dialect("count_tokens", candidate.provider.config) == call.dialect
    except ProviderNotConfigured:
        return False


def _estimate(call: ModelCall) -> Reply:
    """Return an estimate by the size of the call. Nothing is sent."""
    tokens = guess.read(call, len(encode(call.body)))
    return Reply.count(COUNTING[call.dialect].render_count(tokens), estimated=True)
