"""Totals of the requests in a batch by day and route, for the analytics of cost routing."""

from datetime import date
from decimal import Decimal
from typing import NamedTuple

import msgspec

from gatehouse.engine.records.outcome import Outcome


class RouteDay(NamedTuple):
    tenant_id: str
    day: date
    provider: str | None
    model_id: str | None
    routing_policy_id: str | None
    group_id: str | None


class RouteTotals(msgspec.Struct):
    requests: int = 0
    cost_usd: Decimal = Decimal(0)
    fallbacks: int = 0
    cost_cap_blocks: int = 0
    cache_hits: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


class DayRows(msgspec.Struct):
    """Collects the totals of one batch."""

    by_route: dict[RouteDay, RouteTotals] = {}

    def add(self, outcome: Outcome[str], day: date) -> None:
        """Add a request. `day` is the UTC day on which the request arrived, as in `usage_counts`."""
        route = RouteDay(
            outcome.tenant_id, day, outcome.provider, outcome.model_id, outcome.routing_policy_id, outcome.group_id
        )
        totals = self.by_route.get(route)
        if totals is None:
            totals = self.by_route[route] = RouteTotals()
        totals.requests += 1
        if outcome.cost_usd is not None:
            totals.cost_usd += Decimal(outcome.cost_usd)
        totals.fallbacks += outcome.fallbacks > 0
        totals.cost_cap_blocks += outcome.error_code == "cost_cap_exceeded"
        totals.cache_hits += outcome.cache == "hit"
        totals.input_tokens += outcome.input_tokens or 0
        totals.output_tokens += outcome.output_tokens or 0

    def rows(self) -> list[tuple[object, ...]]:
        return [(*route, *msgspec.structs.astuple(totals)) for route, totals in self.by_route.items()]
