"""The budgets of a tenant's policy, and their lookup by the ids of a caller (docs/budgets.md)."""

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

#: Maximum number of callers whose budgets a policy caches.
_MAX_CACHED_CALLERS: Final = 20_000
#: Number of nano USD in a dollar. Amounts of money are integers in nano USD.
NANO: Final = 1_000_000_000
_UTC: Final = ZoneInfo("UTC")


def nano(usd: Decimal) -> int:
    """Return an amount in nano USD, rounded up."""
    return int((usd * NANO).to_integral_value(ROUND_CEILING))


class Amounts(msgspec.Struct, frozen=True, gc=False):
    """The limits of a budget. None means unlimited."""

    nano_usd: int | None
    requests: int | None
    tokens: int | None


class CallAmounts(msgspec.Struct, frozen=True, gc=False):
    """The amounts that one call adds to every budget that it counts against."""

    nano_usd: int = 0
    requests: int = 0
    tokens: int = 0


class BudgetRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A budget of an organization. If `plan` is set, the budget is the monthly number of requests of the organization's
    plan, and its id is the tenant's id. If `own` is set, it is a budget of the host, in addition to those of the
    organization, and feature flags do not disable it."""

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
    #: whether calls that exceed the budget are refused; otherwise they are only reported
    blocks: bool
    plan: bool
    own: bool

    @property
    def name(self) -> str:
        """Return the name of the budget in responses: its scope and period, or `plan`."""
        return "plan" if self.plan else f"{self.scope_type}:{self.period}"


class CallerBudgets(msgspec.Struct, frozen=True, gc=False):
    """The budgets that the calls of a caller count against, and the checks that these budgets need."""

    budgets: tuple[Budget, ...]
    #: whether a budget has a limit in dollars or tokens, so that these are counted
    measure: bool
    #: whether a budget refuses calls
    block: bool
    #: whether a budget refuses calls because of a limit in dollars
    block_usd: bool
    #: the budgets that apply regardless of the organization's feature flags
    always: "CallerBudgets | None" = None


class Budgets:
    """Looks up the budgets of callers. For a cached caller, `of` costs one dictionary lookup."""

    def __init__(self, records: Iterable[BudgetRecord], tenant_id: TenantId, zone: ZoneInfo) -> None:
        by_scope: dict[UUID, list[Budget]] = defaultdict(list)
        for record in records:
            by_scope[record.scope_id].append(compile_budget(record, tenant_id, zone))
        self._of_tenant = _of_scopes(by_scope.pop(tenant_id, ()))
        self._by_scope: Mapping[UUID, list[Budget]] = by_scope
        self._by_caller: dict[tuple[object, ...], CallerBudgets | None] = {}

    def of(self, caller: Caller) -> CallerBudgets | None:
        if not self._by_scope:
            return self._of_tenant
        ids = (caller.user_id, caller.api_key_id, caller.client_id, *caller.groups)
        try:
            return self._by_caller[ids]
        except KeyError:
            pass
        own = [budget for scope_id in ids if scope_id is not None for budget in self._by_scope.get(scope_id, ())]
        of_tenant = self._of_tenant.budgets if self._of_tenant else ()
        if len(self._by_caller) >= _MAX_CACHED_CALLERS:
            self._by_caller.clear()
        budgets = self._by_caller[ids] = _of_scopes((*of_tenant, *own)) if own else self._of_tenant
        return budgets


def _of_scopes(budgets: Sequence[Budget]) -> CallerBudgets | None:
    if not budgets:
        return None
    own = [budget for budget in budgets if budget.own]
    return _summary(budgets, _summary(own) if own else None)


def _summary(budgets: Sequence[Budget], always: CallerBudgets | None = None) -> CallerBudgets:
    return CallerBudgets(
        tuple(budgets),
        measure=any(budget.limits.nano_usd is not None or budget.limits.tokens is not None for budget in budgets),
        block=any(budget.blocks for budget in budgets),
        block_usd=any(budget.blocks and budget.limits.nano_usd is not None for budget in budgets),
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
        # The months of a plan are in UTC, so that an organization cannot restart them by changing its time zone.
        zone=_UTC if record.plan or record.own else zone,
        limits=Amounts(limit_usd, record.limit_requests, record.limit_tokens),
        blocks=record.action == "block",
        plan=record.plan,
        own=record.own,
    )
