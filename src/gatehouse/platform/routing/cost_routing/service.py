"""The rules of routing policies."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.storage.locks import ScopedLock, require_room
from gatehouse.platform.change import Change
from gatehouse.platform.routing.cost_routing import table
from gatehouse.platform.routing.cost_routing.errors import BadField, PolicyConflict, TooManyRoutingPolicies
from gatehouse.platform.routing.cost_routing.schemas import (
    Analytics,
    ByModel,
    Decisions,
    Filters,
    NewPolicy,
    Policy,
    PolicyUpdate,
    Span,
)
from gatehouse.platform.routing.cost_routing.table import Day, RoutingPolicyRow

#: Policies an organization may have.
MOST: Final = 200
_DAYS: Final[Mapping[Span, int]] = {"day": 1, "week": 7, "month": 30}
_NANO_USD: Final = Decimal("0.000000001")


def shown(row: RoutingPolicyRow) -> Policy:
    cap = None
    if row.cost_cap_usd is not None:
        cap = {"max_cost_per_request_usd": row.cost_cap_usd, "action_on_exceed": row.cost_cap_action}
    own = {name: getattr(row, name) for name in Policy.model_fields if hasattr(row, name)}
    filters = Filters.model_validate(row.model_filters).model_dump()
    return Policy.model_validate({**own, "policy_id": row.id, "model_filters": filters, "cost_cap": cap})


async def create(change: Change, new: NewPolicy) -> RoutingPolicyRow:
    """Raises `BadField`, `PolicyConflict`, `TooManyRoutingPolicies`."""
    await require_room(
        change.session, ScopedLock.ROUTING_POLICIES, table.count_policies, limit=MOST, full=TooManyRoutingPolicies
    )
    now = utc_now()
    values = _columns(new.model_dump(mode="json"))
    row = RoutingPolicyRow(id=new_id(), tenant_id=change.tenant_id, created_at=now, updated_at=now, **values)
    await _judge(change.session, row, set(values))
    change.session.add(row)
    _say(change, "routing_policy.created", row, policy=new.model_dump(mode="json"))
    return row


async def replace(change: Change, row: RoutingPolicyRow, new: NewPolicy) -> RoutingPolicyRow:
    """Everything, also what the body leaves out. Raises as `create`."""
    return await _change(change, row, new.model_dump(mode="json"))


async def update(change: Change, row: RoutingPolicyRow, body: PolicyUpdate) -> RoutingPolicyRow:
    """What the body names. Raises as `create`."""
    return await _change(change, row, body.model_dump(mode="json", include=body.model_fields_set))


async def delete(change: Change, row: RoutingPolicyRow) -> None:
    """Its groups have the organization's default again."""
    await change.session.delete(row)
    _say(change, "routing_policy.deleted", row)


async def analytics(session: AsyncSession, span: Span, **of: Any) -> Analytics:
    """`of`: `policy_id`, `group_id`, or None for all."""
    counted = await table.days(session, _DAYS[span], **of)
    answered = [day for day in counted if day.model_id is not None]
    requests = sum(day.requests for day in counted)
    cost = sum((day.cost_usd for day in counted), Decimal(0))
    return Analytics(
        period=span,
        total_requests=requests,
        routing_decisions=Decisions(
            by_model=_by_model(answered),
            cost_cap_blocks=sum(day.cost_cap_blocks for day in counted),
            fallback_activations=sum(day.fallbacks for day in counted),
        ),
        total_cost_usd=cost,
        avg_cost_per_request_usd=(cost / requests).quantize(_NANO_USD) if requests else Decimal(0),
    )


def _by_model(answered: list[Day]) -> list[ByModel]:
    total = sum(day.requests for day in answered)
    return [
        ByModel(
            provider=day.provider or "",
            model_id=day.model_id or "",
            requests=day.requests,
            cost_usd=None if day.unpriced else day.cost_usd,
            pct=round(100 * day.requests / total, 2),
        )
        for day in answered
    ]


