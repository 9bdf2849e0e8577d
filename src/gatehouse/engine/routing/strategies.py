"""The order in which a routing policy would have a call answered (reference 3, Cost routing policy, `strategy`).

Pure: a policy, what the call wants, how fast the models were, whose turn it is. What is routed by and what is simulated
by is this. Options come in the order of their names, so that those that are equal always stand in the same order.

With hundreds of models an order is most of what routing costs a request, so prices and latencies are compared as lists
of numbers, and what only the first few are asked about is asked late (`in_bounds`).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from gatehouse.engine.exchange import Wants
from gatehouse.policy.records import Strategy
from gatehouse.policy.routing import UNKNOWN, Option, Options, RoutingPolicy

#: Strategies that go by latencies, and so send a request now and then to a model of which none is known.
BY_LATENCY: Final[frozenset[Strategy]] = frozenset({"latency_optimized", "balanced"})


class View(msgspec.Struct, frozen=True):
    """What strategies go by besides policy and call. `medians` are milliseconds by `Option.key`, `state` another one
    whenever they change (None: nothing is kept of them); `turn` counts the policy's decisions; `away` says of a model
    whether its provider is unhealthy, or it is left alone after failures."""

    medians: Mapping[int, float]
    turn: int = 0
    away: Callable[[Option], bool] = lambda _: False
    state: object = None


_Order: TypeAlias = Callable[[RoutingPolicy, Wants, View], Sequence[Option]]


def ranked(policy: RoutingPolicy, wanted: Wants, view: View) -> Sequence[Option]:
    """Every model that the policy lets choose from and that is capable of it, the first choice first."""
    return _ORDERS[policy.strategy](policy, wanted, view)


def in_bounds(policy: RoutingPolicy, options: Sequence[Option], wanted: Wants, view: View) -> Iterator[Option]:
    """The same, those last that are above the policy's latency budget, whose context window is too small, or whose
    provider is away."""
    budget = policy.latency_budget_ms
    limit, tokens, medians = UNKNOWN if budget is None else budget, wanted.input_tokens, view.medians
    late = []
    for option in options:
        if option.window < tokens or medians.get(option.key, 0.0) > limit or view.away(option):
            late.append(option)
        else:
            yield option
    yield from late


def by_cost(options: Options, wanted: Wants) -> Sequence[Option]:
    """The cheapest first, those without a price last."""
    return _ascending(options, _costs(options, wanted))


def _cost_optimized(policy: RoutingPolicy, wanted: Wants, view: View) -> Sequence[Option]:
    return by_cost(policy.pool.capable(wanted.needs, wanted.embeds), wanted)


def _quality_optimized(policy: RoutingPolicy, wanted: Wants, view: View) -> Sequence[Option]:
    return policy.pool.capable(wanted.needs, wanted.embeds)


def _latency_optimized(policy: RoutingPolicy, wanted: Wants, view: View) -> Sequence[Option]:
    """Those of which nothing is known come behind, the cheapest first."""
    options = policy.pool.capable(wanted.needs, wanted.embeds)
    times = _times(options, view)
    if None not in times:
        return _ascending(options, times)
    costs = _costs(options, wanted)
    # No median is as long as a day; what is behind it only orders those without one.
    known = [_A_DAY + cost if time is None else time for time, cost in zip(times, costs, strict=True)]
    return _ascending(options, known)


def _balanced(policy: RoutingPolicy, wanted: Wants, view: View) -> Sequence[Option]:
    """By the sum of cost, times the entry's weight, and latency, each as a share of what is usual among the options.
    An unknown price counts as the dearest, an unknown latency as the usual one."""
    options = policy.pool.capable(wanted.needs, wanted.embeds)
    times, all_times = _usual_times(options, view)
    if options.weighted_sums is None:
        costs = _known(_summed(options.weighted_input, options.weighted_output, wanted))
        worth = _worth(sum(costs), all_times)
        return _ascending(options, [cost + time * worth for cost, time in zip(costs, times, strict=True)])
    given, made = wanted.input_tokens or 1, wanted.output_tokens
    all_input, all_output = options.weighted_sums
    worth = _worth(all_input * given + all_output * made, all_times)
    columns = zip(options.weighted_input, options.weighted_output, times, strict=True)
    return _ascending(options, [price * given + more * made + time * worth for price, more, time in columns])


def _round_robin(policy: RoutingPolicy, wanted: Wants, view: View) -> Sequence[Option]:
    options = policy.pool.capable(wanted.needs, wanted.embeds)
    first = view.turn % len(options) if options else 0
    return (*options[first:], *options[:first])


def _manual_fallback(policy: RoutingPolicy, wanted: Wants, view: View) -> Sequence[Option]:
    return policy.chain.capable(wanted.needs, wanted.embeds)


_A_DAY: Final = 86_400_000.0
#: What no call costs whose price is known. An unknown price is far above it, also times a small weight.
_TOO_MUCH: Final = UNKNOWN / 1e9


def _times(options: Options, view: View) -> list[Any]:
    """Medians, None where nobody knows."""
    return list(map(view.medians.get, options.keys))


def _usual_times(options: Options, view: View) -> tuple[list[float], float]:
    """Medians, with the average in the place of those that nobody knows, and their sum. Kept until they change."""
    kept = options.times
    if kept is not None and kept[0] == view.state:
        return kept[1], kept[2]
    times = _times(options, view)
    known = [time for time in times if time is not None]
    usual = sum(known) / len(known) if known else 1.0
    usual_times = [usual if time is None else time for time in times]
    told = sum(usual_times)
    if view.state is not None:
        options.times = (view.state, usual_times, told)
    return usual_times, told


def _worth(costs: float, times: float) -> float:
    """What a millisecond is worth: the usual time weighs as much as the usual cost, or alone where all are free."""
    return costs / (times or 1.0) or 1.0


def _ascending(options: Options, scores: Sequence[float]) -> Sequence[Option]:
    return [options[at] for at in sorted(range(len(scores)), key=scores.__getitem__)]


def _costs(options: Options, wanted: Wants) -> list[float]:
    """USD; from `UNKNOWN` on where a price is unknown that the call needs."""
    return _summed(options.per_input, options.per_output, wanted)


def _summed(per_input: list[float], per_output: list[float], wanted: Wants) -> list[float]:
    given, made = wanted.input_tokens or 1, wanted.output_tokens
    if not made:
        return [price * given for price in per_input]
    return [price * given + more * made for price, more in zip(per_input, per_output, strict=True)]


def _known(costs: list[float]) -> list[float]:
    """With the dearest in the place of those that nobody knows."""
    if not costs or max(costs) < _TOO_MUCH:
        return costs
    dearest = max((cost for cost in costs if cost < _TOO_MUCH), default=0.0)
    return [min(cost, dearest) for cost in costs]


_ORDERS: Final[Mapping[Strategy, _Order]] = {
    "cost_optimized": _cost_optimized,
    "quality_optimized": _quality_optimized,
    "latency_optimized": _latency_optimized,
    "balanced": _balanced,
    "round_robin": _round_robin,
    "manual_fallback": _manual_fallback,
}
