"""Finds models that the gateway has called but that are not registered, and adds drafts for them."""

from typing import Any

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.ids import new_id
from gatehouse.platform.changes.change import Change
from gatehouse.platform.governance.model_registry import service, table, usage
from gatehouse.platform.governance.model_registry.schemas import Discovered, DiscoveredModel, Discovery, RiskTier
from gatehouse.platform.governance.model_registry.tiers import infer_tier
from gatehouse.platform.governance.model_registry.usage import ModelName, Use


async def discover(change: Change, options: Discovery) -> Discovered:
    """Add a draft for every model that was called in the lookback period and is not in the registry. Raises
    `TooManyModels`."""
    called = await usage.by_model(change.session, lookback_days=options.lookback_days)
    registered = await table.rows_by_name(change.session)
    missing = {name: _tier(name[1], options) for name in called if name not in registered}
    added: set[ModelName] = set()
    if missing and not options.dry_run:
        await service.require_capacity(change.session, len(missing))
        rows = [_draft(change, name, tier) for name, tier in missing.items()]
        added = await table.add_missing(change.session, rows)
        registered = await table.rows_by_name(change.session)
        for name in sorted(added):
            new = registered[name]
            fields = {"risk_tier": new.risk_tier, "validation_status": new.validation_status}
            service.record(change, "created", new.id, name, **fields, discovered=True)
    models = []
    for name, use in sorted(called.items()):
        row = registered.get(name)
        tier, status = (missing[name], "draft") if row is None else (row.risk_tier, row.validation_status)
        models.append(_discovered_model(name, use, row is None or name in added, tier, status))
    existing = sum(model.status == "existing" for model in models)
    return Discovered(
        discovered=len(models), created=len(added), existing=existing, dry_run=options.dry_run, models=models
    )


def _tier(model_id: str, options: Discovery) -> RiskTier:
    if isinstance(options.auto_assign_tier, str):
        return options.auto_assign_tier
    return infer_tier(model_id) if options.auto_assign_tier else "unclassified"


def _draft(change: Change, name: ModelName, tier: RiskTier) -> dict[str, Any]:
    now = utc_now()
    return {
        "id": new_id(),
        "tenant_id": change.tenant_id,
        "provider": name[0],
        "model_id": name[1],
        "risk_tier": tier,
        "validation_status": "draft",
        "tags": {},
        "created_at": now,
        "updated_at": now,
    }


def _discovered_model(
    name: ModelName, use: Use, is_new: bool, risk_tier: str, validation_status: str
) -> DiscoveredModel:
    return DiscoveredModel.model_validate(
        {
            "provider": name[0],
            "model_id": name[1],
            "status": "created" if is_new else "existing",
            "risk_tier": risk_tier,
            "validation_status": validation_status,
            "request_count_30d": use.requests,
            "first_seen_at": use.first_at,
            "last_seen_at": use.last_at,
        }
    )
