"""Budgets: refuses callers whose budget is spent, reserves an amount before a call, and settles it after the call
(docs/budgets.md).
"""

from collections.abc import Coroutine
from typing import Any, Final, TypeAlias

from gatehouse.engine.conversation.dialects.openai_kept_response import OpenAIKeptResponse
from gatehouse.engine.exchange import Admitted, Exchange, Identified, Routed
from gatehouse.engine.money.bound import (
    PriceUnknown,
    bound,
    default_output,
    priced,
)
from gatehouse.engine.ports import Ports, Reserved
from gatehouse.engine.verdict import ALLOW, Refuse, Verdict
from gatehouse.foundation.errors import Refusal
from gatehouse.policy.budgets import CallAmounts, CallerBudgets, nano

_ONE: Final = CallAmounts(requests=1)
#: The amounts that a call of a tool counts for. It has no price and no tokens.
TOOL_CALL_AMOUNTS: Final = _ONE

#: The result of `reserve`.
Admission: TypeAlias = Admitted | Refuse


def check(x: Identified, ports: Ports) -> Verdict:
    caller_budgets = x.policy.budgets.of(x.caller)
    binding = caller_budgets if caller_budgets is None or _enforced(x) else caller_budgets.always
    # The budget may be exhausted by the advance of this call, so `reserve` decides about such a call.
    if binding is None or x.host.release_advance is not None:
        return ALLOW
    refused = ports.spend.exhausted(binding.budgets)
    if refused is None or x.received.dialect == OpenAIKeptResponse.name:
        # An operation on a stored response calls no model.
        return ALLOW
    return Refuse(refused)


def reserve(x: Routed, ports: Ports) -> Admission | Coroutine[Any, Any, Admission]:
    """Reserve the most that the call can use, and return the admitted call. Refuses with `QuotaExceeded`, or with
    `Unavailable` if the state of the budgets is unknown."""
    call_request, identified = x.call_request, x.call_request.identified
    caller_budgets = identified.policy.budgets.of(identified.caller)
    if caller_budgets is None or call_request.call.dialect == OpenAIKeptResponse.name:
        return Admitted(routed=x, call_request=call_request, chain=x.chain, reserved=None)
    return _reserve(x, caller_budgets, ports)


async def _reserve(x: Routed, caller_budgets: CallerBudgets, ports: Ports) -> Admission:
    call_request, identified, chain = x.call_request, x.call_request.identified, x.chain
    enforced = _enforced(identified)
    binding = caller_budgets if enforced else caller_budgets.always
    if binding is not None and binding.block_usd:
        chain = tuple([candidate for candidate in x.chain if priced(call_request, candidate)])
        if not chain:
            return Refuse(PriceUnknown.of(x.chain[0], "A budget in dollars"))
    amounts, output_limit = _ONE, None
    if caller_budgets.measure:
        output = default_output(call_request, chain)
        upper = bound(call_request, chain, output)
        amounts = CallAmounts(nano_usd=upper.nano_usd or 0, requests=1, tokens=upper.tokens)
        if binding is not None and binding.block:
            output_limit = output
    if identified.host.release_advance is not None:
        # Nothing is awaited between the release and the reservation if the amount fits, so no other call takes it.
        identified.host.release_advance()
    try:
        reserved = await ports.spend.reserve(
            caller_budgets.budgets, amounts, enforced=enforced, user_id=identified.caller.user_id
        )
    except Refusal as refused:
        return Refuse(refused)
    return Admitted(routed=x, call_request=call_request, chain=chain, reserved=reserved, output_limit=output_limit)


async def reserve_tool_call(x: Identified, ports: Ports) -> Reserved | Refuse | None:
    """Reserve one call of a tool, and return the reservation, or None if no budget applies. Refuses with
    `QuotaExceeded`, or with `Unavailable` if the state of the budgets is unknown."""
    caller_budgets = x.policy.budgets.of(x.caller)
    if caller_budgets is None:
        return None
    try:
        return await ports.spend.reserve(
            caller_budgets.budgets, TOOL_CALL_AMOUNTS, enforced=_enforced(x), user_id=x.caller.user_id
        )
    except Refusal as refused:
        return Refuse(refused)


async def reserve_in_advance(x: Identified, amounts: CallAmounts, ports: Ports) -> Reserved | None:
    """Reserve an amount for several later calls of a caller, and return the reservation, or None if no budget applies.
    A refusal is not announced, because single calls may still fit. Raises `QuotaExceeded` and `Unavailable`."""
    caller_budgets = x.policy.budgets.of(x.caller)
    if caller_budgets is None:
        return None
    return await ports.spend.reserve(
        caller_budgets.budgets, amounts, enforced=_enforced(x), user_id=x.caller.user_id, announce=False
    )


def settle(x: Exchange, ports: Ports) -> None:
    """Replace the reservation by the cost of the call. This also happens while budgets are not enforced, so that the
    spending is known when they are enforced again."""
    if x.admitted is not None and x.admitted.reserved is not None:
        ports.spend.settle(x.admitted.reserved, charged(x))


def counts(x: Exchange) -> bool:
    """Return whether the request counts against budgets. It counts if a provider's answer was used. A stream that broke
    or was abandoned counts with the usage that the provider has reported."""
    return x.usage is not None or x.outcome == "success" or x.time_to_first_token_ms is not None


def charged(x: Exchange) -> CallAmounts | None:
    """Return the amounts that the call counts for, or None if it is not counted."""
    if not counts(x):
        return None
    if x.usage is None:
        return CallAmounts(requests=1)
    used = x.usage
    tokens = used.input_tokens + used.output_tokens + used.cached_tokens + used.cache_write_tokens
    return CallAmounts(nano_usd=nano(x.cost_usd) if x.cost_usd else 0, requests=1, tokens=tokens)


def _enforced(x: Identified) -> bool:
    """Return whether the feature flag `budget_enforcement` is on."""
    return x.policy.feature_flags.get("budget_enforcement", True)
