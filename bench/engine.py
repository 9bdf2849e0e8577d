"""Runs one engine in this process over a provider that answers at once, to measure the cost of a request."""

import time

from tests.support.engine import TENANT, EngineHarness

#: requests of a round; few, so that at least one round is not disturbed by other work on the machine
REQUESTS = 40


class Fixed:
    """A source of policies that always returns the same compiled policy, as in a worker."""

    def __init__(self, snapshot: object) -> None:
        self._snapshot = snapshot

    async def current(self, tenant_id: object) -> object:
        return self._snapshot


async def settled(harness: EngineHarness) -> EngineHarness:
    """Return the harness with its policy compiled once, and without a rate limit."""
    harness.ports.policies = Fixed(await harness.current(TENANT))  # type: ignore[assignment]
    return harness


async def cost(harness: EngineHarness, raw: bytes, answer: bytes) -> float:
    """Return the CPU time of this thread per request, in microseconds."""
    began = time.thread_time()
    for _ in range(REQUESTS):
        harness.outbound.script = [(200, [answer])]
        harness.entries.clear()
        harness.outbound.sent.clear()
        harness.outbound.replies.clear()
        result = await harness.engine.answer(harness.request(raw))
        assert result.status == 200, result.body
    return (time.thread_time() - began) / REQUESTS * 1e6
