"""Requests to model aliases through the whole engine."""

import asyncio
from collections import Counter
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from tests.engine.routing.deployments.aliases import alias_record
from tests.support.engine import EngineHarness, completion, events

from gatehouse.engine.exchange import Answer
from gatehouse.policy.catalog import ChainEntry, CostCap, RoutingPolicyRecord
from gatehouse.policy.model_access import ModelAccessRecord

OK = (200, [completion()])
FAILED = (500, [b"{}"])
LIMITED = (429, [b"{}"])


@pytest.fixture
def harness() -> EngineHarness:
    harness = EngineHarness(RATE_LIMIT_REQUESTS_PER_MINUTE="100000")
    for name in ("one", "two", "three"):
        harness.serve(name, "m")
    return harness


def body(**fields: Any) -> dict[str, Any]:
    return {"model": "fast", "messages": [{"role": "user", "content": "Hi"}], **fields}


async def ask(harness: EngineHarness, *script: Any, **fields: Any) -> tuple[Answer, list[str]]:
    """Return the answer to one request, and the providers that were called, in order."""
    harness.outbound.script = list(script)
    harness.outbound.sent.clear()
    answer = await harness.engine.answer(harness.request(body(**fields)))
    if answer.stream is not None:
        async for _ in answer.stream:
            pass
    assert harness.outbound.script == []
    return answer, [request.url.removeprefix("http://").partition(".")[0] for request in harness.outbound.sent]


async def shares(harness: EngineHarness, requests: int, **fields: Any) -> Counter[str]:
    counts: Counter[str] = Counter()
    for _ in range(requests):
        answer, called = await ask(harness, OK, **fields)
        assert answer.status == 200
        counts.update(called)
    return counts


async def test_requests_are_shared_by_weight_and_recorded_with_the_alias(harness: EngineHarness) -> None:
    harness.model_aliases = (alias_record("fast", {"provider": "one", "weight": 3}, {"provider": "two", "weight": 1}),)
    assert await shares(harness, 40) == {"one": 30, "two": 10}
    answer, (called,) = await ask(harness, OK)
    assert answer.headers["X-Gateway-Provider"] == called
    assert b'"model":"fast"' in answer.body.replace(b" ", b"")
    outcome = harness.outcomes[-1]
    assert (outcome.model_alias, outcome.requested_model, outcome.provider) == ("fast", "fast", called)
    assert outcome.fallbacks == 0


async def test_an_alias_hides_a_bare_model_id_but_no_full_name(harness: EngineHarness) -> None:
    harness.model_aliases = (alias_record("m", {"provider": "two"}),)
    assert (await ask(harness, OK, model="m"))[1] == ["two"]
    assert (await ask(harness, OK, model="one/m"))[1] == ["one"]
    assert harness.outcomes[-1].model_alias is None


async def test_an_alias_without_deployments_is_an_unknown_model(harness: EngineHarness) -> None:
    harness.model_aliases = (alias_record("m", {"provider": "none"}),)
    answer, called = await ask(harness, model="m")
    assert (answer.status, called) == (404, [])


async def test_each_deployment_needs_access(harness: EngineHarness) -> None:
    assert harness.caller is not None
    group = harness.caller.user_id
    assert group is not None
    harness.caller = msgspec.structs.replace(harness.caller, groups=(group,))
    harness.model_aliases = (alias_record("fast", {"provider": "one"}, {"provider": "two"}),)
    harness.model_access = (ModelAccessRecord(group_id=group, model="one/m", access_type="DENY"),)
    assert await shares(harness, 10) == {"two": 10}
    harness.model_access += (ModelAccessRecord(group_id=group, model="two/m", access_type="DENY"),)
    answer, called = await ask(harness)
    assert (answer.status, called) == (404, [])


async def test_a_failed_deployment_is_replaced_within_the_request(harness: EngineHarness) -> None:
    harness.model_aliases = (alias_record("fast", {"provider": "one"}, {"provider": "two", "tier": 1}),)
    answer, called = await ask(harness, FAILED, OK)
    assert (answer.status, called, answer.headers["X-Gateway-Fallbacks"]) == (200, ["one", "two"], "1")


async def test_a_429_moves_this_request_and_the_next_ones_away(harness: EngineHarness) -> None:
    harness.providers.clear()
    harness.serve("one", max_retries=2)
    harness.serve("two", max_retries=2)
    harness.model_aliases = (alias_record("fast", {"provider": "one"}, {"provider": "two", "tier": 1}),)
    # A 429 is not retried.
    assert (await ask(harness, LIMITED, OK))[1] == ["one", "two"]
    assert (await ask(harness, OK))[1] == ["two"]
    harness.clock.move(1.1)
    assert (await ask(harness, OK))[1] == ["one"]


