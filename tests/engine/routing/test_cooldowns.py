"""After a provider reports an exhausted rate limit, the next requests try its model last."""

from typing import Any

import pytest
from tests.support.clock import HandClock
from tests.support.engine import TENANT, EngineHarness, completion, events

from gatehouse.engine.routing.circuits import CircuitKey
from gatehouse.engine.routing.cooldowns import (
    DEFAULT_COOLDOWN_SECONDS,
    MAX_COOLDOWN_SECONDS,
    MAX_COOLDOWNS,
    Cooldowns,
)
from gatehouse.engine.run import Engine
from gatehouse.foundation.processes.shared_times import SharedTimes

CHAT: dict[str, Any] = {
    "model": "one/m", "fallbacks": ["two/n"], "messages": [{"role": "user", "content": "Hi"}],
}  # fmt: skip
OK = (200, [completion()])
KEY = CircuitKey(TENANT, "one", "m")


@pytest.fixture
def harness() -> EngineHarness:
    harness = EngineHarness(RATE_LIMIT_REQUESTS_PER_MINUTE="1000")
    harness.serve("one", "m")
    harness.serve("two", "n")
    return harness


async def ask(harness: EngineHarness, *script: Any, body: dict[str, Any] = CHAT) -> list[str]:
    """Return the hosts that were called for one request, in order."""
    harness.outbound.script = list(script)
    harness.outbound.sent.clear()
    answer = await harness.engine.answer(harness.request(body))
    if answer.stream is not None:
        async for _ in answer.stream:
            pass
    assert answer.status == 200
    assert harness.outbound.script == []
    return ["one" if "one" in request.url else "two" for request in harness.outbound.sent]


@pytest.mark.parametrize(
    ("headers", "seconds"), [({"retry-after": "7"}, 7.0), ({}, DEFAULT_COOLDOWN_SECONDS), ({"retry-after": "9999"}, 60)]
)
async def test_a_429_moves_the_next_requests_to_the_other_model(
    harness: EngineHarness, headers: dict[str, str], seconds: float
) -> None:
    assert await ask(harness, (429, [b"{}"], headers), OK) == ["one", "two"]
    assert await ask(harness, OK) == ["two"]
    harness.clock.move(seconds - 0.01)
    assert await ask(harness, OK) == ["two"]
    harness.clock.move(0.02)
    assert await ask(harness, OK) == ["one"]


@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_that_exhausts_the_limit_moves_the_next_requests_too(
    harness: EngineHarness, stream: bool
) -> None:
    body = {**CHAT, "stream": stream}
    pieces = events("Hel", "lo") if stream else [completion()]
    headers = {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "2s"}
    assert await ask(harness, (200, pieces, headers), body=body) == ["one"]
    assert await ask(harness, (200, pieces), body=body) == ["two"]
    harness.clock.move(2.01)
    assert await ask(harness, (200, pieces), body=body) == ["one"]


async def test_a_model_without_another_is_called_in_its_cooldown(harness: EngineHarness) -> None:
    alone = {**CHAT, "fallbacks": []}
    headers = {"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "30s"}
    assert await ask(harness, (200, [completion()], headers), body=alone) == ["one"]
    assert await ask(harness, OK, body=alone) == ["one"]


async def test_the_model_in_a_cooldown_is_tried_when_all_others_fail(harness: EngineHarness) -> None:
    assert await ask(harness, (429, [b"{}"], {"retry-after": "7"}), OK) == ["one", "two"]
    assert await ask(harness, (401, [b"{}"]), OK) == ["two", "one"]


async def test_an_unhealthy_provider_comes_after_a_cooldown(harness: EngineHarness) -> None:
    assert await ask(harness, (429, [b"{}"], {"retry-after": "7"}), OK) == ["one", "two"]
    harness.unhealthy.add("two")
    assert await ask(harness, OK) == ["one"]


def test_the_number_of_cooldowns_is_bounded() -> None:
    clock = HandClock()
    cooldowns = Cooldowns(clock)
    for number in range(MAX_COOLDOWNS + 5):
        cooldowns.begin(CircuitKey(TENANT, "one", str(number)), MAX_COOLDOWN_SECONDS)
    assert len(cooldowns) == MAX_COOLDOWNS
    assert not cooldowns.is_cooling(CircuitKey(TENANT, "one", "4"))
    assert cooldowns.is_cooling(CircuitKey(TENANT, "one", "5"))


def test_an_ended_cooldown_is_forgotten() -> None:
    clock = HandClock()
    cooldowns = Cooldowns(clock)
    cooldowns.begin(KEY, 5.0)
    assert cooldowns.is_cooling(KEY)
    clock.move(5.0)
    assert not cooldowns.is_cooling(KEY)
    assert len(cooldowns) == 0


async def test_workers_share_cooldowns(harness: EngineHarness) -> None:
    other = EngineHarness(RATE_LIMIT_REQUESTS_PER_MINUTE="1000")
    other.clock = other.ports.clock = harness.clock
    other.ports.shared_cooldowns = harness.ports.shared_cooldowns
    other.engine = Engine(other.ports)
    other.serve("one", "m")
    other.serve("two", "n")
    assert await ask(harness, (429, [b"{}"], {"retry-after": "7"}), OK) == ["one", "two"]
    assert await ask(other, OK) == ["two"]
    harness.clock.move(7.1)
    assert await ask(other, OK) == ["one"]


def test_cooldowns_of_another_purpose_or_key_are_separate() -> None:
    clock, shared = HandClock(), SharedTimes()
    first, same, other = (Cooldowns(clock, shared, purpose) for purpose in ("model", "model", "credential"))
    first.begin(KEY, 5)
    assert (same.seconds_left(KEY), other.seconds_left(KEY)) == (pytest.approx(5), 0)
    assert not same.is_cooling(KEY.connections)
    assert bool(same)
    same.begin(KEY, 2)
    clock.move(5)
    assert not any(cooldowns.is_cooling(KEY) for cooldowns in (first, same, other))
    assert not any((same, other))
