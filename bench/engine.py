"""One engine in this process, over a provider that answers at once: what a stage costs a request."""

import time

from tests.support.engine import TENANT, EngineHarness

#: few, so that some round is one that nothing else on the machine disturbs
REQUESTS = 40


class Fixed:
    """A policy that is compiled already, as a worker's is."""

    def __init__(self, snapshot: object) -> None:
        self._snapshot = snapshot

    async def current(self, tenant_id: object) -> object:
        return self._snapshot


async def settled(harness: EngineHarness) -> EngineHarness:
    """With the policy that its records come to, and without a limit on requests."""
    harness.ports.policies = Fixed(await harness.current(TENANT))  # type: ignore[assignment]
    return harness


async def cost(harness: EngineHarness, raw: bytes, answer: bytes) -> float:
    """CPU microseconds a request, of this thread."""
    began = time.thread_time()
    for _ in range(REQUESTS):
        harness.outbound.script = [(200, [answer])]
        harness.entries.clear()
        harness.outbound.sent.clear()
        harness.outbound.replies.clear()
        result = await harness.engine.answer(harness.request(raw))
        assert result.status == 200, result.body
    return (time.thread_time() - began) / REQUESTS * 1e6
