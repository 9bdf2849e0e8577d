"""Spending of the requests in a batch by budget, period, and the worker whose lease was used."""

from decimal import Decimal
from typing import NamedTuple
from uuid import UUID

import msgspec

from gatehouse.engine.records.outcome import Outcome, ToolCalled


class LeaseKey(NamedTuple):
    """A worker's lease on one budget period. `period_start` is Unix time."""

    budget_id: str
    period_start: int
    writer_id: UUID


class LeaseTotals(msgspec.Struct):
    tenant_id: str
    usd: Decimal = Decimal(0)
    requests: int = 0
    tokens: int = 0


class SpentRows(msgspec.Struct):
    """Collects the spending of one batch."""

    by_lease: dict[LeaseKey, LeaseTotals] = {}

    def add(self, outcome: Outcome[str], writer_id: UUID) -> None:
        for totals in self._count(outcome, writer_id):
            totals.usd += Decimal(outcome.cost_usd or 0)
            totals.tokens += (outcome.input_tokens or 0) + (outcome.output_tokens or 0) + (outcome.cached_tokens or 0)

    def add_tool_call(self, call: ToolCalled[str], writer_id: UUID) -> None:
        """Count a call of a tool, which has no price and no tokens."""
        self._count(call, writer_id)

    def _count(self, entry: Outcome[str] | ToolCalled[str], writer_id: UUID) -> list[LeaseTotals]:
        """Count a request. Return the totals of each of its budgets."""
        counted = [
            self.by_lease.setdefault(LeaseKey(budget_id, period_start, writer_id), LeaseTotals(entry.tenant_id))
            for budget_id, period_start in entry.budgets
        ]
        for totals in counted:
            totals.requests += 1
        return counted

    def rows(self) -> list[tuple[str, int, str, str, Decimal, int, int]]:
        """Return the rows. They are sorted, so that concurrent keepers lock rows in the same order."""
        return [
            (lease.budget_id, lease.period_start, str(lease.writer_id), *msgspec.structs.astuple(totals))
            for lease, totals in sorted(self.by_lease.items())
        ]
