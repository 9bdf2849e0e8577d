"""Budgets have their place in the pipeline, and a feature flag that takes them out of force."""

import pytest
from tests.support.engine import HeldEngine, completion

from gatehouse.engine.exchange import Admitted, Answered
from gatehouse.foundation.errors import Refusal, TooManyRequests
from gatehouse.foundation.identity import Caller

CHAT = {"model": "acme/m", "messages": [{"role": "user", "content": "hi"}]}


class Spent(HeldEngine):
    """`at` is where the host refuses: nothing is left, or what is left is too little."""

    at = ""
    settled = 0

    def exhausted(self, caller: Caller) -> Refusal | None:
        return TooManyRequests() if self.at == "exhausted" else None

    async def reserve(self, x: Admitted) -> Refusal | None:
        return TooManyRequests() if self.at == "reserve" else None

    async def settle(self, x: Answered) -> None:
        self.settled += 1


@pytest.mark.parametrize("at", ["exhausted", "reserve"])
async def test_without_budget_enforcement_what_a_budget_refuses_passes_and_is_settled(at: str) -> None:
    held = Spent()
    held.at = at
    held.serve("acme", "m")
    assert (await held.engine.answer(held.request(CHAT))).status == 429
    held.flags = {"budget_enforcement": False}
    held.outbound.script = [(200, [completion()])]
    before = held.settled
    assert (await held.engine.answer(held.request(CHAT))).status == 200
    assert held.settled == before + 1
