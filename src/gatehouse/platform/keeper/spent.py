"""What a batch's requests have spent of budgets: amounts by period and by the worker that had them from its lease."""

from decimal import Decimal
from typing import NamedTuple
from uuid import UUID

import msgspec

from gatehouse.engine.outcome import Outcome


class Lease(NamedTuple):
    """`period_start` is Unix time."""

    budget_id: str
    period_start: int
    writer_id: UUID


class Spent(msgspec.Struct):
    tenant_id: str
    usd: Decimal = Decimal(0)
    requests: int = 0
    tokens: int = 0


class SpentRows(msgspec.Struct):
    by_lease: dict[Lease, Spent] = {}

    def add(self, outcome: Outcome[str], writer_id: UUID) -> None:
        for budget_id, period_start in outcome.budgets:
            spent = self.by_lease.setdefault(Lease(budget_id, period_start, writer_id), Spent(outcome.tenant_id))
            spent.usd += Decimal(outcome.cost_usd or 0)
            spent.requests += 1
            spent.tokens += (outcome.input_tokens or 0) + (outcome.output_tokens or 0) + (outcome.cached_tokens or 0)

    def rows(self) -> list[tuple[str, int, str, str, Decimal, int, int]]:
        """In order: two keepers that add to the same must not wait for each other."""
        return [
            (lease.budget_id, lease.period_start, str(lease.writer_id), *msgspec.structs.astuple(spent))
            for lease, spent in sorted(self.by_lease.items())
        ]
