"""Measures the CPU time that inspection adds to a request.

    .venv/bin/python -m bench.dlp.request

Two complete engines, one without and one with DLP, are measured alternately. Their provider answers immediately. The
prompt has 1 KB, and the answer has 0.8 KB. The minimum of the rounds is printed.
"""

import asyncio

from bench.engine import cost, settled
from tests.support.engine import EngineHarness, completion

PROSE = (
    "Please summarise the attached quarterly report for the leadership team; revenue grew by 12 percent in the third "
    "quarter, while costs stayed flat. "
)
ROUNDS = 12


async def engine(*, inspected: bool) -> EngineHarness:
    harness = EngineHarness(RATE_LIMIT_REQUESTS_PER_MINUTE="100000000")
    harness.serve("one", "m")
    harness.flags = {"dlp_enabled": inspected}
    return await settled(harness)


async def main() -> None:
    text = (PROSE * 10)[:1024]
    body = {"model": "one/m", "messages": [{"role": "user", "content": text}]}
    off, on = await engine(inspected=False), await engine(inspected=True)
    raw, answer = off.request(body).body, completion(text[:800])
    pairs = [(await cost(off, raw, answer), await cost(on, raw, answer)) for _ in range(ROUNDS)]
    without, inspected = (min(costs) for costs in zip(*pairs, strict=True))
    added = inspected - without
    print(f"DLP off {without:.0f} us, on {inspected:.0f} us: {added:.0f} us per request (goal: at most 65)")


if __name__ == "__main__":
    asyncio.run(main())
