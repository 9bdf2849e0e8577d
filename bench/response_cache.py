"""Measures the CPU time that the response cache adds to or saves for a request: `.venv/bin/python -m
bench.response_cache` (from the root of the repository).

One engine runs in this process over a provider that answers at once, with and without inspection. The CPU microseconds
per request are printed, as the minimum of several rounds. Over a real network, a hit saves more than here.
"""

import asyncio
import json
from typing import Final

from bench.engine import cost, settled
from tests.support.engine import EngineHarness, completion
from tests.support.redis import redis_server

from gatehouse.engine.ports import NoCache, ResponseCache
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.response_cache.memory import MemoryCache
from gatehouse.foundation.response_cache.shared import RedisCache
from gatehouse.policy.catalog import RoutingPolicyRecord

ROUNDS: Final = 50


async def engine(cache: ResponseCache, *, seconds: int | None, dlp: bool) -> EngineHarness:
    harness = EngineHarness(RATE_LIMIT_REQUESTS_PER_MINUTE="1000000000")
    harness.serve("one", "m")
    harness.flags = {"dlp_enabled": dlp}
    harness.routing_policies = (
        RoutingPolicyRecord(id=new_id(), name="p", strategy="cost_optimized", cache_ttl_seconds=seconds),
    )
    harness.ports.cache = cache
    return await settled(harness)


async def main() -> None:
    print(f"{'CPU us per request':24}{'off':>8}{'miss':>8}{'hit':>8}{'hit, Redis':>12}")
    with redis_server() as server:
        shared = RedisCache(server.url, b"s" * 32, 2**26, timeout=5.0)
        await shared.start()
        for size in (1_000, 10_000):
            text = ("Good morning, and what is new? " * (size // 31 + 1))[:size]
            raw = json.dumps({"model": "one/m", "messages": [{"role": "user", "content": text}]}).encode()
            for dlp in (False, True):
                columns = [
                    await engine(NoCache(), seconds=None, dlp=dlp),
                    await engine(NoCache(), seconds=60, dlp=dlp),
                    await engine(MemoryCache(2**26), seconds=60, dlp=dlp),
                    await engine(shared, seconds=60, dlp=dlp),
                ]
                results = [await best(column, raw, completion(text)) for column in columns]
                name = f"{size // 1_000} KB{', inspected' if dlp else ''}"
                print(f"{name:24}{results[0]:8.0f}{results[1]:8.0f}{results[2]:8.0f}{results[3]:12.0f}")
        await shared.close()


async def best(harness: EngineHarness, raw: bytes, answer: bytes) -> float:
    return min([await cost(harness, raw, answer) for _ in range(ROUNDS)])


if __name__ == "__main__":
    asyncio.run(main())
