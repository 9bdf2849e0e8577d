"""Creates, changes and deletes routing policies, and returns their analytics."""

from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.errors import Conflict, FieldFault, NotFound, Unprocessable
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.storage.locks import ScopedLock, require_room
from gatehouse.platform.changes.change import Change
from gatehouse.platform.records.minutes import aliases
from gatehouse.platform.records.minutes.aliases import DeploymentCount
from gatehouse.platform.routing.cost_routing import table
from gatehouse.platform.routing.cost_routing.schemas import (
    Analytics,
    ByDeployment,
    ByModel,
    Decisions,
    Filters,
    NewPolicy,
    Policy,
    PolicyUpdate,
    Span,
)
from gatehouse.platform.routing.cost_routing.table import ModelUsage, RoutingPolicyRow

#: Maximum number of policies of an organization.
MAX_POLICIES: Final = 200
_DAYS: Final[Mapping[Span, int]] = {"day": 1, "week": 7, "month": 30}
_NANO_USD: Final = Decimal("0.000000001")


class RoutingPolicyNotFound(NotFound):
    message = "Routing policy not found"


class PolicyConflict(Conflict):
    """There is another enabled policy for the same groups; `conflicting_policy_id` is its id."""

    code = "policy_conflict"

    @classmethod
    def of(cls, policy_id: UUID, name: str, *, default: bool) -> "PolicyConflict":
        conflict = "The organization's default is" if default else "One of the groups already has"
        return cls(
            f"{conflict} the enabled policy {name!r}. Disable it, or change its groups.",
            conflicting_policy_id=str(policy_id),
        )


class TooManyRoutingPolicies(Conflict):
    code = "too_many_policies"
    message = "The organization has the maximum number of routing policies. Remove some first."


class InvalidRoutingPolicyField(Unprocessable):
    def __init__(self, field: str, fault: str) -> None:
        super().__init__(faults=[FieldFault(field, fault)])


def shown(row: RoutingPolicyRow) -> Policy:
    cap = None
    if row.cost_cap_usd is not None:
        cap = {"max_cost_per_request_usd": row.cost_cap_usd, "action_on_exceed": row.cost_cap_action}
    fields = {name: getattr(row, name) for name in Policy.model_fields if hasattr(row, name)}
    filters = Filters.model_validate(row.model_filters).model_dump()
    return Policy.model_validate({**fields, "policy_id": row.id, "model_filters": filters, "cost_cap": cap})


async def create(change: Change, new: NewPolicy) -> RoutingPolicyRow:
    """Create a policy. Raises `InvalidRoutingPolicyField`, `PolicyConflict`, `TooManyRoutingPolicies`."""
    await require_room(
        change.session,
        ScopedLock.ROUTING_POLICIES,
        table.count_policies,
        limit=MAX_POLICIES,
        full=TooManyRoutingPolicies,
    )
    now = utc_now()
    values = _columns(new.model_dump(mode="json"))
    row = RoutingPolicyRow(id=new_id(), tenant_id=change.tenant_id, created_at=now, updated_at=now, **values)
    await _check(change.session, row, set(values))
    change.session.add(row)
    _record(change, "routing_policy.created", row, policy=new.model_dump(mode="json"))
    return row


async def replace(change: Change, row: RoutingPolicyRow, new: NewPolicy) -> RoutingPolicyRow:
    """Replace all fields, including those that were not sent. Raises `InvalidRoutingPolicyField`, `PolicyConflict`."""
    return await _change(change, row, new.model_dump(mode="json"))


async def update(change: Change, row: RoutingPolicyRow, body: PolicyUpdate) -> RoutingPolicyRow:
    """Change the fields that were sent. Raises `InvalidRoutingPolicyField`, `PolicyConflict`."""
    return await _change(change, row, body.model_dump(mode="json", include=body.model_fields_set))


async def delete(change: Change, row: RoutingPolicyRow) -> None:
    """Delete a policy. Its groups then use the organization's default."""
    await change.session.delete(row)
    _record(change, "routing_policy.deleted", row)


async def analytics(session: AsyncSession, span: Span, *, policy_id: UUID | None, group_id: UUID | None) -> Analytics:
    """Return the analytics of `span`. `policy_id` and `group_id` limit them to one policy or group."""
    usage = await table.usage_by_model(session, _DAYS[span], policy_id=policy_id, group_id=group_id)
    midnight = utc_now().replace(hour=0, minute=0, second=0, microsecond=0)
    since = midnight - timedelta(days=_DAYS[span] - 1)
    deployments = await aliases.counts(session, since, policy_id=policy_id, group_id=group_id)
    answered = [model for model in usage if model.model_id is not None]
    requests = sum(model.requests for model in usage)
    cost = sum((model.cost_usd for model in usage), Decimal(0))
    return Analytics(
        period=span,
        total_requests=requests,
        routing_decisions=Decisions(
            by_model=_by_model(answered),
            by_deployment=_by_deployment(deployments),
            cost_cap_blocks=sum(model.cost_cap_blocks for model in usage),
            fallback_activations=sum(model.fallbacks for model in usage),
        ),
        total_cost_usd=cost,
        avg_cost_per_request_usd=(cost / requests).quantize(_NANO_USD) if requests else Decimal(0),
    )


