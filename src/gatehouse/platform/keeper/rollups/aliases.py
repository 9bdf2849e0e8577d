"""Totals of the requests in a batch by hour, model alias and deployment, for the series of usage."""

from decimal import Decimal
from typing import NamedTuple

import msgspec

from gatehouse.engine.records.outcome import Outcome
from gatehouse.platform.keeper.rollups.minutes import blocked, ended_at, failed


class AliasHour(NamedTuple):
    """An hour of one deployment of an alias. `start` is Unix time. `provider` is None if all
    deployments failed, or none was called."""

    tenant_id: str
    start: int
    model_alias: str
    provider: str | None
    model_id: str | None
    shadow: bool
    routing_policy_id: str | None
    group_id: str | None


class AliasTotals(msgspec.Struct):
    requests: int = 0
    errors: int = 0
    blocked: int = 0
    dlp_triggers: int = 0
    cost_usd: Decimal = Decimal(0)


class AliasRows(msgspec.Struct):
    """Collects the totals of one batch."""

    by_hour: dict[AliasHour, AliasTotals] = {}

    def add(self, outcome: Outcome[str], latency: float | None, triggers: int) -> None:
        """Add a request if it used an alias. `latency` is in milliseconds, or None if unknown. `triggers` is 1 if a
        DLP rule acted, else 0."""
        if outcome.model_alias is None:
            return
        end = ended_at(outcome, latency)
        hour = AliasHour(
            outcome.tenant_id, end - end % 3600, outcome.model_alias, outcome.provider, outcome.model_id,
            outcome.shadow, outcome.routing_policy_id, outcome.group_id,
        )  # fmt: skip
        totals = self.by_hour.setdefault(hour, AliasTotals())
        totals.requests += 1
        if blocked(outcome):
            totals.blocked += 1
        elif failed(outcome):
            totals.errors += 1
        totals.dlp_triggers += triggers
        totals.cost_usd += Decimal(outcome.cost_usd or 0)

    def rows(self) -> list[tuple[object, ...]]:
        return [(*hour, *msgspec.structs.astuple(totals)) for hour, totals in self.by_hour.items()]
