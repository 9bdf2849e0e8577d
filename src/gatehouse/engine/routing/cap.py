"""The cost cap of a routing policy: what a call is estimated to cost, against what it may (reference 3, Cost routing
policy, `cost_cap`).

A request that fits with as many tokens as it has bytes fits for certain, and no token is counted.
"""

from decimal import Decimal
from typing import Final

import msgspec

from gatehouse.engine import tokenizers
from gatehouse.engine.bound import PriceUnknown, input_tokens
from gatehouse.engine.candidate import Candidate
from gatehouse.engine.estimate import estimate, wants
from gatehouse.engine.exchange import Asked, Wants
from gatehouse.engine.outcome import RuleEvent
from gatehouse.foundation.errors import PaymentRequired, Refusal
from gatehouse.policy.records import CostCap
from gatehouse.policy.routing import RoutingPolicy

_BELOW: Final = 1 - 1e-12


class CostCapExceeded(PaymentRequired):
    """402 with `estimated_cost_usd`, `limit_usd` and `policy_id` (reference 3, Cost routing, Errors)."""

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
    """What one call is estimated to cost, wherever it goes; `limit` is USD."""

    __slots__ = ("_bound", "_counted", "_most_read", "_wanted", "_x", "limit")

    def __init__(self, x: Asked, limit: Decimal) -> None:
        self.limit = limit
        # Floats are quick; what they are wrong by is far below the share that is taken off.
        self._bound = float(limit) * _BELOW
        self._x = x
        self._wanted = wanted = wants(x)
        #: as many tokens as there can be
        self._most_read = wanted.input_tokens if wanted.counted else input_tokens(x)
        #: with the tokens that a vocabulary makes of it
        self._counted: dict[tokenizers.Counter, Wants] = {}

    def told(self, candidate: Candidate) -> Decimal | None:
        """With its tokens counted where that can be done. None: no price."""
        counting = None if self._wanted.counted else tokenizers.counter(candidate.model.model_id)
        if counting is None:
            return estimate(candidate.model, self._wanted)
        wanted = self._counted.get(counting)
        if wanted is None:
            tokens = tokenizers.count(self._x, counting)
            wanted = self._counted[counting] = msgspec.structs.replace(self._wanted, input_tokens=tokens)
        return estimate(candidate.model, wanted)

    def surely_fits(self, candidate: Candidate) -> bool:
        """Told at once, and not of all that fit."""
        prices, made = candidate.model.dearest, self._wanted.output_tokens
        if prices is None or (made and prices[1] is None):
            return False
        return self._most_read * prices[0] + made * (prices[1] or 0.0) <= self._bound

    def fits(self, candidate: Candidate) -> bool:
        """What has no price does not."""
        if self.surely_fits(candidate):
            return True
        cost = self.told(candidate)
        return cost is not None and cost <= self.limit


def refusal(policy: RoutingPolicy, cap: CostCap, candidate: Candidate, estimated: Decimal | None) -> Refusal:
    return PriceUnknown.of(candidate, "A cost cap") if estimated is None else CostCapExceeded.of(policy, cap, estimated)


def note(x: Asked, policy: RoutingPolicy, cap: CostCap, candidate: Candidate) -> None:
    """For the audit log: the choice was above the cap, and the request went on all the same."""
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
