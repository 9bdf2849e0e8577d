"""Completes texts with the text-completions endpoint of a provider, or as a chat if the server has no such endpoint."""

from collections.abc import Callable, Mapping
from typing import Final

from gatehouse.engine.conversation.call import ModelCall
from gatehouse.engine.providers.calls.calling import call_provider
from gatehouse.engine.providers.failure import ProviderFailed
from gatehouse.engine.providers.kind import offer
from gatehouse.engine.providers.registry import KINDS
from gatehouse.engine.providers.reply import Reply
from gatehouse.foundation.outbound import Outbound
from gatehouse.policy.catalog import Candidate

#: Statuses with which OpenAI-compatible servers answer if they do not have the text-completions endpoint.
_NOT_SERVED_STATUSES: Final = frozenset({404, 405, 501})


async def complete_text(
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
    """Return the answer to a text completion. The parameters and errors are those of `call_provider`."""
    try:
        return await call_provider(
            call,
            candidate,
            secret=secret,
            outbound=outbound,
            max_response_bytes=max_response_bytes,
            gate=gate,
            headers=headers,
            output_limit=output_limit,
        )
    except ProviderFailed as failed:
        if failed.status not in _NOT_SERVED_STATUSES or not _is_sent_as_text(candidate):
            raise
    return await call_provider(
        call,
        candidate,
        secret=secret,
        outbound=outbound,
        max_response_bytes=max_response_bytes,
        gate=gate,
        headers=headers,
        output_limit=output_limit,
        as_chat=True,
    )


def _is_sent_as_text(candidate: Candidate) -> bool:
    """Return whether the first call used the provider's text-completions endpoint."""
    kind = KINDS.get(candidate.provider.kind)
    config, model = candidate.provider.config, candidate.model.model_id
    offered = None if kind is None else offer(kind, "completions", config, model)
    return offered is not None and offered.operation == "completions"
