"""The order of models under the strategies of routing policies."""

from decimal import Decimal
from typing import Any

import pytest

from gatehouse.engine.exchange import RoutingNeeds
from gatehouse.engine.routing.strategies import StrategyView, in_bounds, ranked
from gatehouse.foundation.ids import new_id
from gatehouse.policy.catalog import ChainEntry, ModelRecord, ProviderRecord, RoutingPolicyRecord
from gatehouse.policy.routing import RoutingPolicy, compile_routing_policy, options_of


def model(name: str, input_price: str | None, made: str | None, window: int | None = None) -> ModelRecord:
    return ModelRecord(
        id=new_id(), provider="p", model_id=name, context_window=window,
        cost_per_input_token=None if input_price is None else Decimal(input_price),
        cost_per_output_token=None if made is None else Decimal(made),
    )  # fmt: skip


#: For equal amounts of input and output, `small` is the cheapest. With much input and little output, `reader` is.
MODELS = {
    item.model_id: item
    for item in (
        model("large", "0.00001", "0.00003"),
        model("reader", "0.0000001", "0.00002", window=1_000_000),
        model("small", "0.000001", "0.000002", window=8_000),
        model("unpriced", None, None),
    )
}
OPTIONS = options_of({"p": ProviderRecord(id="p", name="p", kind="sandbox")}, MODELS.values())
USUAL = RoutingNeeds(input_tokens=1_000, output_tokens=1_000)


def policy(strategy: str, *chain: tuple[str, float], **more: Any) -> RoutingPolicy:
    entries = tuple(
        ChainEntry(provider="p", model_id=name, priority=at, cost_weight=weight)
        for at, (name, weight) in enumerate(chain)
    )
    record = RoutingPolicyRecord(
        id=new_id(), name="p", strategy=strategy, fallback_chain=entries, **more,  # type: ignore[arg-type]
    )  # fmt: skip
    return compile_routing_policy(record, OPTIONS)


def order(policy: RoutingPolicy, needs: RoutingNeeds = USUAL, *, turn: int = 0, **medians: float) -> list[str]:
    view = StrategyView({MODELS[name].id.int: median for name, median in medians.items()}, turn)
    return [option.model.model_id for option in in_bounds(policy, ranked(policy, needs, view), needs, view)]


def test_cost_is_compared_for_the_tokens_of_the_call() -> None:
    assert order(policy("cost_optimized")) == ["small", "reader", "large", "unpriced"]
    reading = RoutingNeeds(input_tokens=7_000, output_tokens=10)
    assert order(policy("cost_optimized"), reading) == ["reader", "small", "large", "unpriced"]


def test_quality_orders_by_the_chain_and_then_by_the_price() -> None:
    assert order(policy("quality_optimized")) == ["large", "reader", "small", "unpriced"]
    assert order(policy("quality_optimized", ("unpriced", 1), ("small", 1))) == ["unpriced", "small", "large", "reader"]


def test_latency_orders_by_medians_and_unknown_models_come_last_by_price() -> None:
    assert order(policy("latency_optimized"), large=100, unpriced=50) == ["unpriced", "large", "small", "reader"]
    assert order(policy("latency_optimized")) == ["small", "reader", "large", "unpriced"]


@pytest.mark.parametrize(
    ("weights", "medians", "first"),
    [
        # small costs 0.003, reader 0.0201, and large 0.04.
        ((), {"small": 100, "reader": 100, "large": 100}, "small"),
        ((), {"small": 900, "reader": 100, "large": 100}, "reader"),
        ((("large", 0.01),), {"small": 900, "reader": 100, "large": 90}, "large"),
        ((("small", 100.0),), {"small": 100, "reader": 100, "large": 100}, "reader"),
        ((), {}, "small"),
    ],
)
def test_balanced_weighs_cost_and_latency(
    weights: tuple[tuple[str, float], ...], medians: dict[str, float], first: str
) -> None:
    assert order(policy("balanced", *weights), **medians)[0] == first


def test_round_robin_alternates_the_models() -> None:
    turns = [order(policy("round_robin"), turn=turn) for turn in range(5)]
    assert [turn[0] for turn in turns] == ["large", "reader", "small", "unpriced", "large"]
    assert turns[2] == ["small", "unpriced", "large", "reader"]


def test_manual_fallback_uses_only_the_chain() -> None:
    assert order(policy("manual_fallback", ("unpriced", 1), ("large", 1))) == ["unpriced", "large"]


@pytest.mark.parametrize(
    "strategy", ["cost_optimized", "quality_optimized", "latency_optimized", "balanced", "round_robin"]
)
def test_too_slow_and_too_small_models_come_last(strategy: str) -> None:
    slow = policy(strategy, latency_budget_ms=500)
    assert order(slow, large=501, small=500, reader=1)[-1] == "large"
    long = RoutingNeeds(input_tokens=8_001, output_tokens=1)
    assert order(policy(strategy), long)[-1] == "small"


def test_the_order_is_empty_without_models() -> None:
    for strategy in ("cost_optimized", "quality_optimized", "latency_optimized", "balanced", "round_robin"):
        nobody = compile_routing_policy(RoutingPolicyRecord(id=new_id(), name="p", strategy=strategy), {})  # type: ignore[arg-type]
        assert list(ranked(nobody, USUAL, StrategyView({}))) == []
