"""What the gateway calls and nobody has registered."""

from typing import Any

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.ids import new_id
from gatehouse.platform.change import Change
from gatehouse.platform.governance.model_registry import figures, service, table
from gatehouse.platform.governance.model_registry.figures import Name, Use
from gatehouse.platform.governance.model_registry.schemas import Discovered, DiscoveredModel, Discovery
from gatehouse.platform.governance.model_registry.states import RiskTier
from gatehouse.platform.governance.model_registry.tiers import inferred


async def discover(change: Change, wanted: Discovery) -> Discovered:
    """Adds a draft for every model that was called lately and is not in the registry. Raises `TooManyModels`."""
    called = await figures.uses(change.session, lately=wanted.lookback_days)
    held = await table.names(change.session)
    missing = {name: _tier(name[1], wanted) for name in called if name not in held}
    added: set[Name] = set()
    if missing and not wanted.dry_run:
        await service.make_room(change.session, len(missing))
        rows = [_draft(change, name, tier) for name, tier in missing.items()]
        added = await table.add_missing(change.session, rows)
        held = await table.names(change.session)
        for name in sorted(added):
            new = held[name]
            standing = {"risk_tier": new.risk_tier, "validation_status": new.validation_status}
            service.say(change, "created", new.id, name, **standing, discovered=True)
    models = []
    for name, use in sorted(called.items()):
        row = held.get(name)
        tier, status = (missing[name], "draft") if row is None else (row.risk_tier, row.validation_status)
        models.append(_shown(name, use, row is None or name in added, tier, status))
    existing = sum(model.status == "existing" for model in models)
    return Discovered(
        discovered=len(models), created=len(added), existing=existing, dry_run=wanted.dry_run, models=models
    )


def _tier(model_id: str, wanted: Discovery) -> RiskTier:
    if isinstance(wanted.auto_assign_tier, str):
        return wanted.auto_assign_tier
    return inferred(model_id) if wanted.auto_assign_tier else "unclassified"


def _draft(change: Change, name: Name, tier: RiskTier) -> dict[str, Any]:
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


def _shown(name: Name, use: Use, new: bool, risk_tier: str, validation_status: str) -> DiscoveredModel:
    return DiscoveredModel.model_validate(
        {
            "provider": name[0],
            "model_id": name[1],
            "status": "created" if new else "existing",
            "risk_tier": risk_tier,
            "validation_status": validation_status,
            "request_count_30d": use.requests,
            "first_seen_at": use.first_at,
            "last_seen_at": use.last_at,
        }
    )
