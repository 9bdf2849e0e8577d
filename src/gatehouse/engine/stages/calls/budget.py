"""Budgets: refuses callers whose budget is spent, reserves an amount before a call, and settles it after the call
(docs/budgets.md).
"""

from typing import Final

from gatehouse.engine.exchange import Admitted, Exchange, Identified
from gatehouse.engine.money.bound import (
    PriceUnknown,
    bound,
    default_output,
    priced,
)
from gatehouse.engine.ports import Ports
from gatehouse.engine.verdict import ALLOW, MaybeVerdict, Refuse, Verdict
from gatehouse.foundation.errors import Refusal
from gatehouse.policy.budgets import CallAmounts, CallerBudgets, nano

_ONE: Final = CallAmounts(requests=1)


def check(x: Identified, ports: Ports) -> Verdict:
    caller_budgets = x.policy.budgets.of(x.caller)
    binding = caller_budgets if caller_budgets is None or _enforced(x) else caller_budgets.always
    if binding is None:
        return ALLOW
    refused = ports.spend.exhausted(binding.budgets)
    return ALLOW if refused is None else Refuse(refused)


def reserve(x: Admitted, ports: Ports) -> MaybeVerdict:
    """Reserve the most that the call can use. Refuses with `QuotaExceeded`, or with `Unavailable` if the state of the
    budgets is unknown."""
    identified = x.call_request.identified
    caller_budgets = identified.policy.budgets.of(identified.caller)
    return ALLOW if caller_budgets is None else _reserve(x, caller_budgets, ports)


async def _reserve(x: Admitted, caller_budgets: CallerBudgets, ports: Ports) -> Verdict:
    call_request = x.call_request
    enforced = _enforced(call_request.identified)
    binding = caller_budgets if enforced else caller_budgets.always
    if binding is not None and binding.block_usd:
        remaining = tuple([candidate for candidate in x.chain if priced(call_request, candidate)])
        if not remaining:
            return Refuse(PriceUnknown.of(x.chain[0], "A budget in dollars"))
        x.chain = remaining
    amounts = _max_amounts(x, limited=binding is not None and binding.block) if caller_budgets.measure else _ONE
    try:
        x.reserved = await ports.spend.reserve(
            caller_budgets.budgets, amounts, enforced=enforced, user_id=call_request.identified.caller.user_id
        )
    except Refusal as refused:
        return Refuse(refused)
    return ALLOW


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
    """Return the amounts that the call counts for, or None if it does not count."""
    if not counts(x):
        return None
    if x.usage is None:
        return CallAmounts(requests=1)
    used = x.usage
    tokens = used.input_tokens + used.output_tokens + used.cached_tokens + used.cache_write_tokens
    return CallAmounts(nano_usd=nano(x.cost_usd) if x.cost_usd else 0, requests=1, tokens=tokens)


def _max_amounts(x: Admitted, *, limited: bool) -> CallAmounts:
    """Return the most that the call can use. If `limited`, the gateway sends an output limit to the model when the
    caller sends none."""
    output = default_output(x.call_request, x.chain)
    if limited:
        x.call_request.call.output_limit = output
    upper = bound(x.call_request, x.chain, output)
    return CallAmounts(nano_usd=upper.nano_usd or 0, requests=1, tokens=upper.tokens)


def _enforced(x: Identified) -> bool:
    """Return whether the feature flag `budget_enforcement` is on."""
    return x.policy.feature_flags.get("budget_enforcement", True)
