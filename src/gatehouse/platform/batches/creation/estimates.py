"""Estimates the cost and tokens of a batch's calls, from the catalog's prices and the likely lengths of the answers."""

from collections.abc import Iterable
from decimal import Decimal

from gatehouse.engine.conversation.call import ModelCall
from gatehouse.engine.exchange import CallRequest, Identified
from gatehouse.engine.money.estimate import estimate, routing_needs
from gatehouse.engine.stages.candidates.route import AUTO, default_model
from gatehouse.policy.budgets import CallAmounts, nano


def estimate_call(identified: Identified, call: ModelCall) -> CallAmounts:
    """Return the likely cost and tokens of a call. The cost of a model alias is that of its most expensive deployment.
    The cost is 0 if the model is unknown or has no price. When such a call is run, it is refused if a budget in dollars
    applies."""
    needs = routing_needs(CallRequest(identified=identified, call=call))
    policy = identified.policy
    if (alias := policy.find_alias(call.model)) is not None:
        models = [deployment.candidate.model for deployment in alias.live]
    else:
        model = default_model(policy) if call.model == AUTO else policy.find_model(call.model)
        models = [] if model is None else [model]
    cost = max((estimate(model, needs) or Decimal(0) for model in models), default=Decimal(0))
    return CallAmounts(nano_usd=nano(cost), requests=1, tokens=needs.input_tokens + needs.output_tokens)


def total(estimates: Iterable[CallAmounts]) -> CallAmounts:
    nano_usd = requests = tokens = 0
    for amounts in estimates:
        nano_usd += amounts.nano_usd
        requests += amounts.requests
        tokens += amounts.tokens
    return CallAmounts(nano_usd=nano_usd, requests=requests, tokens=tokens)