async def _change(change: Change, row: RoutingPolicyRow, told: dict[str, Any]) -> RoutingPolicyRow:
    values = _columns(told)
    with change.session.no_autoflush:
        changed = {name for name, value in values.items() if getattr(row, name) != value}
        for name in changed:
            setattr(row, name, values[name])
        await _judge(change.session, row, set(values))
    if changed:
        row.updated_at = utc_now()
        _say(change, "routing_policy.updated", row, changed=told)
    return row


def _columns(told: Mapping[str, Any]) -> dict[str, Any]:
    """A body's fields as columns."""
    values = dict(told)
    if "cost_cap" in values:
        cap = values.pop("cost_cap")
        values["cost_cap_usd"] = None if cap is None else Decimal(cap["max_cost_per_request_usd"])
        values["cost_cap_action"] = None if cap is None else cap["action_on_exceed"]
    if "group_ids" in values:
        values["group_ids"] = list(dict.fromkeys(map(UUID, values["group_ids"])))
    if "cache_ttl_seconds" in values:
        values["cache_ttl_seconds"] = values["cache_ttl_seconds"] or None
    return values


async def _judge(session: AsyncSession, row: RoutingPolicyRow, sent: set[str]) -> None:
    """The policy as it would be. A chain that nobody has sent is looked at where the policy is enabled: a model of it
    may be gone. Raises `BadField`, `PolicyConflict`."""
    if "group_ids" in sent:
        await _judge_groups(session, row)
    if "model_filters" in sent:
        await _judge_filters(session, row)
    if "fallback_chain" in sent or row.enabled:
        await _judge_chain(session, row)
    if row.strategy == "manual_fallback" and not row.fallback_chain:
        raise BadField("fallback_chain", "is required for the strategy manual_fallback")
    if row.enabled:
        await table.lock(session)
        other = await table.conflicting(session, row.id, row.group_ids)
        if other is not None:
            raise PolicyConflict.of(other.id, other.name, default=not row.group_ids)


async def _judge_groups(session: AsyncSession, row: RoutingPolicyRow) -> None:
    known = await table.known_groups(session, row.group_ids)
    for at, group_id in enumerate(row.group_ids):
        if group_id not in known:
            raise BadField(f"group_ids.{at}", "is no group of this organization")


async def _judge_filters(session: AsyncSession, row: RoutingPolicyRow) -> None:
    providers = row.model_filters["included_providers"]
    known = await table.known_providers(session, providers)
    for at, provider in enumerate(providers):
        if provider not in known:
            raise BadField(f"model_filters.included_providers.{at}", "is no provider of this organization")
    excluded = row.model_filters["excluded_models"]
    known = await table.known_models(session, excluded)
    for at, name in enumerate(excluded):
        if name not in known:
            raise BadField(f"model_filters.excluded_models.{at}", "is no model of the catalog")


async def _judge_chain(session: AsyncSession, row: RoutingPolicyRow) -> None:
    names = [f"{entry['provider']}/{entry['model_id']}" for entry in row.fallback_chain]
    providers = await table.known_providers(session, [entry["provider"] for entry in row.fallback_chain])
    models = await table.known_models(session, names)
    for at, (entry, name) in enumerate(zip(row.fallback_chain, names, strict=True)):
        if entry["provider"] not in providers:
            raise BadField(f"fallback_chain.{at}.provider", "is no provider of this organization")
        if name not in models:
            raise BadField(f"fallback_chain.{at}.model_id", "is no model of this provider in the catalog")
        if name in names[:at]:
            raise BadField(f"fallback_chain.{at}.model_id", "stands in the chain twice")


def _say(change: Change, did: str, row: RoutingPolicyRow, **told: Any) -> None:
    change.record(did, "routing_policy", row.id, name=row.name, **told)
    change.touch("policy", change.tenant_id, urgent=True)
