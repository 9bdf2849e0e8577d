"""Budgets in the pipeline, and the feature flag that disables them."""

import json
from collections.abc import Sequence
from decimal import Decimal
from uuid import UUID

import msgspec
import pytest
from tests.support.engine import TENANT, EngineHarness, NothingReserved, completion

from gatehouse.engine.ports import Reserved
from gatehouse.foundation.errors import Refusal, TooManyRequests
from gatehouse.policy.budgets import Budget, BudgetRecord, CallAmounts

CHAT = {"model": "acme/m", "messages": [{"role": "user", "content": "hi"}]}


class Spent(EngineHarness):
    """A host whose budgets refuse at the step `at`: because nothing is left, or because too little is left."""

    def __init__(self, at: str = "", **limits: int | Decimal) -> None:
        super().__init__()
        self.at = at
        self.reserved: list[CallAmounts] = []
        self.settled: list[CallAmounts | None] = []
        self.serve("acme", "m")
        self.budgets = (
            BudgetRecord(id=TENANT, scope_type="tenant", scope_id=TENANT, period="month", **limits),  # type: ignore[arg-type]
        )

    def exhausted(self, budgets: Sequence[Budget]) -> Refusal | None:
        return TooManyRequests() if self.at == "exhausted" else None

    async def reserve(
        self,
        budgets: Sequence[Budget],
        taking: CallAmounts,
        *,
        enforced: bool,
        user_id: UUID | None = None,
        announce: bool = True,
    ) -> Reserved:
        if self.at == "reserve" and enforced:
            raise TooManyRequests
        self.reserved.append(taking)
        return NothingReserved()

    def settle(self, reserved: Reserved, spent: CallAmounts | None) -> None:
        self.settled.append(spent)


@pytest.mark.parametrize("at", ["exhausted", "reserve"])
async def test_without_budget_enforcement_a_refused_call_passes_and_is_settled(at: str) -> None:
    harness = Spent(at, limit_requests=1)
    assert (await harness.engine.answer(harness.request(CHAT))).status == 429
    assert harness.settled == []
    harness.flags = {"budget_enforcement": False}
    harness.outbound.script = [(200, [completion()])]
    assert (await harness.engine.answer(harness.request(CHAT))).status == 200
    assert len(harness.settled) == 1


async def test_a_failed_call_releases_its_whole_reservation() -> None:
    harness = Spent(limit_requests=1)
    harness.outbound.script = [(500, [b"{}"])]
    assert (await harness.engine.answer(harness.request(CHAT))).status == 502
    assert (harness.reserved, harness.settled) == ([CallAmounts(requests=1)], [None])


async def test_the_reservation_bounds_the_used_amount() -> None:
    harness = Spent(limit_tokens=10**9, limit_usd=Decimal(100))
    harness.outbound.script = [(200, [completion()])]
    assert (await harness.engine.answer(harness.request(CHAT))).status == 200
    (reserved,), (used,) = harness.reserved, harness.settled
    assert used is not None
    assert 0 < used.tokens < reserved.tokens
    assert 0 < used.nano_usd < reserved.nano_usd
    assert (reserved.requests, used.requests) == (1, 1)


async def test_without_a_price_a_budget_in_dollars_refuses_the_model() -> None:
    harness = Spent(limit_usd=Decimal(100))
    harness.serve("free", "unpriced")
    harness.models[-1] = harness.models[-1].__class__(id=harness.models[-1].id, provider="free", model_id="unpriced")
    answer = await harness.engine.answer(harness.request({**CHAT, "model": "free/unpriced"}))
    assert answer.status == 400
    assert answer.refusal is not None
    assert (answer.refusal.code, "free/unpriced" in answer.refusal.text) == ("price_unknown", True)


async def test_a_token_limit_is_sent_if_the_caller_sets_none() -> None:
    harness = Spent(limit_tokens=10**9)
    own = {**CHAT, "max_tokens": 7}
    for body, sent in ((CHAT, 16_384), (own, 7)):
        harness.outbound.script = [(200, [completion()])]
        assert (await harness.engine.answer(harness.request(body))).status == 200
        assert json.loads(harness.outbound.sent[-1].body)["max_tokens"] == sent
    harness.budgets = (msgspec.structs.replace(harness.budgets[0], limit_tokens=None, limit_requests=10),)
    harness.outbound.script = [(200, [completion()])]
    await harness.engine.answer(harness.request(CHAT))
    assert "max_tokens" not in json.loads(harness.outbound.sent[-1].body)


async def test_cached_tokens_count_against_a_token_budget() -> None:
    harness = Spent(limit_tokens=10**9)
    usage = {"prompt_tokens": 100, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 60}}
    answer = {**json.loads(completion()), "usage": usage}
    harness.outbound.script = [(200, [json.dumps(answer).encode()])]
    assert (await harness.engine.answer(harness.request(CHAT))).status == 200
    (used,) = harness.settled
    assert used is not None
    assert used.tokens == 105


async def test_tokens_written_to_a_cache_count_against_a_token_budget() -> None:
    harness = Spent(limit_tokens=10**9)
    harness.providers.clear()
    harness.serve("acme", kind="anthropic")
    message = {
        "id": "msg", "type": "message", "role": "assistant", "model": "m", "content": [{"type": "text", "text": "Hi"}],
        "stop_reason": "end_turn", "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 20,
                  "cache_creation_input_tokens": 40},
    }  # fmt: skip
    harness.outbound.script = [(200, [json.dumps(message).encode()])]
    body = {**CHAT, "max_tokens": 50}
    assert (await harness.engine.answer(harness.request(body, dialect="anthropic_messages"))).status == 200
    (used,) = harness.settled
    assert used is not None
    assert used.tokens == 75


async def test_under_a_budget_in_dollars_a_fallback_without_a_price_is_not_called() -> None:
    harness = Spent(limit_usd=Decimal(100))
    harness.serve("free", "unpriced")
    harness.models[-1] = harness.models[-1].__class__(id=harness.models[-1].id, provider="free", model_id="unpriced")
    harness.outbound.script = [(500, [b"{}"]), (200, [completion()])]
    answer = await harness.engine.answer(harness.request({**CHAT, "fallbacks": ["free/unpriced"]}))
    assert answer.status == 502
    assert len(harness.outbound.sent) == 1
    assert harness.settled == [None]


async def test_without_a_dollar_budget_a_fallback_without_a_price_is_called() -> None:
    harness = Spent(limit_requests=10)
    harness.serve("free", "unpriced")
    harness.models[-1] = harness.models[-1].__class__(id=harness.models[-1].id, provider="free", model_id="unpriced")
    harness.outbound.script = [(500, [b"{}"]), (200, [completion()])]
    answer = await harness.engine.answer(harness.request({**CHAT, "fallbacks": ["free/unpriced"]}))
    assert (answer.status, answer.headers["X-Gateway-Provider"]) == (200, "free")
