"""The limits of deployments over several workers: no deployment gets more than its limit from all of them together."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.engine.routing.deployments.aliases import alias_record
from tests.support.engine import EngineHarness, completion, events
from tests.support.redis import RedisServer, redis_server

from gatehouse.engine.exchange import Answer
from gatehouse.foundation.counters.memory import MemoryCounters
from gatehouse.foundation.counters.shared import RedisCounters
from gatehouse.policy.catalog import ModelAliasRecord

MESSAGE = {"role": "user", "content": "Hi"}
INPUT_TOKENS, OUTPUT_TOKENS = 5, 5
#: A new alias has a key of its own in Redis.
NUMBERS = count()


class Worker:
    """One of several workers with the alias `fast`. The provider `two` has no limits, and is used if `one` is full."""

    def __init__(self, alias: ModelAliasRecord, workers: int, number: int) -> None:
        self.alias = alias.name
        self.harness = EngineHarness(RATE_LIMIT_REQUESTS_PER_MINUTE="100000")
        for name in ("one", "two"):
            self.harness.serve(name, "m")
        self.harness.model_aliases = (alias,)
        self.harness.ports.workers, self.harness.ports.worker = workers, number

    async def send(self, *, stream: bool = False, max_tokens: int = 20) -> Answer:
        usage = (INPUT_TOKENS, min(OUTPUT_TOKENS, max_tokens))
        reply = (200, events("a", usage=usage)) if stream else (200, [completion(usage=usage)])
        self.harness.outbound.script.append(reply)
        body = {"model": self.alias, "messages": [MESSAGE], "stream": stream, "max_tokens": max_tokens}
        answer = await self.harness.engine.answer(self.harness.request(body))
        assert answer.status == 200
        return answer


def alias(**limits: int) -> ModelAliasRecord:
    return alias_record(f"fast-{next(NUMBERS)}", {"provider": "one", **limits}, {"provider": "two", "tier": 1})


def provider_of(answer: Answer) -> str:
    return answer.headers["X-Gateway-Provider"]


#: for each request: the worker, the seconds before it, whether it is a stream that stays open, and its output limit
arrivals = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from([0.0, 0.0, 0.5, 20.0, 60.5]), st.booleans(), st.integers(1, 40)),
    min_size=10,
    max_size=60,
)


@settings(max_examples=25)
@given(
    st.integers(2, 4),
    st.fixed_dictionaries(
        {
            "requests_per_minute": st.integers(1, 12),
            "tokens_per_minute": st.integers(1, 600),
            "max_concurrent_requests": st.integers(1, 8),
        }
    ),
    arrivals,
)
async def test_the_parts_of_all_workers_do_not_exceed_a_limit(
    workers: int, limits: dict[str, int], requests: Sequence[tuple[int, float, bool, int]]
) -> None:
    record = alias(**limits)
    fleet = [Worker(record, workers, number) for number in range(workers)]
    now = 0.0
    #: time and tokens of each request to `one`
    admitted: list[tuple[float, int]] = []
    streams: list[AsyncIterator[bytes]] = []
    for number, pause, is_stream, max_tokens in requests:
        now += pause
        if streams and pause >= 20:
            async for _ in streams.pop(0):
                pass
        for worker in fleet:
            worker.harness.clock.move(pause)
        answer = await fleet[number % workers].send(stream=is_stream, max_tokens=max_tokens)
        if provider_of(answer) == "one":
            admitted.append((now, INPUT_TOKENS + min(OUTPUT_TOKENS, max_tokens)))
            if answer.stream is not None:
                streams.append(answer.stream)
        in_minute = [tokens for time, tokens in admitted if time > now - 60]
        assert len(in_minute) <= limits["requests_per_minute"]
        assert sum(in_minute) <= limits["tokens_per_minute"]
        assert len(streams) <= limits["max_concurrent_requests"]
    for stream in streams:
        async for _ in stream:
            pass


@pytest.fixture(scope="module")
def redis() -> Iterator[RedisServer]:
    with redis_server() as server:
        yield server


@asynccontextmanager
async def fleet_with_redis(server: RedisServer, record: ModelAliasRecord, workers: int) -> AsyncIterator[list[Worker]]:
    """Return workers that count in one Redis, each over a connection of its own."""
    async with AsyncExitStack() as stack:
        fleet = [Worker(record, workers, number) for number in range(workers)]
        for worker in fleet:
            # A long timeout, so that the result does not depend on the load of the machine.
            counters = RedisCounters(server.url, MemoryCounters(), timeout=20)
            await counters.start()
            stack.push_async_callback(counters.close)
            worker.harness.ports.counters = counters
        yield fleet


async def providers(fleet: list[Worker], requests: int) -> Counter[str]:
    """Send the requests at once, to the workers in turn. Return the number of requests of each provider."""
    answers = await asyncio.gather(*(fleet[number % len(fleet)].send() for number in range(requests)))
    return Counter(map(provider_of, answers))


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(1, 4), st.integers(1, 40), st.integers(1, 60))
async def test_with_redis_all_workers_together_use_the_whole_limit_and_no_more(
    redis: RedisServer, workers: int, limit: int, requests: int
) -> None:
    async with fleet_with_redis(redis, alias(requests_per_minute=limit), workers) as fleet:
        counts = await providers(fleet, requests)
        assert counts["one"] == min(limit, requests)
        assert counts["two"] == max(requests - limit, 0)


async def test_while_redis_is_unavailable_each_worker_admits_its_part() -> None:
    with redis_server() as server:
        async with fleet_with_redis(server, alias(requests_per_minute=10), 4) as fleet:
            server.kill()
            # The first requests of each worker are sent at once, and notice the failure. Redis does not count them.
            counts = await providers(fleet, 12) + await providers(fleet, 40)
            # The parts of the workers are 2 or 3.
            assert counts["one"] == 10


async def test_while_redis_is_unavailable_a_limit_below_the_number_of_workers_is_not_exceeded() -> None:
    with redis_server() as server:
        async with fleet_with_redis(server, alias(requests_per_minute=2), 4) as fleet:
            server.kill()
            counts = await providers(fleet, 12) + await providers(fleet, 40)
            assert counts["one"] == 2


@pytest.mark.parametrize("field", ["requests_per_minute", "max_concurrent_requests"])
@pytest.mark.parametrize("limit", [1, 2, 3, 5, 8])
async def test_all_workers_together_use_the_whole_limit(field: str, limit: int) -> None:
    record = alias(**{field: limit})
    answers = []
    for number in range(4):
        worker = Worker(record, 4, number)
        # The streams stay open.
        answers += [await worker.send(stream=True) for _ in range(limit)]
    assert Counter(map(provider_of, answers))["one"] == limit
    for answer in answers:
        assert answer.stream is not None
        async for _ in answer.stream:
            pass


async def test_limits_of_one_are_spread_over_the_workers() -> None:
    admitting: Counter[int] = Counter()
    for _ in range(40):
        record = alias(requests_per_minute=1)
        for number in range(4):
            admitting[number] += provider_of(await Worker(record, 4, number).send()) == "one"
    assert admitting.total() == 40
    assert min(admitting.values()) > 2
