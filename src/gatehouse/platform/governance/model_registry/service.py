"""The rules of the model registry."""

from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.http.variants import Variant
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.storage.locks import ScopedLock, require_room
from gatehouse.platform.change import Change
from gatehouse.platform.governance.model_registry import figures, table, variants
from gatehouse.platform.governance.model_registry.errors import (
    FixedField,
    InvalidStatusTransition,
    ModelAlreadyExists,
    TooManyModels,
)
from gatehouse.platform.governance.model_registry.figures import UNUSED, Name, Use
from gatehouse.platform.governance.model_registry.schemas import (
    NewRegisteredModel,
    RegisteredModel,
    RegisteredModelUpdate,
)
from gatehouse.platform.governance.model_registry.states import MOVES
from gatehouse.platform.governance.model_registry.table import RegisteredModelRow

#: Models a registry may have.
MOST: Final = 20_000
RESOURCE: Final = "registered_model"


async def shown(session: AsyncSession, rows: Sequence[RegisteredModelRow], variant: Variant) -> list[RegisteredModel]:
    uses = await figures.uses(session, {(row.provider, row.model_id) for row in rows})
    return [entry(row, uses.get((row.provider, row.model_id), UNUSED), variant) for row in rows]


async def create(change: Change, new: NewRegisteredModel, *, once_an_id: bool) -> RegisteredModelRow:
    """`once_an_id`: another provider's model of the same id is in the way too. Raises `ModelAlreadyExists`,
    `TooManyModels`."""
    if once_an_id and await table.lock_model_id(change.session, new.model_id):
        raise ModelAlreadyExists(None, new.model_id)
    await make_room(change.session, 1)
    now = utc_now()
    values = {**new.model_dump(), "risk_tier": new.risk_tier or "unclassified"}
    row = RegisteredModelRow(id=new_id(), tenant_id=change.tenant_id, created_at=now, updated_at=now, **values)
    change.session.add(row)
    try:
        await change.session.flush()
    except IntegrityError:
        raise ModelAlreadyExists(new.provider, new.model_id) from None
    say(change, "created", row.id, (row.provider, row.model_id), **_own(values))
    return row


async def make_room(session: AsyncSession, more: int) -> None:
    """Raises `TooManyModels`."""
    await require_room(
        session, ScopedLock.MODEL_REGISTRY, table.count_models, limit=MOST, full=TooManyModels, adding=more
    )


async def update(change: Change, row: RegisteredModelRow, body: RegisteredModelUpdate) -> RegisteredModelRow:
    """Raises `FixedField`, `InvalidStatusTransition`; then nothing changes."""
    changed = {name: value for name, value in body.sent().items() if _differs(getattr(row, name), value)}
    for field in ("model_id", "provider"):
        if field in changed:
            raise FixedField(field)
    if not changed:
        return row
    moved: dict[str, str] = {}
    if "validation_status" in changed:
        moved = _moved(row.validation_status, changed["validation_status"])
    changes = {name: {"old": getattr(row, name), "new": value} for name, value in changed.items()}
    for name, value in changed.items():
        setattr(row, name, value)
    row.updated_at = utc_now()
    say(change, "updated", row.id, (row.provider, row.model_id), changes=changes, **moved)
    return row


async def delete(change: Change, row: RegisteredModelRow) -> None:
    await change.session.delete(row)
    last = {name: getattr(row, name) for name in NewRegisteredModel.model_fields}
    say(change, "deleted", row.id, (row.provider, row.model_id), **_own(last))


def _moved(old: Any, new: Any) -> dict[str, str]:
    """Raises `InvalidStatusTransition`."""
    if new not in MOVES[old]:
        raise InvalidStatusTransition(old, new, MOVES[old])
    return {"old_status": old, "new_status": new}


def _differs(held: Any, wanted: Any) -> bool:
    # The order of tags counts too.
    return bool(held != wanted or (isinstance(held, dict) and list(held) != list(wanted)))


def entry(row: RegisteredModelRow, use: Use, variant: Variant) -> RegisteredModel:
    own = {name: getattr(row, name) for name in RegisteredModel.model_fields if hasattr(row, name)}
    return RegisteredModel.model_validate(
        {
            **own,
            "display_name": row.display_name or row.model_id,
            "tags": variants.tags(variant, row.tags),
            "request_count_30d": use.requests,
            "first_seen_at": use.first_at,
            "last_seen_at": use.last_at,
        }
    )


def say(change: Change, verb: str, entry_id: UUID, name: Name, **details: Any) -> None:
    """The gateway judges by the registry: the answer waits until every worker has compiled the policy anew."""
    provider, model_id = name
    change.record(
        f"registered_model.{verb}", RESOURCE, entry_id, target_provider=provider, target_model=model_id, **details
    )
    change.touch("policy", change.tenant_id, urgent=True)


def _own(values: Mapping[str, Any]) -> dict[str, Any]:
    """Without the name, which each event has in places of its own."""
    return {name: value for name, value in values.items() if name not in {"provider", "model_id"}}
