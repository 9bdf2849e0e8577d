"""A batch's requests by day and by what they were routed to: what cost routing's analytics are made of."""

from datetime import date
from decimal import Decimal
from typing import NamedTuple

import msgspec

from gatehouse.engine.outcome import Outcome


class Routed(NamedTuple):
    tenant_id: str
    day: date
    provider: str | None
    model_id: str | None
    routing_policy_id: str | None
    group_id: str | None


class Used(msgspec.Struct):
    requests: int = 0
    cost_usd: Decimal = Decimal(0)
    fallbacks: int = 0
    cost_cap_blocks: int = 0
    cache_hits: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


class DayRows(msgspec.Struct):
    by_route: dict[Routed, Used] = {}

    def add(self, outcome: Outcome[str], day: date) -> None:
        """`day` is the one in which the request arrived (UTC), as in `usage_counts`."""
        route = Routed(
            outcome.tenant_id, day, outcome.provider, outcome.model_id, outcome.routing_policy_id, outcome.group_id
        )
        used = self.by_route.get(route)
        if used is None:
            used = self.by_route[route] = Used()
        used.requests += 1
        if outcome.cost_usd is not None:
            used.cost_usd += Decimal(outcome.cost_usd)
        used.fallbacks += outcome.fallbacks > 0
        used.cost_cap_blocks += outcome.error_code == "cost_cap_exceeded"
        used.cache_hits += outcome.cache == "hit"
        used.input_tokens += outcome.input_tokens or 0
        used.output_tokens += outcome.output_tokens or 0

    def rows(self) -> list[tuple[object, ...]]:
        return [(*route, *msgspec.structs.astuple(used)) for route, used in self.by_route.items()]
