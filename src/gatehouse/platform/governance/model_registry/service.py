"""Creates, changes and deletes entries of the model registry."""

from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.http.variants import Variant
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.storage.conflicts import unique
from gatehouse.foundation.storage.locks import ScopedLock, require_room
from gatehouse.platform.changes.change import Change
from gatehouse.platform.governance.model_registry import table, usage, variants
from gatehouse.platform.governance.model_registry.errors import (
    FixedField,
    InvalidStatusTransition,
    ModelAlreadyExists,
    TooManyModels,
)
from gatehouse.platform.governance.model_registry.schemas import (
    TRANSITIONS,
    NewRegisteredModel,
    RegisteredModel,
    RegisteredModelUpdate,
    Status,
)
from gatehouse.platform.governance.model_registry.table import RegisteredModelRow
from gatehouse.platform.governance.model_registry.usage import UNUSED, ModelName, Use

#: Maximum number of models of a registry.
MAX_MODELS: Final = 20_000
RESOURCE: Final = "registered_model"


async def with_usage(
    session: AsyncSession, rows: Sequence[RegisteredModelRow], variant: Variant
) -> list[RegisteredModel]:
    """Return the entries of a response, with the usage of the models."""
    uses = await usage.by_model(session, {(row.provider, row.model_id) for row in rows})
    return [entry(row, uses.get((row.provider, row.model_id), UNUSED), variant) for row in rows]


async def create(change: Change, new: NewRegisteredModel, *, unique_model_id: bool) -> RegisteredModelRow:
    """Add an entry. With `unique_model_id`, an entry of another provider with the same id is a conflict too. Raises
    `ModelAlreadyExists`, `TooManyModels`."""
    if unique_model_id and await table.lock_model_id(change.session, new.model_id):
        raise ModelAlreadyExists(None, new.model_id)
    await require_capacity(change.session, 1)
    now = utc_now()
    values = {**new.model_dump(), "risk_tier": new.risk_tier or "unclassified"}
    row = RegisteredModelRow(id=new_id(), tenant_id=change.tenant_id, created_at=now, updated_at=now, **values)
    change.session.add(row)
    with unique(ModelAlreadyExists(new.provider, new.model_id)):
        await change.session.flush()
    record(change, "created", row.id, (row.provider, row.model_id), **_without_name(values))
    return row


async def require_capacity(session: AsyncSession, new_models: int) -> None:
    """Lock the registry against concurrent additions. Raises `TooManyModels` if the new models exceed the limit."""
    await require_room(
        session, ScopedLock.MODEL_REGISTRY, table.count_models, limit=MAX_MODELS, full=TooManyModels, adding=new_models
    )


async def update(change: Change, row: RegisteredModelRow, body: RegisteredModelUpdate) -> RegisteredModelRow:
    """Change an entry. Raises `FixedField`, `InvalidStatusTransition`."""
    changed = {name: value for name, value in body.sent().items() if _differs(getattr(row, name), value)}
    for field in ("model_id", "provider"):
        if field in changed:
            raise FixedField(field)
    if not changed:
        return row
    transition: dict[str, str] = {}
    if "validation_status" in changed:
        transition = _transition(row.validation_status, changed["validation_status"])
    changes = {name: {"old": getattr(row, name), "new": value} for name, value in changed.items()}
    row.assign(changed)
    record(change, "updated", row.id, (row.provider, row.model_id), changes=changes, **transition)
    return row


async def delete(change: Change, row: RegisteredModelRow) -> None:
    await change.session.delete(row)
    values = {name: getattr(row, name) for name in NewRegisteredModel.model_fields}
    record(change, "deleted", row.id, (row.provider, row.model_id), **_without_name(values))


def next_statuses(row: RegisteredModelRow) -> list[Status]:
    """Return the statuses to which the entry can change."""
    status: Any = row.validation_status
    return sorted(TRANSITIONS[status])


def _transition(old: Any, new: Any) -> dict[str, str]:
    """Return the audit details of a transition. Raises `InvalidStatusTransition` if it is not permitted."""
    if new not in TRANSITIONS[old]:
        raise InvalidStatusTransition(old, new, TRANSITIONS[old])
    return {"old_status": old, "new_status": new}


def _differs(old: Any, new: Any) -> bool:
    # The order of tags is significant too.
    return bool(old != new or (isinstance(old, dict) and list(old) != list(new)))


def entry(row: RegisteredModelRow, use: Use, variant: Variant) -> RegisteredModel:
    columns = {name: getattr(row, name) for name in RegisteredModel.model_fields if hasattr(row, name)}
    return RegisteredModel.model_validate(
        {
            **columns,
            "display_name": row.display_name or row.model_id,
            "tags": variants.tags(variant, row.tags),
            "request_count_30d": use.requests,
            "first_seen_at": use.first_at,
            "last_seen_at": use.last_at,
        }
    )


def record(change: Change, verb: str, entry_id: UUID, name: ModelName, **details: Any) -> None:
    """Record and publish a change. The response waits until every worker has compiled the policy."""
    provider, model_id = name
    change.record(
        f"registered_model.{verb}", RESOURCE, entry_id, target_provider=provider, target_model=model_id, **details
    )
    change.touch("policy", change.tenant_id, urgent=True)


def _without_name(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values without provider and model id, which audit events contain as their target."""
    return {name: value for name, value in values.items() if name not in {"provider", "model_id"}}