async def test_refused_credentials_move_the_next_requests_away(harness: EngineHarness) -> None:
    harness.model_aliases = (alias_record("fast", {"provider": "one"}, {"provider": "two", "tier": 1}),)
    assert (await ask(harness, (401, [b"{}"]), OK))[1] == ["one", "two"]
    assert (await ask(harness, OK))[1] == ["two"]
    harness.clock.move(10.1)
    assert (await ask(harness, OK))[1] == ["one"]


async def test_an_open_circuit_moves_requests_until_one_probe_succeeds(harness: EngineHarness) -> None:
    harness.model_aliases = (alias_record("fast", {"provider": "one"}, {"provider": "two", "tier": 1}),)
    for _ in range(5):
        assert (await ask(harness, FAILED, OK))[1] == ["one", "two"]
    for _ in range(3):
        answer, called = await ask(harness, OK)
        assert (called, answer.headers["X-Gateway-Fallbacks"]) == (["two"], "0")
    harness.clock.move(10.1)
    assert (await ask(harness, OK))[1] == ["one"]
    assert (await ask(harness, OK))[1] == ["one"]


async def test_nobody_is_refused_because_all_circuits_are_open(harness: EngineHarness) -> None:
    harness.model_aliases = (alias_record("fast", {"provider": "one"}, {"provider": "two", "tier": 1}),)
    for _ in range(5):
        await ask(harness, FAILED, FAILED)
    answer, called = await ask(harness, OK)
    assert (answer.status, called) == (200, ["one"])


async def test_requests_per_minute_hold_and_the_rest_goes_elsewhere(harness: EngineHarness) -> None:
    harness.model_aliases = (
        alias_record(
            "fast",
            {"provider": "one", "requests_per_minute": 3},
            {"provider": "two", "tier": 1, "requests_per_minute": 2},
        ),
    )
    assert await shares(harness, 5) == {"one": 3, "two": 2}
    answer, called = await ask(harness)
    assert (answer.status, called) == (429, [])
    assert answer.headers["Retry-After"] == "60"
    assert harness.outcomes[-1].error_code == "deployments_full"
    harness.clock.move(60.2)
    assert (await ask(harness, OK))[1] == ["one"]


async def test_requests_in_progress_hold_and_end_with_the_stream(harness: EngineHarness) -> None:
    harness.model_aliases = (
        alias_record("fast", {"provider": "one", "max_concurrent_requests": 1}, {"provider": "two", "tier": 1}),
    )
    harness.outbound.script = [(200, events("a")), OK]
    first = await harness.engine.answer(harness.request(body(stream=True)))
    second = await harness.engine.answer(harness.request(body()))
    assert (first.headers["X-Gateway-Provider"], second.headers["X-Gateway-Provider"]) == ("one", "two")
    assert first.stream is not None
    await first.stream.aclose()  # type: ignore[attr-defined]
    # The request of a client that has left is settled in the background.
    await asyncio.sleep(0)
    assert (await ask(harness, OK))[1] == ["one"]
    harness.model_aliases = (alias_record("fast", {"provider": "one", "max_concurrent_requests": 1}),)
    harness.stop.at = "connecting"
    waiting = asyncio.create_task(harness.engine.answer(harness.request(body())))
    await harness.stop.reached.wait()
    harness.stop.at = None
    answer, called = await ask(harness)
    assert (answer.status, answer.headers["Retry-After"], called) == (429, "1", [])
    # The place of a request whose client leaves is free again.
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await asyncio.sleep(0)
    assert (await ask(harness, OK))[1] == ["one"]


async def test_tokens_per_minute_hold_and_are_corrected_by_the_usage(harness: EngineHarness) -> None:
    harness.model_aliases = (
        alias_record("fast", {"provider": "one", "tokens_per_minute": 200}, {"provider": "two", "tier": 1}),
    )
    expensive = (200, [completion(usage=(50, 100))])
    # Each request is expected to use some 20 tokens of input and 50 of output, and uses 150.
    assert (await ask(harness, expensive, max_tokens=50))[1] == ["one"]
    assert (await ask(harness, OK, max_tokens=50))[1] == ["two"]
    harness.clock.move(61.1)
    # A request that uses less than expected leaves room for others.
    for _ in range(5):
        assert (await ask(harness, OK, max_tokens=50))[1] == ["one"]
    assert (await ask(harness, OK, max_tokens=500))[1] == ["two"]


async def test_each_worker_admits_its_part_of_the_limits(harness: EngineHarness) -> None:
    harness.ports.workers = 4
    harness.model_aliases = (
        alias_record("fast", {"provider": "one", "requests_per_minute": 8}, {"provider": "two", "tier": 1}),
    )
    assert await shares(harness, 5) == {"one": 2, "two": 3}


