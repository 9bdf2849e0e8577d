"""Budgets of a tenant's policy: who they bind, found by the caller's ids (decisions 7, Budgets)."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from decimal import ROUND_CEILING, Decimal
from typing import Final, Literal, TypeAlias
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec

from gatehouse.foundation.identity import Caller, TenantId

ScopeType: TypeAlias = Literal["tenant", "group", "user", "api_key", "oauth_client"]
Period: TypeAlias = Literal["minute", "day", "month"]

#: Callers that a policy remembers.
_KNOWN: Final = 20_000
#: Money is counted in whole billionths of a dollar.
NANO: Final = 1_000_000_000
_UTC: Final = ZoneInfo("UTC")


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
    """`plan`: the monthly requests of the organization's plan, whose id is the tenant's. `own`: the host's, laid over
    the organization's: no feature flag takes it out of force."""

    id: UUID
    scope_type: ScopeType
    scope_id: UUID
    period: Period
    limit_usd: Decimal | None = None
    limit_requests: int | None = None
    limit_tokens: int | None = None
    action: str = "block"
    plan: bool = False
    own: bool = False


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
    own: bool

    @property
    def name(self) -> str:
        """For clients: whose it is, and for how long."""
        return "plan" if self.plan else f"{self.scope_type}:{self.period}"


class BudgetsOfCaller(msgspec.Struct, frozen=True, gc=False):
    """Every budget that a caller's calls count against, and what of a call they ask about."""

    budgets: tuple[Budget, ...]
    #: whether dollars or tokens are counted, not requests alone
    measure: bool
    #: whether any refuses what does not fit
    block: bool
    #: whether one in dollars does
    block_usd: bool
    #: those that hold whatever the organization's feature flags say
    always: "BudgetsOfCaller | None" = None


class Budgets:
    """`of` costs a look-up for callers that were here before, and nothing where there is no budget at all."""

    def __init__(self, records: Iterable[BudgetRecord], tenant_id: TenantId, zone: ZoneInfo) -> None:
        found: dict[UUID, list[Budget]] = defaultdict(list)
        for record in records:
            found[record.scope_id].append(compile_budget(record, tenant_id, zone))
        self._of_tenant = _together(found.pop(tenant_id, ()))
        self._by_scope: Mapping[UUID, list[Budget]] = found
        self._known: dict[tuple[object, ...], BudgetsOfCaller | None] = {}

    def of(self, caller: Caller) -> BudgetsOfCaller | None:
        if not self._by_scope:
            return self._of_tenant
        ids = (caller.user_id, caller.api_key_id, caller.client_id, *caller.groups)
        try:
            return self._known[ids]
        except KeyError:
            pass
        own = [budget for each in ids if each is not None for budget in self._by_scope.get(each, ())]
        of_all = self._of_tenant.budgets if self._of_tenant else ()
        if len(self._known) >= _KNOWN:
            self._known.clear()
        found = self._known[ids] = _together((*of_all, *own)) if own else self._of_tenant
        return found


def _together(budgets: Sequence[Budget]) -> BudgetsOfCaller | None:
    if not budgets:
        return None
    own = [each for each in budgets if each.own]
    return _of(budgets, _of(own) if own else None)


def _of(budgets: Sequence[Budget], always: BudgetsOfCaller | None = None) -> BudgetsOfCaller:
    return BudgetsOfCaller(
        tuple(budgets),
        measure=any(each.limits.nano_usd is not None or each.limits.tokens is not None for each in budgets),
        block=any(each.blocks for each in budgets),
        block_usd=any(each.blocks and each.limits.nano_usd is not None for each in budgets),
        always=always,
    )


def compile_budget(record: BudgetRecord, tenant_id: TenantId, zone: ZoneInfo) -> Budget:
    limit_usd = None if record.limit_usd is None else int(record.limit_usd * NANO)
    return Budget(
        id=record.id,
        tenant_id=tenant_id,
        scope_type=record.scope_type,
        scope_id=record.scope_id,
        period=record.period,
        # The plan's months are the operator's: an organization that changes its time zone does not begin them anew.
        zone=_UTC if record.plan or record.own else zone,
        limits=Amounts(limit_usd, record.limit_requests, record.limit_tokens),
        blocks=record.action == "block",
        plan=record.plan,
        own=record.own,
    )