def _by_model(answered: list[ModelUsage]) -> list[ByModel]:
    total = sum(model.requests for model in answered)
    return [
        ByModel(
            provider=model.provider or "",
            model_id=model.model_id or "",
            requests=model.requests,
            cost_usd=None if model.unpriced else model.cost_usd,
            pct=round(100 * model.requests / total, 2),
        )
        for model in answered
    ]


def _by_deployment(counts: list[DeploymentCount]) -> list[ByDeployment]:
    return [
        ByDeployment(
            model_alias=count.model_alias,
            provider=count.provider,
            model_id=count.model_id,
            shadow=count.shadow,
            requests=count.requests,
            cost_usd=count.cost_usd,
            pct=0.0 if count.shadow or not count.of_alias else round(100 * count.requests / count.of_alias, 2),
        )
        for count in counts
    ]


async def _change(change: Change, row: RoutingPolicyRow, sent: dict[str, Any]) -> RoutingPolicyRow:
    values = _columns(sent)
    with change.session.no_autoflush:
        changed = row.differing(values)
        if changed:
            row.assign(changed)
        await _check(change.session, row, set(values))
    if changed:
        _record(change, "routing_policy.updated", row, changed=sent)
    return row


def _columns(sent: Mapping[str, Any]) -> dict[str, Any]:
    """Return a body's fields as columns."""
    values = dict(sent)
    if "cost_cap" in values:
        cap = values.pop("cost_cap")
        values["cost_cap_usd"] = None if cap is None else Decimal(cap["max_cost_per_request_usd"])
        values["cost_cap_action"] = None if cap is None else cap["action_on_exceed"]
    if "group_ids" in values:
        values["group_ids"] = list(dict.fromkeys(map(UUID, values["group_ids"])))
    if "cache_ttl_seconds" in values:
        values["cache_ttl_seconds"] = values["cache_ttl_seconds"] or None
    return values


async def _check(session: AsyncSession, row: RoutingPolicyRow, sent: set[str]) -> None:
    """Check the policy with its new values; `sent` are the fields that were sent. The chain of an enabled policy is
    always checked, because its models may have been removed. Raises `InvalidRoutingPolicyField`, `PolicyConflict`."""
    if "group_ids" in sent:
        await _check_groups(session, row)
    if "model_filters" in sent:
        await _check_filters(session, row)
    if "fallback_chain" in sent or row.enabled:
        await _check_chain(session, row)
    if row.strategy == "manual_fallback" and not row.fallback_chain:
        raise InvalidRoutingPolicyField("fallback_chain", "is required for the strategy manual_fallback")
    if row.enabled:
        await table.lock(session)
        conflicting = await table.conflicting(session, row.id, row.group_ids)
        if conflicting is not None:
            raise PolicyConflict.of(conflicting.id, conflicting.name, default=not row.group_ids)


async def _check_groups(session: AsyncSession, row: RoutingPolicyRow) -> None:
    existing = await table.existing_groups(session, row.group_ids)
    for index, group_id in enumerate(row.group_ids):
        if group_id not in existing:
            raise InvalidRoutingPolicyField(f"group_ids.{index}", "is no group of this organization")


async def _check_filters(session: AsyncSession, row: RoutingPolicyRow) -> None:
    providers = row.model_filters["included_providers"]
    existing = await table.existing_providers(session, providers)
    for index, provider in enumerate(providers):
        if provider not in existing:
            raise InvalidRoutingPolicyField(
                f"model_filters.included_providers.{index}", "is no provider of this organization"
            )
    excluded = row.model_filters["excluded_models"]
    existing = await table.existing_models(session, excluded)
    for index, name in enumerate(excluded):
        if name not in existing:
            raise InvalidRoutingPolicyField(f"model_filters.excluded_models.{index}", "is no model of the catalog")


async def _check_chain(session: AsyncSession, row: RoutingPolicyRow) -> None:
    names = [f"{entry['provider']}/{entry['model_id']}" for entry in row.fallback_chain]
    providers = await table.existing_providers(session, [entry["provider"] for entry in row.fallback_chain])
    models = await table.existing_models(session, names)
    for index, (entry, name) in enumerate(zip(row.fallback_chain, names, strict=True)):
        if entry["provider"] not in providers:
            raise InvalidRoutingPolicyField(f"fallback_chain.{index}.provider", "is no provider of this organization")
        if name not in models:
            raise InvalidRoutingPolicyField(
                f"fallback_chain.{index}.model_id", "must be a model of this provider in the catalog"
            )
        if name in names[:index]:
            raise InvalidRoutingPolicyField(f"fallback_chain.{index}.model_id", "is in the chain twice")


def _record(change: Change, action: str, row: RoutingPolicyRow, **details: Any) -> None:
    """Record the change, and make workers compile the organization's policy again."""
    change.record(action, "routing_policy", row.id, name=row.name, **details)
    change.touch("policy", change.tenant_id, urgent=True)