async def test_a_worker_without_a_part_of_a_limit_uses_the_deployment_again_once_redis_is_back(
    harness: EngineHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness.ports.workers = 4
    harness.model_aliases = (
        alias_record("fast", {"provider": "one", "requests_per_minute": 8}, {"provider": "two", "tier": 1}),
    )
    take = harness.ports.counters.take
    with monkeypatch.context() as away:
        away.setattr(
            harness.ports.counters,
            "take",
            lambda key, limit, **_: take(key, limit, own_limit=0 if key.startswith("deployment:") else None),
        )
        assert await shares(harness, 1) == {"two": 1}
    assert await shares(harness, 1) == {"one": 1}


async def test_a_conversation_stays_at_its_deployment(harness: EngineHarness) -> None:
    harness.model_aliases = (
        alias_record("fast", *({"provider": name} for name in ("one", "two", "three")), sticky=True),
    )
    deployments = set()
    for number in range(20):
        messages: list[dict[str, Any]] = [
            {"role": "system", "content": "Answer briefly."},
            {"role": "user", "content": f"Question {number}"},
        ]
        called = set()
        for _ in range(3):
            called.update((await ask(harness, OK, messages=messages))[1])
            messages = [*messages, {"role": "assistant", "content": "Hello"}, {"role": "user", "content": "And?"}]
        assert len(called) == 1
        deployments |= called
    assert deployments == {"one", "two", "three"}
    # The key of the caller replaces the conversation.
    called = set()
    for number in range(20):
        messages = [{"role": "user", "content": f"Question {number}"}]
        called.update((await ask(harness, OK, messages=messages, prompt_cache_key="a"))[1])
    assert len(called) == 1


async def test_an_alias_can_be_a_fallback_and_have_fallbacks(harness: EngineHarness) -> None:
    harness.model_aliases = (alias_record("fast", {"provider": "two"}),)
    answer, called = await ask(harness, FAILED, OK, model="one/m", fallbacks=["fast"])
    assert (answer.status, called, answer.headers["X-Gateway-Fallbacks"]) == (200, ["one", "two"], "1")
    assert harness.outcomes[-1].model_alias == "fast"
    answer, called = await ask(harness, FAILED, OK, fallbacks=["three/m"])
    assert (answer.status, called, answer.headers["X-Gateway-Fallbacks"]) == (200, ["two", "three"], "1")
    assert harness.outcomes[-1].model_alias is None


async def test_the_chain_of_a_routing_policy_follows_the_deployments(harness: EngineHarness) -> None:
    harness.model_aliases = (
        alias_record(
            "fast", {"provider": "one", "weight": 3}, {"provider": "two", "weight": 1, "requests_per_minute": 1}
        ),
    )
    harness.routing_policies = (
        RoutingPolicyRecord(
            id=alias_record().id,
            name="Default",
            strategy="manual_fallback",
            fallback_chain=(ChainEntry(provider="three", model_id="m"),),
        ),
    )
    assert await shares(harness, 8) == {"one": 7, "two": 1}
    assert (await ask(harness, FAILED, OK))[1] == ["one", "three"]


@pytest.mark.parametrize("other", ["token_count", "fallback"])
async def test_token_counts_and_fallbacks_do_not_change_the_shares_of_requests(
    harness: EngineHarness, other: str
) -> None:
    harness.model_aliases = (
        alias_record("fast", {"provider": "one"}, {"provider": "two"}),
        alias_record("first", {"provider": "three"}),
    )
    counts: Counter[str] = Counter()
    for _ in range(20):
        if other == "token_count":
            answer = await harness.engine.answer(harness.request(body(), dialect="anthropic_token_count"))
            assert answer.status == 200
        else:
            await ask(harness, OK, model="first", fallbacks=["fast"])
        counts.update((await ask(harness, OK))[1])
    assert counts == {"one": 10, "two": 10}


@pytest.mark.parametrize("action", ["block", "use_cheapest"])
async def test_a_deployment_within_the_cost_cap_replaces_a_more_expensive_one(
    harness: EngineHarness, action: Any
) -> None:
    harness.models[0] = msgspec.structs.replace(
        harness.models[0], cost_per_input_token=Decimal(1), cost_per_output_token=Decimal(1)
    )
    harness.model_aliases = (alias_record("fast", {"provider": "one", "weight": 9}, {"provider": "two"}),)
    harness.routing_policies = (
        RoutingPolicyRecord(
            id=alias_record().id,
            name="Default",
            strategy="cost_optimized",
            cost_cap=CostCap(max_cost_per_request_usd=Decimal("0.01"), action_on_exceed=action),
        ),
    )
    assert await shares(harness, 10) == {"two": 10}
    harness.model_aliases = (alias_record("fast", {"provider": "one"}),)
    answer, called = await ask(harness, *([] if action == "block" else [OK]))
    assert (answer.status, "one" in called) == (402 if action == "block" else 200, False)
