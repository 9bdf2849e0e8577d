"""The rules of the model registry."""

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.http.variants import Variant
from gatehouse.foundation.ids import new_id
from gatehouse.platform.change import Change
from gatehouse.platform.governance.model_registry import table, variants
from gatehouse.platform.governance.model_registry.errors import (
    FixedField,
    InvalidStatusTransition,
    ModelAlreadyExists,
    TooManyModels,
)
from gatehouse.platform.governance.model_registry.schemas import (
    NewRegisteredModel,
    RegisteredModel,
    RegisteredModelUpdate,
)
from gatehouse.platform.governance.model_registry.states import MOVES
from gatehouse.platform.governance.model_registry.table import RegisteredModelRow

#: Models a registry may have.
MOST: Final = 20_000
_RESOURCE: Final = "registered_model"


async def shown(session: AsyncSession, rows: Sequence[RegisteredModelRow], variant: Variant) -> list[RegisteredModel]:
    counts = await table.request_counts(session, rows)
    return [_shown(row, counts.get((row.provider, row.model_id), 0), variant) for row in rows]


async def create(change: Change, new: NewRegisteredModel, *, once_an_id: bool) -> RegisteredModelRow:
    """`once_an_id`: another provider's model of the same id is in the way too. Raises `ModelAlreadyExists`,
    `TooManyModels`."""
    if once_an_id and await table.lock_model_id(change.session, new.model_id):
        raise ModelAlreadyExists(None, new.model_id)
    if await table.count_models(change.session) >= MOST:
        raise TooManyModels
    now = utc_now()
    values = {**new.model_dump(), "risk_tier": new.risk_tier or "unclassified"}
    row = RegisteredModelRow(
        id=new_id(), tenant_id=change.tenant_id, first_seen_at=None, last_seen_at=None, created_at=now, updated_at=now,
        **values,
    )  # fmt: skip
    change.session.add(row)
    try:
        await change.session.flush()
    except IntegrityError:
        raise ModelAlreadyExists(new.provider, new.model_id) from None
    _say(change, "created", row, **values)
    return row


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
    for name, value in changed.items():
        setattr(row, name, value)
    row.updated_at = utc_now()
    _say(change, "updated", row, **changed, **moved)
    return row


async def delete(change: Change, row: RegisteredModelRow) -> None:
    await change.session.delete(row)
    _say(change, "deleted", row, risk_tier=row.risk_tier, validation_status=row.validation_status)


def _moved(old: Any, new: Any) -> dict[str, str]:
    """Raises `InvalidStatusTransition`."""
    if new not in MOVES[old]:
        raise InvalidStatusTransition(old, new, MOVES[old])
    return {"old_status": old, "new_status": new}


def _differs(held: Any, wanted: Any) -> bool:
    # The order of tags counts too.
    return bool(held != wanted or (isinstance(held, dict) and list(held) != list(wanted)))


def _shown(row: RegisteredModelRow, requests: int, variant: Variant) -> RegisteredModel:
    own = {name: getattr(row, name) for name in RegisteredModel.model_fields if hasattr(row, name)}
    return RegisteredModel.model_validate(
        {
            **own,
            "display_name": row.display_name or row.model_id,
            "tags": variants.tags(variant, row.tags),
            "request_count_30d": requests,
        }
    )


def _say(change: Change, verb: str, row: RegisteredModelRow, **details: Any) -> None:
    """Policy rules judge by the registry: the answer waits until every worker has compiled the policy anew."""
    named = {"target_provider": row.provider, "target_model": row.model_id}
    told = {name: value for name, value in details.items() if name not in {"provider", "model_id"}}
    change.record(f"registered_model.{verb}", _RESOURCE, row.id, **named, **told)
    change.touch("policy", change.tenant_id, urgent=True)
