"""One engine in this process, over a provider that answers at once: what a stage costs a request."""

import time

from tests.support.engine import TENANT, HeldEngine

#: few, so that some round is one that nothing else on the machine disturbs
REQUESTS = 40


class Fixed:
    """A policy that is compiled already, as a worker's is."""

    def __init__(self, snapshot: object) -> None:
        self._snapshot = snapshot

    async def current(self, tenant_id: object) -> object:
        return self._snapshot


async def settled(held: HeldEngine) -> HeldEngine:
    """With the policy that its records come to, and without a limit on requests."""
    held.ports.policies = Fixed(await held.current(TENANT))  # type: ignore[assignment]
    return held


async def cost(held: HeldEngine, raw: bytes, answer: bytes) -> float:
    """CPU microseconds a request, of this thread."""
    began = time.thread_time()
    for _ in range(REQUESTS):
        held.outbound.script = [(200, [answer])]
        held.entries.clear()
        held.outbound.sent.clear()
        held.outbound.replies.clear()
        told = await held.engine.answer(held.request(raw))
        assert told.status == 200, told.body
    return (time.thread_time() - began) / REQUESTS * 1e6
