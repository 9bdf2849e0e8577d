"""Measures the CPU time that inspection adds to a request.

    .venv/bin/python -m bench.dlp.request

The complete engine runs over a provider that answers at once, with a prompt of 1 KB and an answer of 0.8 KB. DLP is
switched off and on in turn, and the minimum of the rounds is printed.
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
    print(f"DLP off {without:.0f} us, on {inspected:.0f} us: {inspected - without:.0f} us a request (goal: at most 65)")


if __name__ == "__main__":
    asyncio.run(main())
