"""The ledger in PostgreSQL: grants leases. All leases on a budget together never exceed its limit."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

import msgspec
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.engine.money.quotas import METRICS, NOTHING, Triple
from gatehouse.foundation.clock import iso
from gatehouse.foundation.ids import new_id
from gatehouse.platform.spending.accounts import Grant, LeaseRequest, limits_of, plus
from gatehouse.policy.budgets import NANO, Budget

#: Percentages of a plan's monthly requests at which `usage_threshold` is announced.
THRESHOLD_PERCENTAGES: Final = (80, 90, 100)
#: Amounts for later calls are granted only if at least this many times the amount is free, because other workers also
#: need some.
_FREE_PER_AHEAD: Final = 4
#: Largest amount in a lease. It fits into PostgreSQL's bigint, and all limits are lower.
_MAX_AMOUNT: Final = 2**62

# If a worker is suspended within the transaction, its locks are released after one second for the other workers.
_SET_IDLE_TIMEOUT: Final = text("SET LOCAL idle_in_transaction_session_timeout = '1s'")

_CREATE_PERIODS: Final = text(
    "INSERT INTO budget_periods (budget_id, period_start, tenant_id, period_end)"
    " SELECT * FROM unnest(CAST(:budgets AS uuid[]), CAST(:starts AS timestamptz[]), CAST(:tenants AS uuid[]),"
    " CAST(:ends AS timestamptz[])) AS t (budget_id, period_start, tenant_id, period_end)"
    " ORDER BY 1, 2 ON CONFLICT DO NOTHING"
)
_LOCK_PERIODS: Final = text(
    "SELECT p.budget_id, p.period_start, p.exceeded_at IS NOT NULL AS exceeded, p.threshold, p.plan_limit"
    " FROM budget_periods p JOIN unnest(CAST(:budgets AS uuid[]), CAST(:starts AS timestamptz[]))"
    " AS k (budget_id, period_start) USING (budget_id, period_start) ORDER BY 1, 2 FOR UPDATE OF p"
)
# This query runs after the rows are locked, so that it sees all earlier grants. A recorded amount was spent even if it
# was not granted, for example for a metric that had no limit at the time.
_LEASES: Final = text(
    "SELECT l.budget_id, l.period_start, l.writer_id = :writer AS mine,"
    " sum(greatest(granted_nano_usd, ceil(recorded_usd * 1000000000))),"
    " sum(greatest(granted_requests, recorded_requests)), sum(greatest(granted_tokens, recorded_tokens)),"
    " sum(recorded_usd), sum(recorded_requests), sum(recorded_tokens) FROM budget_leases l"
    " JOIN unnest(CAST(:budgets AS uuid[]), CAST(:starts AS timestamptz[])) AS k (budget_id, period_start)"
    " USING (budget_id, period_start) GROUP BY 1, 2, 3"
)
_GRANT: Final = text(
    "INSERT INTO budget_leases (budget_id, period_start, tenant_id, writer_id, granted_nano_usd,"
    " granted_requests, granted_tokens) SELECT budget_id, period_start, tenant_id, :writer, usd, requests, tokens"
    " FROM unnest(CAST(:budgets AS uuid[]), CAST(:starts AS timestamptz[]), CAST(:tenants AS uuid[]),"
    " CAST(:usd AS bigint[]), CAST(:requests AS bigint[]), CAST(:tokens AS bigint[]))"
    " AS t (budget_id, period_start, tenant_id, usd, requests, tokens) ORDER BY 1, 2"
    " ON CONFLICT (budget_id, period_start, writer_id) DO UPDATE SET granted_nano_usd = excluded.granted_nano_usd,"
    " granted_requests = excluded.granted_requests, granted_tokens = excluded.granted_tokens"
)
_SET_EXCEEDED: Final = text(
    "UPDATE budget_periods SET exceeded_at = now() WHERE budget_id = :budget AND period_start = :start"
)
_SET_THRESHOLD: Final = text(
    "UPDATE budget_periods SET threshold = :threshold WHERE budget_id = :budget AND period_start = :start"
)
_ANNOUNCE: Final = text(
    "INSERT INTO outbox (id, tenant_id, event_type, payload) VALUES (:id, :tenant, :type, CAST(:payload AS jsonb))"
)


class _Period(msgspec.Struct):
    """The ledger's state of a period: the lease of the requesting worker, the leases of other workers, and the recorded
    amounts."""

    own: Triple = NOTHING
    others: Triple = NOTHING
    recorded: Triple = NOTHING
    exceeded: bool = False
    threshold: int = 0
    #: the limit of the plan that `threshold` refers to; None if the plan was not changed in this period
    plan_limit: int | None = None


async def lease(session: AsyncSession, writer_id: UUID, requests: Sequence[LeaseRequest]) -> list[Grant]:
    """Answer all requests in one transaction, which the caller commits. The rows of the periods are always locked in
    the same order, so that transactions cannot deadlock."""
    keys = [(request.budget.id, _moment(request.span.start)) for request in requests]
    columns: dict[str, Any] = {
        "budgets": [budget_id for budget_id, _ in keys],
        "starts": [start for _, start in keys],
        "tenants": [request.budget.tenant_id for request in requests],
        "ends": [_moment(request.span.end) for request in requests],
    }
    await session.execute(_SET_IDLE_TIMEOUT)
    await session.execute(_CREATE_PERIODS, columns)
    key_columns = {"budgets": columns["budgets"], "starts": columns["starts"]}
    periods = {
        (row.budget_id, row.period_start): _Period(
            exceeded=row.exceeded, threshold=row.threshold, plan_limit=row.plan_limit
        )
        for row in await session.execute(_LOCK_PERIODS, key_columns)
    }
    for budget_id, start, is_own, *sums in await session.execute(_LEASES, {**key_columns, "writer": writer_id}):
        period = periods[budget_id, start]
        if is_own:
            period.own = _triple(sums[:3])
        else:
            period.others = _triple(sums[:3])
        period.recorded = plus(period.recorded, (int(sums[3] * NANO), int(sums[4]), int(sums[5])))
    answers = [_grant(request, periods[key]) for request, key in zip(requests, keys, strict=True)]
    grants = [grant for grant, _ in answers]
    columns |= {
        name: [grant.granted[metric] for grant in grants] for metric, name in enumerate(("usd", "requests", "tokens"))
    }
    await session.execute(_GRANT, {**columns, "writer": writer_id})
    for request, (grant, reached), key in zip(requests, answers, keys, strict=True):
        await _announce_reached(session, request, grant, periods[key], reached)
    return grants


class _Reached(NamedTuple):
    """A metric whose limit is reached, and the amount of it that is spent and reserved."""

    metric: int
    usage: int


def _grant(request: LeaseRequest, period: _Period) -> tuple[Grant, _Reached | None]:
    """Return the answer to a request, and the limit that is reached, if any."""
    before = period.own if request.fresh else NOTHING
    committed, kept = plus(request.committed, before), plus(request.kept, before)
    limits = limits_of(request.budget.limits)
    blocks = request.budget.blocks and request.enforced
    room = _triple(0 if limit is None else limit - leased for limit, leased in zip(limits, period.others, strict=True))
    served, refused_metric = committed, request.refused_metric
    for amounts, announce in request.waiting:
        required = plus(served, amounts)
        # A call that does not fit is granted nothing, because it cannot use a part of the amount, and other calls can.
        lacking = next((n for n, limit in enumerate(limits) if limit is not None and required[n] > room[n]), None)
        if lacking is not None and blocks:
            refused_metric = lacking if announce else refused_metric
        else:
            served = required
    granted = list(served)
    for metric, limit in enumerate(limits):
        if limit is not None:
            # The worker keeps its lease. If the limit was lowered, it keeps only the amount that is spent and reserved.
            amount = max(served[metric], min(kept[metric], room[metric]))
            if blocks:
                # Near the limit, nothing is granted for later calls, because it would be unused while other workers
                # refuse calls.
                ahead = max(0, served[metric] + request.ahead[metric] - amount)
                amount += ahead if ahead * _FREE_PER_AHEAD <= room[metric] - amount else 0
            granted[metric] = amount
    reached = next((n for n, limit in enumerate(limits) if limit is not None and served[n] >= room[n]), refused_metric)
    exceeded = period.exceeded or reached is not None
    bounded = _triple(min(amount, _MAX_AMOUNT) for amount in granted)
    grant = Grant(bounded, period.own, room, period.recorded, exceeded)
    return grant, None if reached is None else _Reached(reached, period.others[reached] + served[reached])


async def _announce_reached(
    session: AsyncSession, request: LeaseRequest, grant: Grant, period: _Period, reached: _Reached | None
) -> None:
    """Announce a reached limit, once in a period, and the thresholds of a plan's limit."""
    budget = request.budget
    if budget.plan and period.plan_limit not in {None, budget.limits.requests}:
        # The requesting worker has not received the new limit of the plan yet.
        return
    key = {"budget": budget.id, "start": _moment(request.span.start)}
    limits = limits_of(budget.limits)
    if reached is not None and not period.exceeded:
        await session.execute(_SET_EXCEEDED, key)
        limit = limits[reached.metric] or 0
        await _announce(
            session, budget, "quota_exceeded", _exceeded_payload(request, reached.metric, limit, reached.usage)
        )
    if budget.plan and limits[1]:
        used = grant.recorded[1]
        passed = [
            percentage
            for percentage in THRESHOLD_PERCENTAGES
            if used * 100 >= percentage * limits[1] and percentage > period.threshold
        ]
        for percentage in passed:
            month = datetime.fromtimestamp(request.span.start, budget.zone).strftime("%Y-%m")
            await _announce(session, budget, "usage_threshold", {
                "org_id": str(budget.tenant_id), "threshold": percentage / 100, "current_requests": used,
                "monthly_limit": limits[1], "period": month,
            })  # fmt: skip
        if passed:
            await session.execute(_SET_THRESHOLD, {**key, "threshold": passed[-1]})


def _exceeded_payload(request: LeaseRequest, metric: int, limit: int, usage: int) -> dict[str, Any]:
    budget = request.budget
    user_id = budget.scope_id if budget.scope_type == "user" else request.user_id
    return {
        "user_id": None if user_id is None else str(user_id),
        "group_id": str(budget.scope_id) if budget.scope_type == "group" else None,
        "limit_type": "plan_requests_month" if budget.plan else f"{METRICS[metric]}_{budget.period}",
        "limit_value": _event_amount(metric, limit),
        "current_usage": _event_amount(metric, usage),
        "reset_at": iso(request.span.end),
    }


def _event_amount(metric: int, amount: int) -> float | int:
    """Return an amount in the form that events use: USD, or a count."""
    return amount if metric else amount / NANO


async def _announce(session: AsyncSession, budget: Budget, event_type: str, payload: dict[str, Any]) -> None:
    values = {
        "id": new_id(), "tenant": budget.tenant_id, "type": event_type,
        "payload": msgspec.json.encode(payload).decode(),
    }  # fmt: skip
    await session.execute(_ANNOUNCE, values)


def _triple(values: Iterable[int]) -> Triple:
    usd, requests, tokens = map(int, values)
    return usd, requests, tokens


def _moment(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
