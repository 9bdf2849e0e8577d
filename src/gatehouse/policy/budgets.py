"""Budgets of a tenant's policy: who they bind, found by the caller's ids (decisions 7, Budgets)."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from decimal import ROUND_CEILING, Decimal
from typing import Final, Literal, TypeAlias
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec

from gatehouse.foundation.identity import Caller, TenantId

ScopeType: TypeAlias = Literal["tenant", "group", "user", "api_key", "oauth_client"]
Period: TypeAlias = Literal["minute", "day", "month"]

#: Money is counted in whole billionths of a dollar.
NANO: Final = 1_000_000_000


def nano(usd: Decimal) -> int:
    """Rounded up: what is counted is never less than what was spent."""
    return int((usd * NANO).to_integral_value(ROUND_CEILING))


class Amounts(msgspec.Struct, frozen=True, gc=False):
    """A limit. None: without end."""

    nano_usd: int | None
    requests: int | None
    tokens: int | None


class Taking(msgspec.Struct, frozen=True, gc=False):
    """What one call takes of every budget."""

    nano_usd: int = 0
    requests: int = 0
    tokens: int = 0


class BudgetRecord(msgspec.Struct, frozen=True, kw_only=True):
    """`plan`: the monthly requests of the organization's plan, whose id is the tenant's."""

    id: UUID
    scope_type: ScopeType
    scope_id: UUID
    period: Period
    limit_usd: Decimal | None = None
    limit_requests: int | None = None
    limit_tokens: int | None = None
    action: str = "block"
    plan: bool = False


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    id: UUID
    tenant_id: TenantId
    scope_type: ScopeType
    scope_id: UUID
    period: Period
    zone: ZoneInfo
    limits: Amounts
    #: refuses what does not fit; else it is only told
    blocks: bool
    plan: bool

    @property
    def name(self) -> str:
        """For clients: whose it is, and for how long."""
        return "plan" if self.plan else f"{self.scope_type}:{self.period}"


class Budgets:
    """`of` costs a look-up for each of the caller's ids, and nothing where there is no budget at all."""

    def __init__(self, records: Iterable[BudgetRecord], tenant_id: TenantId, zone: ZoneInfo) -> None:
        found: dict[UUID, list[Budget]] = defaultdict(list)
        for record in records:
            found[record.scope_id].append(compile_budget(record, tenant_id, zone))
        self._by_scope: Mapping[UUID, list[Budget]] = found
        self._of_tenant = tuple(found.pop(tenant_id, ()))

    def of(self, caller: Caller) -> tuple[Budget, ...]:
        """Every budget that a call of this caller counts against."""
        if not self._by_scope:
            return self._of_tenant
        ids = (*caller.groups, caller.user_id, caller.api_key_id, caller.client_id)
        own = [budget for each in ids if each is not None for budget in self._by_scope.get(each, ())]
        return (*self._of_tenant, *own) if own else self._of_tenant


def compile_budget(record: BudgetRecord, tenant_id: TenantId, zone: ZoneInfo) -> Budget:
    limit_usd = None if record.limit_usd is None else int(record.limit_usd * NANO)
    return Budget(
        id=record.id,
        tenant_id=tenant_id,
        scope_type=record.scope_type,
        scope_id=record.scope_id,
        period=record.period,
        zone=zone,
        limits=Amounts(limit_usd, record.limit_requests, record.limit_tokens),
        blocks=record.action == "block",
        plan=record.plan,
    )
