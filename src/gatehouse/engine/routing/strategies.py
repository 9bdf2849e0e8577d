"""Orders models by the strategy of a routing policy (docs/cost-routing.md).

The functions are pure and are used by routing and by simulation. Their inputs are a policy, the needs of the call, the
latencies of the models and the round-robin counter. Options are sorted by name first, so that the order of equal
options is stable.

With hundreds of models, ordering takes most of the time of routing. So prices and latencies are compared as lists of
numbers, and conditions that matter only for the first few options are evaluated lazily (`in_bounds`).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from gatehouse.engine.exchange import RoutingNeeds
from gatehouse.policy.catalog import Strategy
from gatehouse.policy.routing import UNKNOWN_PRICE_USD_PER_TOKEN, Option, Options, RoutingPolicy

#: Strategies that use latencies. They send some requests to models of unknown latency.
BY_LATENCY: Final[frozenset[Strategy]] = frozenset({"latency_optimized", "balanced"})


class StrategyView(msgspec.Struct, frozen=True):
    """The inputs of a strategy in addition to the policy and the call. `medians` are milliseconds by `Option.key`.
    `state` is a value that changes whenever the medians change; if it is None, derived values are not cached. `turn`
    counts the policy's decisions. `is_unavailable` returns whether a model's provider is unhealthy or its circuit is
    open."""

    medians: Mapping[int, float]
    turn: int = 0
    is_unavailable: Callable[[Option], bool] = lambda _: False
    state: object = None


_Order: TypeAlias = Callable[[RoutingPolicy, RoutingNeeds, StrategyView], Sequence[Option]]


def ranked(policy: RoutingPolicy, requirements: RoutingNeeds, view: StrategyView) -> Sequence[Option]:
    """Return all models that the policy allows and that are capable of the call. The first choice comes first."""
    return _ORDERS[policy.strategy](policy, requirements, view)


def in_bounds(
    policy: RoutingPolicy, options: Sequence[Option], requirements: RoutingNeeds, view: StrategyView
) -> Iterator[Option]:
    """Yield the options. Options that exceed the policy's latency budget, have too small a context window, or are
    unavailable come last."""
    budget = policy.latency_budget_ms
    limit, tokens, medians = (
        UNKNOWN_PRICE_USD_PER_TOKEN if budget is None else budget,
        requirements.input_tokens,
        view.medians,
    )
    postponed = []
    for option in options:
        if option.window < tokens or medians.get(option.key, 0.0) > limit or view.is_unavailable(option):
            postponed.append(option)
        else:
            yield option
    yield from postponed


def by_cost(options: Options, requirements: RoutingNeeds) -> Sequence[Option]:
    """Return the options sorted by cost, the cheapest first. Options without a price come last."""
    return _ascending(options, _costs(options, requirements))


def _cost_optimized(policy: RoutingPolicy, requirements: RoutingNeeds, view: StrategyView) -> Sequence[Option]:
    return by_cost(policy.pool.capable(requirements.needs, requirements.use), requirements)


def _quality_optimized(policy: RoutingPolicy, requirements: RoutingNeeds, view: StrategyView) -> Sequence[Option]:
    return policy.pool.capable(requirements.needs, requirements.use)


def _latency_optimized(policy: RoutingPolicy, requirements: RoutingNeeds, view: StrategyView) -> Sequence[Option]:
    """Order by latency. Options of unknown latency come last, the cheapest of them first."""
    options = policy.pool.capable(requirements.needs, requirements.use)
    times = _times(options, view)
    if None not in times:
        return _ascending(options, times)
    costs = _costs(options, requirements)
    # No median reaches the length of a day, so options without a median come last and are ordered by cost.
    scores = [_DAY_MS + cost if time is None else time for time, cost in zip(times, costs, strict=True)]
    return _ascending(options, scores)


def _balanced(policy: RoutingPolicy, requirements: RoutingNeeds, view: StrategyView) -> Sequence[Option]:
    """Order by the sum of weighted cost and latency. The cost is multiplied by the entry's weight, and cost and latency
    are divided by their averages over all options. An unknown price is treated as the highest price, and an unknown
    latency as the average."""
    options = policy.pool.capable(requirements.needs, requirements.use)
    times, total_time = _times_or_average(options, view)
    if options.weighted_sums is None:
        costs = _costs_or_highest(_call_costs(options.weighted_input, options.weighted_output, requirements))
        weight = _time_weight(sum(costs), total_time)
        return _ascending(options, [cost + time * weight for cost, time in zip(costs, times, strict=True)])
    read, written = requirements.input_tokens or 1, requirements.output_tokens
    total_input, total_output = options.weighted_sums
    weight = _time_weight(total_input * read + total_output * written, total_time)
    columns = zip(options.weighted_input, options.weighted_output, times, strict=True)
    return _ascending(
        options, [price_in * read + price_out * written + time * weight for price_in, price_out, time in columns]
    )


def _round_robin(policy: RoutingPolicy, requirements: RoutingNeeds, view: StrategyView) -> Sequence[Option]:
    options = policy.pool.capable(requirements.needs, requirements.use)
    first = view.turn % len(options) if options else 0
    return (*options[first:], *options[:first])


def _manual_fallback(policy: RoutingPolicy, requirements: RoutingNeeds, view: StrategyView) -> Sequence[Option]:
    return policy.chain.capable(requirements.needs, requirements.use)


_DAY_MS: Final = 86_400_000.0
#: Costs from this value on contain `UNKNOWN_PRICE_USD_PER_TOKEN`. No call with known prices costs as much. The
#: divisor leaves room for small weights, which reduce a cost.
_UNKNOWN_COST_USD: Final = UNKNOWN_PRICE_USD_PER_TOKEN / 1e9


def _times(options: Options, view: StrategyView) -> list[Any]:
    """Return the median of each option, or None where it is unknown."""
    return list(map(view.medians.get, options.keys))


def _times_or_average(options: Options, view: StrategyView) -> tuple[list[float], float]:
    """Return the medians, with the average in place of unknown medians, and their sum. Both are cached until the
    medians change."""
    cached = options.times
    if cached is not None and cached[0] == view.state:
        return cached[1], cached[2]
    medians = _times(options, view)
    known_medians = [time for time in medians if time is not None]
    average = sum(known_medians) / len(known_medians) if known_medians else 1.0
    times = [average if time is None else time for time in medians]
    total = sum(times)
    if view.state is not None:
        options.times = (view.state, times, total)
    return times, total


def _time_weight(total_cost: float, total_time: float) -> float:
    """Return the cost that has the same weight as one millisecond. The average latency then has the same weight as the
    average cost. If all options are free, only latency is considered."""
    return total_cost / (total_time or 1.0) or 1.0


def _ascending(options: Options, scores: Sequence[float]) -> Sequence[Option]:
    return [options[index] for index in sorted(range(len(scores)), key=scores.__getitem__)]


def _costs(options: Options, requirements: RoutingNeeds) -> list[float]:
    """Return the costs in USD. A cost is at least `UNKNOWN_PRICE_USD_PER_TOKEN` if a price that the call needs is
    unknown."""
    return _call_costs(options.per_input, options.per_output, requirements)


def _call_costs(per_input: list[float], per_output: list[float], requirements: RoutingNeeds) -> list[float]:
    read, written = requirements.input_tokens or 1, requirements.output_tokens
    if not written:
        return [price * read for price in per_input]
    return [price_in * read + price_out * written for price_in, price_out in zip(per_input, per_output, strict=True)]


def _costs_or_highest(costs: list[float]) -> list[float]:
    """Return the costs, with the highest known cost in place of unknown costs."""
    if not costs or max(costs) < _UNKNOWN_COST_USD:
        return costs
    highest = max((cost for cost in costs if cost < _UNKNOWN_COST_USD), default=0.0)
    return [min(cost, highest) for cost in costs]


_ORDERS: Final[Mapping[Strategy, _Order]] = {
    "cost_optimized": _cost_optimized,
    "quality_optimized": _quality_optimized,
    "latency_optimized": _latency_optimized,
    "balanced": _balanced,
    "round_robin": _round_robin,
    "manual_fallback": _manual_fallback,
}
