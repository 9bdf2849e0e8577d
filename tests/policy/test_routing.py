"""Compiled routing policies: the users to whom they apply, and the models from which they choose."""

from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from gatehouse.foundation.ids import new_id
from gatehouse.policy.catalog import (
    ChainEntry,
    CostCap,
    ModelFilters,
    ModelRecord,
    ProviderRecord,
    RoutingPolicyRecord,
)
from gatehouse.policy.routing import CAPABILITY_BITS, ModelUse, Routing, RoutingPolicy, compile_routing

GROUPS = [new_id() for _ in range(3)]
PROVIDERS = {
    "a": ProviderRecord(id="a", name="a", kind="sandbox"),
    "off": ProviderRecord(id="off", name="off", kind="sandbox", enabled=False),
}


def model(model_id: str, **more: Any) -> ModelRecord:
    return ModelRecord(id=new_id(), **{"provider": "a", "model_id": model_id, **more})


MODELS = [
    model("plain", context_window=8_000, cost_per_input_token=Decimal("0.000001")),
    model("eyes", context_window=128_000, capabilities={"vision": True, "structured_output": True}),
    model("blind", capabilities={"vision": False}, cost_per_input_token=Decimal("0.00001")),
    model("vectors", capabilities={"embeddings": True}),
    model("inactive", is_active=False),
    model("elsewhere", provider="off"),
    model("nowhere", provider="gone"),
]


def policy(*, group_ids: tuple[UUID, ...] = (), **more: Any) -> RoutingPolicyRecord:
    values = {"id": new_id(), "name": "p", "strategy": "cost_optimized", **more}
    return RoutingPolicyRecord(**values, group_ids=group_ids)


def compiled(*records: RoutingPolicyRecord) -> Routing:
    return compile_routing(records, PROVIDERS, MODELS)


def only(**more: Any) -> RoutingPolicy:
    result = compiled(policy(**more)).of(())
    assert result is not None
    return result


def names(policy: RoutingPolicy, *needs: str, use: ModelUse = "chat") -> list[str]:
    expected = sum(CAPABILITY_BITS[need] for need in needs)
    return [option.model.model_id for option in policy.pool.capable(expected, use)]


def test_a_policy_chooses_from_the_active_models_of_enabled_providers_by_name() -> None:
    assert names(only()) == ["blind", "eyes", "plain"]


def test_embeddings_use_only_embedding_models() -> None:
    assert names(only(), use="embeddings") == ["vectors"]


@pytest.mark.parametrize(
    ("filters", "left"),
    [
        ({"min_context_window": 8_000}, ["eyes", "plain"]),
        ({"min_context_window": 8_001}, ["eyes"]),
        ({"required_capabilities": ("vision", "json_mode")}, ["eyes"]),
        ({"required_capabilities": ("code_execution",)}, []),
        ({"excluded_models": frozenset({"a/eyes", "plain"})}, ["blind"]),
        ({"included_providers": frozenset({"off"})}, []),
        ({"max_cost_per_1k_input_tokens_usd": Decimal("0.001")}, ["plain"]),
        ({"max_cost_per_1k_input_tokens_usd": Decimal("0.0009")}, []),
    ],
)
def test_filters_select_these_models(filters: dict[str, Any], left: list[str]) -> None:
    assert names(only(model_filters=ModelFilters(**filters))) == left


def test_a_request_gets_the_models_with_the_capabilities_that_it_needs() -> None:
    assert names(only(), "vision") == ["eyes"]


def test_without_models_that_have_a_capability_those_with_unknown_capabilities_are_used() -> None:
    excluded = ModelFilters(excluded_models=frozenset({"a/eyes"}))
    assert names(only(model_filters=excluded), "vision") == ["plain"]


def test_a_chain_is_ordered_by_priority_and_ignores_model_filters() -> None:
    chain = (
        ChainEntry(provider="a", model_id="plain", priority=5),
        ChainEntry(provider="a", model_id="inactive", priority=1),
        ChainEntry(provider="a", model_id="eyes", priority=2),
    )
    result = only(fallback_chain=chain, model_filters=ModelFilters(excluded_models=frozenset({"eyes", "plain"})))
    assert [option.model.model_id for option in result.chain.options] == ["eyes", "plain"]


def test_the_cheapest_model_may_be_in_the_chain() -> None:
    cap = CostCap(max_cost_per_request_usd=Decimal(1), action_on_exceed="use_cheapest")
    filters = ModelFilters(excluded_models=frozenset({"eyes", "plain"}))
    result = only(fallback_chain=(ChainEntry(provider="a", model_id="eyes"),), model_filters=filters, cost_cap=cap)
    assert {option.model.model_id for option in result.every.options} == {"blind", "eyes", "vectors"}


def test_policies_that_choose_from_the_same_models_in_the_same_way_share_them() -> None:
    chain = (ChainEntry(provider="a", model_id="eyes", cost_weight=0.5),)
    filters = ModelFilters(excluded_models=frozenset({"plain"}))
    records = [
        policy(group_ids=(new_id(),), **more)
        for more in (
            {},
            {"fallback_chain": chain},
            {"strategy": "balanced"},
            {"strategy": "balanced", "fallback_chain": chain},
            {"strategy": "quality_optimized", "fallback_chain": chain},
            {"model_filters": filters},
            {"model_filters": ModelFilters(excluded_models=frozenset({"plain"}))},
        )
    ]
    routing = compiled(*records)
    pools = [result.pool for record in records if (result := routing.of(record.group_ids)) is not None]
    alike = [[one is other for other in pools].index(True) for one in pools]
    assert alike == [0, 0, 0, 3, 4, 5, 5]
    assert next(option.model.model_id for option in pools[4].capable(0, "chat")) == "eyes"


def test_a_groups_policy_precedes_the_default() -> None:
    default, own = policy(), policy(group_ids=(GROUPS[0],))
    routing = compiled(default, own)
    results = [routing.of(groups) for groups in ((), (GROUPS[1],), (GROUPS[1], GROUPS[0]))]
    assert [item and item.id for item in results] == [default.id, default.id, own.id]


def test_the_oldest_policy_of_several_groups_applies_in_any_order_of_groups() -> None:
    first, second = policy(group_ids=(GROUPS[1],)), policy(group_ids=(GROUPS[0],))
    routing = compiled(first, second)
    for groups in ((GROUPS[0], GROUPS[1]), (GROUPS[1], GROUPS[0])):
        result = routing.of(groups)
        assert result is not None
        assert result.id == first.id


def test_without_a_default_only_groups_have_a_policy() -> None:
    assert compiled(policy(group_ids=(GROUPS[0],))).of((GROUPS[1],)) is None
