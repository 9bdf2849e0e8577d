"""The cost cap of a routing policy: compares the estimated cost of a call with the maximum (docs/cost-routing.md).

If a request fits with each byte treated as one token, it fits in any case, and its tokens need not be counted.
"""

from decimal import Decimal
from typing import Final

import msgspec

from gatehouse.engine.exchange import CallRequest, RoutingNeeds
from gatehouse.engine.measures import tokenizers
from gatehouse.engine.money.bound import PriceUnknown, max_input_tokens
from gatehouse.engine.money.estimate import estimate, routing_needs
from gatehouse.engine.records.outcome import RuleEvent
from gatehouse.foundation.errors import PaymentRequired, Refusal
from gatehouse.policy.catalog import Candidate, CostCap
from gatehouse.policy.routing import RoutingPolicy

#: Factor that lowers the limit by more than the error of floats.
_ROUNDED_DOWN: Final = 1 - 1e-12


class CostCapExceeded(PaymentRequired):
    """The estimated cost of the call exceeds the cost cap: 402 with `estimated_cost_usd`, `limit_usd` and
    `policy_id`."""

    @classmethod
    def of(cls, policy: RoutingPolicy, cap: CostCap, estimated: Decimal) -> "CostCapExceeded":
        limit = cap.max_cost_per_request_usd
        return cls(
            f"The request is estimated to cost {estimated:.6f} USD, and the routing policy {policy.name!r} allows"
            f" {limit:f} USD.",
            estimated_cost_usd=float(estimated),
            limit_usd=float(limit),
            policy_id=str(policy.id),
        )


class Costs:
    """The estimated cost of one call at each candidate. `limit` is in USD."""

    __slots__ = ("_float_limit", "_max_input_tokens", "_needs", "_needs_by_counter", "_x", "limit")

    def __init__(self, x: CallRequest, limit: Decimal) -> None:
        self.limit = limit
        # Floats are fast. Their error is far smaller than the share that is subtracted.
        self._float_limit = float(limit) * _ROUNDED_DOWN
        self._x = x
        self._needs = needs = routing_needs(x)
        self._max_input_tokens = needs.input_tokens if needs.counted else max_input_tokens(x)
        #: the needs with the input tokens as counted by each vocabulary
        self._needs_by_counter: dict[tokenizers.Counter, RoutingNeeds] = {}

    def estimated(self, candidate: Candidate) -> Decimal | None:
        """Return the estimated cost, with counted tokens if the vocabulary is installed. Returns None if there is no
        price."""
        counter = None if self._needs.counted else tokenizers.counter(candidate.model.model_id)
        if counter is None:
            return estimate(candidate.model, self._needs)
        needs = self._needs_by_counter.get(counter)
        if needs is None:
            tokens = tokenizers.count(self._x, counter)
            needs = self._needs_by_counter[counter] = msgspec.structs.replace(self._needs, input_tokens=tokens)
        return estimate(candidate.model, needs)

    def surely_fits(self, candidate: Candidate) -> bool:
        """Return whether the upper bound of the cost fits. The check is fast. False does not mean that the estimate
        exceeds the cap."""
        prices, output_tokens = candidate.model.dearest, self._needs.output_tokens
        if prices is None or (output_tokens and prices[1] is None):
            return False
        return self._max_input_tokens * prices[0] + output_tokens * (prices[1] or 0.0) <= self._float_limit

    def fits(self, candidate: Candidate) -> bool:
        """Return whether the estimated cost fits. A candidate without a price does not fit."""
        if self.surely_fits(candidate):
            return True
        cost = self.estimated(candidate)
        return cost is not None and cost <= self.limit


def refusal(policy: RoutingPolicy, cap: CostCap, candidate: Candidate, estimated: Decimal | None) -> Refusal:
    return PriceUnknown.of(candidate, "A cost cap") if estimated is None else CostCapExceeded.of(policy, cap, estimated)


def note(x: CallRequest, policy: RoutingPolicy, cap: CostCap, candidate: Candidate) -> None:
    """Record for the audit log that the choice exceeded the cap, and that the request continued."""
    x.rule_events.append(
        RuleEvent(
            kind="cost_cap",
            rule_id=str(policy.id),
            rule_name=policy.name,
            action=cap.action_on_exceed,
            result="exceeded",
            model=f"{candidate.provider.id}/{candidate.model.model_id}",
        )
    )
