"""The order of an alias's deployments: shares, tiers, loads, latencies and rests."""

import os
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.routing.deployments.aliases import Ordering, alias_record

from gatehouse.engine.routing.deployments.load import AliasUse
from gatehouse.engine.routing.deployments.order import ordered

REQUESTS = 10_000


def first(ordering: Ordering, conversation: bytes | None = None) -> str:
    return names(ordering, conversation)[0]


def names(ordering: Ordering, conversation: bytes | None = None, *, trial: bool = False) -> list[str]:
    order = ordered(ordering.alias, ordering.alias.live, ordering.view(conversation=conversation, trial=trial))
    return [deployment.candidate.provider.id for deployment in order]


weights = st.lists(st.integers(min_value=1, max_value=1000), min_size=2, max_size=8)


@settings(max_examples=5, deadline=None)
@given(weights, st.floats(min_value=0, max_value=1))
def test_shares_are_exact(values: list[int], start: float) -> None:
    entries = [{"provider": f"p{index}", "weight": weight} for index, weight in enumerate(values)]
    ordering = Ordering(alias_record("fast", *entries), start)
    counts = Counter(first(ordering) for _ in range(REQUESTS))
    for index, weight in enumerate(values):
        assert abs(counts[f"p{index}"] - REQUESTS * weight / sum(values)) <= len(values)


@settings(max_examples=5, deadline=None)
@given(weights)
def test_shares_of_conversations_are_within_two_percent(values: list[int]) -> None:
    entries = [{"provider": f"p{index}", "weight": weight} for index, weight in enumerate(values)]
    ordering = Ordering(alias_record("fast", *entries, sticky=True))
    counts = Counter(first(ordering, number.to_bytes(16)) for number in range(REQUESTS))
    for index, weight in enumerate(values):
        assert abs(counts[f"p{index}"] / REQUESTS - weight / sum(values)) < 0.02


def test_shares_hold_while_deployments_rest_now_and_then() -> None:
    ordering = Ordering(
        alias_record(
            "fast", {"provider": "a", "weight": 70}, {"provider": "b", "weight": 20}, {"provider": "c", "weight": 10}
        )
    )
    counts: Counter[str] = Counter()
    for number in range(REQUESTS):
        # While `c` rests, its requests go to the others in proportion to their weights.
        ordering.resting = {"c"} if number % 200 < 100 else set()
        counts[first(ordering)] += 1
    expected = {"a": (0.7 + 70 / 90) / 2, "b": (0.2 + 20 / 90) / 2, "c": 0.05}
    for name, share in expected.items():
        assert abs(counts[name] / REQUESTS - share) < 0.02


def test_the_next_tier_is_used_only_if_no_deployment_of_the_first_is_available() -> None:
    ordering = Ordering(
        alias_record("fast", {"provider": "b", "tier": 1}, {"provider": "a", "weight": 0}, {"provider": "c", "tier": 1})
    )
    assert {first(ordering) for _ in range(10)} == {"a"}
    ordering.resting = {"a"}
    assert {first(ordering) for _ in range(10)} == {"b", "c"}
    ordering.resting = {"a", "b", "c"}
    # If all deployments rest, the best one is tried.
    assert first(ordering) == "a"


def test_a_full_deployment_comes_after_the_resting_ones() -> None:
    ordering = Ordering(alias_record("fast", {"provider": "a"}, {"provider": "b"}, {"provider": "c", "tier": 1}))
    ordering.full, ordering.resting = {"a"}, {"b"}
    assert names(ordering) == ["c", "b", "a"]


def test_a_deployment_with_the_weight_zero_only_replaces_the_others_of_its_tier() -> None:
    ordering = Ordering(alias_record("fast", {"provider": "a", "weight": 0}, {"provider": "b"}, {"provider": "c"}))
    assert {tuple(names(ordering)) for _ in range(20)} == {("b", "c", "a"), ("c", "b", "a")}
    ordering.resting = {"b", "c"}
    assert first(ordering) == "a"


def test_the_least_busy_deployment_is_first_in_proportion_to_the_weights() -> None:
    ordering = Ordering(
        alias_record("fast", {"provider": "a", "weight": 3}, {"provider": "b", "weight": 1}, balance="least_busy")
    )
    busy: Counter[str] = Counter()
    for _ in range(400):
        deployment = ordered(ordering.alias, ordering.alias.live, ordering.view())[0]
        assert ordering.loads.enter(deployment) is not None
        busy[deployment.candidate.provider.id] += 1
        assert abs(busy["a"] - 3 * busy["b"]) <= 3
    assert busy == {"a": 300, "b": 100}


def test_the_lowest_latency_is_first_and_equal_latencies_share() -> None:
    entries = [{"provider": name} for name in ("a", "b", "c", "d")]
    ordering = Ordering(alias_record("fast", *entries, balance="lowest_latency"))
    ordering.medians = {"a": 500.0, "b": 100.0, "c": 105.0}
    assert first(ordering) == "d", "a deployment of unknown latency is measured"
    ordering.may_try = False
    counts = Counter(first(ordering) for _ in range(100))
    assert counts == {"b": 50, "c": 50}
    assert names(ordering)[2:] == ["a", "d"]


def test_a_conversation_moves_only_while_its_deployment_rests() -> None:
    ordering = Ordering(alias_record("fast", *({"provider": name} for name in ("a", "b", "c")), sticky=True))
    conversations = [os.urandom(16) for _ in range(200)]
    before = {conversation: first(ordering, conversation) for conversation in conversations}
    assert set(before.values()) == {"a", "b", "c"}
    ordering.resting = {"a"}
    during = {conversation: first(ordering, conversation) for conversation in conversations}
    assert all(during[key] == name for key, name in before.items() if name != "a")
    assert {during[key] for key, name in before.items() if name == "a"} == {"b", "c"}
    ordering.resting = set()
    assert {conversation: first(ordering, conversation) for conversation in conversations} == before


@pytest.mark.parametrize("balance", ["weighted", "least_busy", "lowest_latency"])
def test_a_trial_changes_no_share(balance: str) -> None:
    ordering = Ordering(alias_record("fast", {"provider": "a"}, {"provider": "b"}, balance=balance))
    ordering.medians = {"a": 100.0, "b": 100.0}
    following = first(ordering)
    following = "b" if following == "a" else "a"
    assert {names(ordering, trial=True)[0] for _ in range(5)} == {following}
    assert first(ordering) == following


def test_only_named_requests_measure_an_unknown_latency() -> None:
    ordering = Ordering(alias_record("fast", {"provider": "a"}, {"provider": "b"}, balance="lowest_latency"))
    ordering.medians = {"a": 100.0}
    expected: dict[AliasUse, str] = {"named": "b", "fallback": "a", "token_count": "a"}
    for use, name in expected.items():
        assert ordered(ordering.alias, ordering.alias.live, ordering.view(use=use))[0].candidate.provider.id == name
