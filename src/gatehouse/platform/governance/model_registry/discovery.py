"""What the gateway calls and nobody has registered."""

from typing import Any

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.ids import new_id
from gatehouse.platform.change import Change
from gatehouse.platform.governance.model_registry import figures, service, table
from gatehouse.platform.governance.model_registry.figures import Name, Use
from gatehouse.platform.governance.model_registry.schemas import Discovered, DiscoveredModel, Discovery
from gatehouse.platform.governance.model_registry.states import RiskTier
from gatehouse.platform.governance.model_registry.tiers import UNKNOWN_PROVIDER, inferred


async def discover(change: Change, wanted: Discovery) -> Discovered:
    """Adds a draft for every model that was called lately and is not in the registry. Raises `TooManyModels`."""
    found = await figures.uses(change.session, lately=wanted.lookback_days)
    called = {_named(name): use for name, use in found.items()}
    held = await table.names(change.session)
    drafts = [_draft(name, wanted) for name in called if name not in held]
    added: set[Name] = set()
    if drafts and not wanted.dry_run:
        await service.make_room(change.session, len(drafts))
        added = await table.add_missing(change.session, [_row(change, draft) for draft in drafts])
        held = await table.names(change.session)
        for name in sorted(added):
            row = held[name]
            service.say(
                change, "created", row.id, name,
                risk_tier=row.risk_tier, validation_status=row.validation_status, discovered=True,
            )  # fmt: skip
    tiers = {(draft["provider"], draft["model_id"]): draft["risk_tier"] for draft in drafts}
    models = []
    for name, use in sorted(called.items()):
        row = held.get(name)
        new = name in added or row is None
        standing = (tiers[name], "draft") if row is None else (row.risk_tier, row.validation_status)
        models.append(_shown(name, use, new, *standing))
    existing = sum(model.status == "existing" for model in models)
    return Discovered(
        discovered=len(models), created=len(added), existing=existing, dry_run=wanted.dry_run, models=models
    )


def _named(name: Name) -> Name:
    """With a provider, where no record says whose model it was."""
    provider, model_id = name
    if provider:
        return name
    known = inferred(model_id)
    return (known.provider if known else UNKNOWN_PROVIDER), model_id


def _draft(name: Name, wanted: Discovery) -> dict[str, Any]:
    return {"provider": name[0], "model_id": name[1], "risk_tier": _tier(name[1], wanted)}


def _tier(model_id: str, wanted: Discovery) -> RiskTier:
    if isinstance(wanted.auto_assign_tier, str):
        return wanted.auto_assign_tier
    known = inferred(model_id) if wanted.auto_assign_tier else None
    return known.tier if known else "unclassified"


def _row(change: Change, draft: dict[str, Any]) -> dict[str, Any]:
    now = utc_now()
    own = {"id": new_id(), "tenant_id": change.tenant_id, "validation_status": "draft", "tags": {}}
    return {**draft, **own, "created_at": now, "updated_at": now}


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
