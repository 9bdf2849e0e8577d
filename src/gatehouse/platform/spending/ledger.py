"""PostgreSQL's side of budgets: hands out leases, all of them together never more than the limit."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

import msgspec
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.engine.quotas import METRICS, NOTHING, Triple
from gatehouse.foundation.clock import iso
from gatehouse.foundation.ids import new_id
from gatehouse.platform.spending.accounts import Ask, Grant, limits_of, plus
from gatehouse.policy.budgets import NANO, Budget

#: Percent of a plan's monthly requests that are told (decisions 7, Plan limits).
THRESHOLDS: Final = (80, 90, 100)
#: What is asked ahead is given where so many times as much is free: the others want some too.
_SHARE: Final = 4
#: What is counted at most: little enough for PostgreSQL's bigint. No limit is as high.
_MOST: Final = 2**62

# A worker that is stopped in the midst of it must not keep the others waiting for its locks.
_BRIEF: Final = text("SET LOCAL idle_in_transaction_session_timeout = '1s'")

_OPEN: Final = text(
    "INSERT INTO budget_periods (budget_id, period_start, tenant_id, period_end)"
    " SELECT * FROM unnest(CAST(:budgets AS uuid[]), CAST(:starts AS timestamptz[]), CAST(:tenants AS uuid[]),"
    " CAST(:ends AS timestamptz[])) AS t (budget_id, period_start, tenant_id, period_end)"
    " ORDER BY 1, 2 ON CONFLICT DO NOTHING"
)
_LOCK: Final = text(
    "SELECT p.budget_id, p.period_start, p.exceeded_at IS NOT NULL AS exceeded, p.threshold, p.plan_limit"
    " FROM budget_periods p JOIN unnest(CAST(:budgets AS uuid[]), CAST(:starts AS timestamptz[]))"
    " AS k (budget_id, period_start) USING (budget_id, period_start) ORDER BY 1, 2 FOR UPDATE OF p"
)
# After the lock: what others were granted before it is seen. What is on record was spent, whatever was granted: of a
# metric that had no limit at that time too.
_LEASES: Final = text(
    "SELECT l.budget_id, l.period_start, l.writer_id = :writer AS mine,"
    " sum(greatest(granted_nano_usd, ceil(recorded_usd * 1000000000))),"
    " sum(greatest(granted_requests, recorded_requests)), sum(greatest(granted_tokens, recorded_tokens)),"
    " sum(recorded_usd), sum(recorded_requests), sum(recorded_tokens) FROM budget_leases l"
    " JOIN unnest(CAST(:budgets AS uuid[]), CAST(:starts AS timestamptz[])) AS k (budget_id, period_start)"
    " USING (budget_id, period_start) GROUP BY 1, 2, 3"
)
_GRANT: Final = text(
    "INSERT INTO budget_leases AS held (budget_id, period_start, tenant_id, writer_id, granted_nano_usd,"
    " granted_requests, granted_tokens) SELECT budget_id, period_start, tenant_id, :writer, usd, requests, tokens"
    " FROM unnest(CAST(:budgets AS uuid[]), CAST(:starts AS timestamptz[]), CAST(:tenants AS uuid[]),"
    " CAST(:usd AS bigint[]), CAST(:requests AS bigint[]), CAST(:tokens AS bigint[]))"
    " AS t (budget_id, period_start, tenant_id, usd, requests, tokens) ORDER BY 1, 2"
    " ON CONFLICT (budget_id, period_start, writer_id) DO UPDATE SET granted_nano_usd = excluded.granted_nano_usd,"
    " granted_requests = excluded.granted_requests, granted_tokens = excluded.granted_tokens"
)
_EXCEEDED: Final = text(
    "UPDATE budget_periods SET exceeded_at = now() WHERE budget_id = :budget AND period_start = :start"
)
_TOLD: Final = text(
    "UPDATE budget_periods SET threshold = :threshold WHERE budget_id = :budget AND period_start = :start"
)
_ANNOUNCE: Final = text(
    "INSERT INTO outbox (id, tenant_id, event_type, payload) VALUES (:id, :tenant, :type, CAST(:payload AS jsonb))"
)


class _Held(msgspec.Struct):
    """What the ledger holds of a period."""

    mine: Triple = NOTHING
    others: Triple = NOTHING
    recorded: Triple = NOTHING
    exceeded: bool = False
    threshold: int = 0
    #: the plan's limit that `threshold` is of; None where no plan was changed in this period
    plan_limit: int | None = None


async def lease(session: AsyncSession, writer_id: UUID, asks: Sequence[Ask]) -> list[Grant]:
    """Answers all of them in one transaction, which the caller commits. Each period's row is locked meanwhile, always
    in the same order."""
    keys = [(ask.budget.id, _moment(ask.span.start)) for ask in asks]
    columns: dict[str, Any] = {
        "budgets": [budget_id for budget_id, _ in keys],
        "starts": [start for _, start in keys],
        "tenants": [ask.budget.tenant_id for ask in asks],
        "ends": [_moment(ask.span.end) for ask in asks],
    }
    await session.execute(_BRIEF)
    await session.execute(_OPEN, columns)
    named = {"budgets": columns["budgets"], "starts": columns["starts"]}
    held = {
        (row.budget_id, row.period_start): _Held(
            exceeded=row.exceeded, threshold=row.threshold, plan_limit=row.plan_limit
        )
        for row in await session.execute(_LOCK, named)
    }
    for budget_id, start, mine, *sums in await session.execute(_LEASES, {**named, "writer": writer_id}):
        one = held[budget_id, start]
        if mine:
            one.mine = _triple(sums[:3])
        else:
            one.others = _triple(sums[:3])
        one.recorded = plus(one.recorded, (int(sums[3] * NANO), int(sums[4]), int(sums[5])))
    answers = [_granted(ask, held[key]) for ask, key in zip(asks, keys, strict=True)]
    grants = [grant for grant, _ in answers]
    columns |= {
        name: [grant.granted[metric] for grant in grants] for metric, name in enumerate(("usd", "requests", "tokens"))
    }
    await session.execute(_GRANT, {**columns, "writer": writer_id})
    for ask, (grant, reached), key in zip(asks, answers, keys, strict=True):
        await _tell(session, ask, grant, held[key], reached)
    return grants


class _Reached(NamedTuple):
    """A limit, and how much of it is spent and set aside."""

    metric: int
    usage: int


def _granted(ask: Ask, held: _Held) -> tuple[Grant, _Reached | None]:
    before = held.mine if ask.fresh else NOTHING
    need, keep = plus(ask.need, before), plus(ask.keep, before)
    limits = limits_of(ask.budget.limits)
    blocks = ask.budget.blocks and ask.enforced
    room = _triple(0 if limit is None else limit - other for limit, other in zip(limits, held.others, strict=True))
    served, refused = need, ask.refused
    for call in ask.waiting:
        more = plus(served, call)
        # Who does not fit gets nothing: a part would be of no use to it, and is to others.
        tight = next((n for n, limit in enumerate(limits) if limit is not None and more[n] > room[n]), None)
        if tight is not None and blocks:
            refused = tight
        else:
            served = more
    granted = list(served)
    for metric, limit in enumerate(limits):
        if limit is not None:
            # What it has is accounted for; where the limit was lowered meanwhile, only what is spent and set aside
            # is kept.
            mine = max(served[metric], min(keep[metric], room[metric]))
            if blocks:
                # Near the limit nobody gets anything ahead: it would lie idle while others are refused.
                ahead = max(0, served[metric] + ask.ahead[metric] - mine)
                mine += ahead if ahead * _SHARE <= room[metric] - mine else 0
            granted[metric] = mine
    reached = next((n for n, limit in enumerate(limits) if limit is not None and served[n] >= room[n]), refused)
    exceeded = held.exceeded or reached is not None
    grant = Grant(_triple(min(each, _MOST) for each in granted), held.mine, room, held.recorded, exceeded)
    return grant, None if reached is None else _Reached(reached, held.others[reached] + served[reached])


async def _tell(session: AsyncSession, ask: Ask, grant: Grant, held: _Held, reached: _Reached | None) -> None:
    """Announces a limit that is reached, once a period, and the steps towards a plan's limit."""
    budget = ask.budget
    if budget.plan and held.plan_limit not in {None, budget.limits.requests}:
        # This worker does not know the plan's new limit yet.
        return
    key = {"budget": budget.id, "start": _moment(ask.span.start)}
    limits = limits_of(budget.limits)
    if reached is not None and not held.exceeded:
        await session.execute(_EXCEEDED, key)
        limit = limits[reached.metric] or 0
        await _announce(session, budget, "quota_exceeded", _exceeded(ask, reached.metric, limit, reached.usage))
    if budget.plan and limits[1]:
        used = grant.recorded[1]
        passed = [step for step in THRESHOLDS if used * 100 >= step * limits[1] and step > held.threshold]
        for step in passed:
            period = datetime.fromtimestamp(ask.span.start, budget.zone).strftime("%Y-%m")
            await _announce(session, budget, "usage_threshold", {
                "org_id": str(budget.tenant_id), "threshold": step / 100, "current_requests": used,
                "monthly_limit": limits[1], "period": period,
            })  # fmt: skip
        if passed:
            await session.execute(_TOLD, {**key, "threshold": passed[-1]})


def _exceeded(ask: Ask, metric: int, limit: int, usage: int) -> dict[str, Any]:
    budget = ask.budget
    user_id = budget.scope_id if budget.scope_type == "user" else ask.user_id
    return {
        "user_id": None if user_id is None else str(user_id),
        "group_id": str(budget.scope_id) if budget.scope_type == "group" else None,
        "limit_type": "plan_requests_month" if budget.plan else f"{METRICS[metric]}_{budget.period}",
        "limit_value": _number(metric, limit),
        "current_usage": _number(metric, usage),
        "reset_at": iso(ask.span.end),
    }


def _number(metric: int, amount: int) -> float | int:
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


def _moment(at: int) -> datetime:
    return datetime.fromtimestamp(at, UTC)
