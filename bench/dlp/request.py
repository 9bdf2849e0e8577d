"""What inspection adds to a request: the whole engine over a provider that answers at once, with DLP off and on.

    .venv/bin/python -m bench.dlp.request

A prompt of 1 KB and an answer of 0.8 KB, CPU time, both in turn; the least of the rounds.
"""

import asyncio
import time

from tests.support.engine import TENANT, HeldEngine, completion

PROSE = (
    "Please summarise the attached quarterly report for the leadership team; revenue grew by 12 percent in the third "
    "quarter, while costs stayed flat. "
)
REQUESTS = 200
ROUNDS = 12


class Fixed:
    """A policy that is compiled already, as a worker's is."""

    def __init__(self, snapshot: object) -> None:
        self._snapshot = snapshot

    async def current(self, tenant_id: object) -> object:
        return self._snapshot


async def engine(*, inspected: bool) -> HeldEngine:
    held = HeldEngine(RATE_LIMIT_REQUESTS_PER_MINUTE="100000000")
    held.serve("one", "m")
    held.flags = {"dlp_enabled": inspected}
    held.ports.policies = Fixed(await held.current(TENANT))  # type: ignore[assignment]
    return held


async def cost(held: HeldEngine, raw: bytes, answer: bytes) -> float:
    """CPU microseconds a request."""
    began = time.process_time()
    for _ in range(REQUESTS):
        held.outbound.script = [(200, [answer])]
        held.entries.clear()
        held.outbound.sent.clear()
        held.outbound.replies.clear()
        await held.engine.answer(held.request(raw))
    return (time.process_time() - began) / REQUESTS * 1e6


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
