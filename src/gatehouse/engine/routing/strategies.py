"""The order in which a routing policy would have a call answered (reference 3, Cost routing policy, `strategy`).

Pure: a policy, what the call wants, how fast the models were, whose turn it is. What is routed by and what is simulated
by is this. Options come in the order of their names, so that those that are equal always stand in the same order.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias
from uuid import UUID

import msgspec

from gatehouse.engine.exchange import Wants
from gatehouse.policy.records import Strategy
from gatehouse.policy.routing import Option, RoutingPolicy

#: Strategies that go by latencies, and so send a request now and then to a model of which none is known.
BY_LATENCY: Final[frozenset[Strategy]] = frozenset({"latency_optimized", "balanced"})


class View(msgspec.Struct, frozen=True):
    """What strategies go by besides policy and call. `medians` are milliseconds by catalog entry; `turn` counts the
    policy's decisions."""

    medians: Mapping[UUID, float]
    turn: int = 0


_Order: TypeAlias = Callable[[RoutingPolicy, Sequence[Option], Wants, View], Sequence[Option]]


def ranked(policy: RoutingPolicy, wanted: Wants, view: View) -> Sequence[Option]:
    """Every model that the policy lets choose from and that is capable of it, the first choice first. Those that are
    above the latency budget, or whose context window is too small, come last."""
    pool = policy.chain if policy.strategy == "manual_fallback" else policy.pool
    capable = pool.capable(wanted.needs, wanted.embeds)
    return in_bounds(policy, _ORDERS[policy.strategy](policy, capable, wanted, view), wanted, view)


def in_bounds(policy: RoutingPolicy, options: Sequence[Option], wanted: Wants, view: View) -> Sequence[Option]:
    """The same, those last that are too slow or too small."""
    budget, tokens = policy.latency_budget_ms, wanted.input_tokens
    late = {option.name for option in options if option.window < tokens}
    if budget is not None and view.medians:
        late |= {option.name for option in options if view.medians.get(option.model.id, 0.0) > budget}
    if not late:
        return options
    return sorted(options, key=lambda option: option.name in late)


def by_cost(options: Sequence[Option], wanted: Wants) -> Sequence[Option]:
    """The cheapest first, those without a price last."""
    costs = _costs(options, wanted)
    return [options[at] for at in sorted(range(len(options)), key=costs.__getitem__)]


def _cost_optimized(policy: RoutingPolicy, options: Sequence[Option], wanted: Wants, view: View) -> Sequence[Option]:
    return by_cost(options, wanted)


def _quality_optimized(policy: RoutingPolicy, options: Sequence[Option], wanted: Wants, view: View) -> Sequence[Option]:
    """The policy's chain is the organization's own word about quality; of the rest the price is taken for it."""
    place = {option.name: at for at, option in enumerate(policy.chain.options)}
    costs = {option.name: option.cost(wanted.input_tokens, wanted.output_tokens) or 0.0 for option in options}
    return sorted(options, key=lambda option: (place.get(option.name, len(place)), -costs[option.name]))


def _latency_optimized(policy: RoutingPolicy, options: Sequence[Option], wanted: Wants, view: View) -> Sequence[Option]:
    """Those of which nothing is known come behind, the cheapest first."""
    medians = view.medians
    return sorted(by_cost(options, wanted), key=lambda option: medians.get(option.model.id, _UNKNOWN))


def _balanced(policy: RoutingPolicy, options: Sequence[Option], wanted: Wants, view: View) -> Sequence[Option]:
    """By the sum of cost, times the entry's weight, and latency, each as a share of what is usual among the options.
    An unknown price counts as the dearest, an unknown latency as the usual one."""
    costs = _costs(options, wanted)
    known = [cost for cost in costs if cost != _UNKNOWN]
    usual_cost, dearest = (sum(known) / len(known), max(known)) if known else (0.0, 0.0)
    times = [view.medians.get(option.model.id) for option in options]
    measured = [time for time in times if time is not None]
    usual_time = sum(measured) / len(measured) if measured else 0.0

    def score(at: int) -> float:
        cost, time = min(costs[at], dearest), times[at]
        share = cost / usual_cost * options[at].weight if usual_cost else 0.0
        return share + (time / usual_time if time is not None and usual_time else 1.0)

    return [options[at] for at in sorted(range(len(options)), key=score)]


def _round_robin(policy: RoutingPolicy, options: Sequence[Option], wanted: Wants, view: View) -> Sequence[Option]:
    first = view.turn % len(options) if options else 0
    return [*options[first:], *options[:first]]


def _manual_fallback(policy: RoutingPolicy, options: Sequence[Option], wanted: Wants, view: View) -> Sequence[Option]:
    return options


#: Behind everything that is known.
_UNKNOWN: Final = float("inf")


def _costs(options: Sequence[Option], wanted: Wants) -> list[float]:
    given, made = wanted.input_tokens, wanted.output_tokens
    # Written out: a call for each of 200 options costs as much as all the rest.
    return [
        _UNKNOWN
        if option.per_input is None or (made and option.per_output is None)
        else option.per_input * given + (option.per_output or 0.0) * made
        for option in options
    ]


_ORDERS: Final[Mapping[Strategy, _Order]] = {
    "cost_optimized": _cost_optimized,
    "quality_optimized": _quality_optimized,
    "latency_optimized": _latency_optimized,
    "balanced": _balanced,
    "round_robin": _round_robin,
    "manual_fallback": _manual_fallback,
}
