"""Orders models by the strategy of a routing policy (docs/cost-routing.md).

Pure functions of a policy, the needs of the call, the latencies of the models and the round-robin counter, used by
routing and by simulation. Options are in the order of their names, so that the order of equal options is stable.

With hundreds of models the order is most of the time that routing takes. So prices and latencies are compared as lists
of numbers, and conditions that are needed for the first few options only are evaluated lazily (`in_bounds`).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from gatehouse.engine.exchange import RoutingNeeds
from gatehouse.policy.records import Strategy
from gatehouse.policy.routing import UNKNOWN_PRICE_USD_PER_TOKEN, Option, Options, RoutingPolicy

#: Strategies that use latencies, and so send some requests to models of unknown latency.
BY_LATENCY: Final[frozenset[Strategy]] = frozenset({"latency_optimized", "balanced"})


class StrategyView(msgspec.Struct, frozen=True):
    """Inputs of strategies in addition to policy and call. `medians` are milliseconds by `Option.key`. `state` changes
    whenever they change; with None derived values are not cached. `turn` counts the policy's decisions.
    `is_unavailable` returns whether a model's provider is unhealthy or its circuit is open."""

    medians: Mapping[int, float]
    turn: int = 0
    is_unavailable: Callable[[Option], bool] = lambda _: False
    state: object = None


_Order: TypeAlias = Callable[[RoutingPolicy, RoutingNeeds, StrategyView], Sequence[Option]]


def ranked(policy: RoutingPolicy, requirements: RoutingNeeds, view: StrategyView) -> Sequence[Option]:
    """Return all models that the policy allows and that are capable of the call, the first choice first."""
    return _ORDERS[policy.strategy](policy, requirements, view)


def in_bounds(
    policy: RoutingPolicy, options: Sequence[Option], requirements: RoutingNeeds, view: StrategyView
) -> Iterator[Option]:
    """Yield the options. Those that exceed the policy's latency budget, whose context window is too small, or that are
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
    """Return the options, the cheapest first and those without a price last."""
    return _ascending(options, _costs(options, requirements))


def _cost_optimized(policy: RoutingPolicy, requirements: RoutingNeeds, view: StrategyView) -> Sequence[Option]:
    return by_cost(policy.pool.capable(requirements.needs, requirements.embeds), requirements)


def _quality_optimized(policy: RoutingPolicy, requirements: RoutingNeeds, view: StrategyView) -> Sequence[Option]:
    return policy.pool.capable(requirements.needs, requirements.embeds)


def _latency_optimized(policy: RoutingPolicy, requirements: RoutingNeeds, view: StrategyView) -> Sequence[Option]:
    """Order by latency; options of unknown latency come last, the cheapest of them first."""
    options = policy.pool.capable(requirements.needs, requirements.embeds)
    times = _times(options, view)
    if None not in times:
        return _ascending(options, times)
    costs = _costs(options, requirements)
    # No median is as long as a day, so that the cost orders the options without one.
    scores = [_DAY_MS + cost if time is None else time for time, cost in zip(times, costs, strict=True)]
    return _ascending(options, scores)


def _balanced(policy: RoutingPolicy, requirements: RoutingNeeds, view: StrategyView) -> Sequence[Option]:
    """Order by weighted cost plus latency. The cost is multiplied by the entry's weight, and both are divided by their
    averages over all options. An unknown price counts as the highest, an unknown latency as the average."""
    options = policy.pool.capable(requirements.needs, requirements.embeds)
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
    options = policy.pool.capable(requirements.needs, requirements.embeds)
    first = view.turn % len(options) if options else 0
    return (*options[first:], *options[:first])


def _manual_fallback(policy: RoutingPolicy, requirements: RoutingNeeds, view: StrategyView) -> Sequence[Option]:
    return policy.chain.capable(requirements.needs, requirements.embeds)


_DAY_MS: Final = 86_400_000.0
#: Higher costs contain `UNKNOWN_PRICE_USD_PER_TOKEN`: no call with known prices costs as much, and the quotient leaves
#: room for small weights.
_UNKNOWN_COST_USD: Final = UNKNOWN_PRICE_USD_PER_TOKEN / 1e9


def _times(options: Options, view: StrategyView) -> list[Any]:
    """Return the medians; None if unknown."""
    return list(map(view.medians.get, options.keys))


def _times_or_average(options: Options, view: StrategyView) -> tuple[list[float], float]:
    """Return the medians, with the average in place of unknown ones, and their sum. Cached until they change."""
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
    """Return the cost that equals one millisecond, so that the average latency counts as much as the average cost. If
    all options are free, only latency counts."""
    return total_cost / (total_time or 1.0) or 1.0


def _ascending(options: Options, scores: Sequence[float]) -> Sequence[Option]:
    return [options[index] for index in sorted(range(len(scores)), key=scores.__getitem__)]


def _costs(options: Options, requirements: RoutingNeeds) -> list[float]:
    """Return the costs in USD; at least `UNKNOWN_PRICE_USD_PER_TOKEN` if a price that the call needs is unknown."""
    return _call_costs(options.per_input, options.per_output, requirements)


def _call_costs(per_input: list[float], per_output: list[float], requirements: RoutingNeeds) -> list[float]:
    read, written = requirements.input_tokens or 1, requirements.output_tokens
    if not written:
        return [price * read for price in per_input]
    return [price_in * read + price_out * written for price_in, price_out in zip(per_input, per_output, strict=True)]


def _costs_or_highest(costs: list[float]) -> list[float]:
    """Return the costs, with the highest known one in place of unknown ones."""
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
