"""The rules of the catalog."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.ids import new_id
from gatehouse.platform.changes.change import Change
from gatehouse.platform.routing.model_catalog.errors import (
    Contradiction,
    FixedModelField,
    ModelConfigNotFound,
    ModelExists,
    UnknownProvider,
)
from gatehouse.platform.routing.model_catalog.schemas import (
    BulkUpdate,
    Capabilities,
    ModelConfig,
    ModelUpdate,
    NewModel,
)
from gatehouse.platform.routing.model_catalog.table import (
    ModelConfigRow,
    clear_default,
    lock_default,
    lock_model,
    models_by_id,
)
from gatehouse.platform.routing.providers.table import find_provider

_PRICES = (
    "cost_per_input_token", "cost_per_output_token", "cost_per_cached_input_token", "cost_per_cache_write_token",
)  # fmt: skip
#: Fields that null removes.
_NULLABLE = frozenset({"display_name", "context_window", "max_output_tokens", *_PRICES})


def shown(row: ModelConfigRow) -> ModelConfig:
    capabilities = Capabilities.model_validate({**row.capabilities, "max_context_window": row.context_window})
    fields = {name: getattr(row, name) for name in ModelConfig.model_fields if hasattr(row, name)}
    return ModelConfig.model_validate({**fields, "capabilities": capabilities, "supports_vision": capabilities.vision})


async def create(change: Change, new: NewModel) -> ModelConfigRow:
    """Create an entry. Raises `UnknownProvider`, `ModelExists`, `Contradiction`."""
    values = _values(new.model_dump(exclude_unset=True))
    if new.is_default:
        await lock_default(change.session)
    await _check_provider(change.session, new.provider)
    row = new_row(change, new.provider, new.model_id, values)
    change.session.add(row)
    try:
        await change.session.flush()
    except IntegrityError:
        raise ModelExists from None
    if row.is_default:
        await clear_default(change.session, keep=row.id)
    change.record(
        "model_config.created", "model_config", row.id, provider=row.provider, model_id=row.model_id, **values
    )
    touch(change)
    return row


async def update(
    change: Change, row: ModelConfigRow, body: ModelUpdate, *, locked: Callable[[], None]
) -> ModelConfigRow:
    """Change an entry. Calls `locked` once the row is locked. Raises `FixedModelField`, `Contradiction`,
    `ModelConfigNotFound`; `UnknownProvider` where an entry without provider would become active."""
    sent = body.model_dump(exclude_unset=True)
    for field in ("provider", "model_id"):
        if sent.pop(field, None) not in (None, getattr(row, field)):
            raise FixedModelField(field)
    values = _values({name: value for name, value in sent.items() if value is not None or name in _NULLABLE})
    as_default = bool(values.get("is_default"))
    # Always in this order: the default's lock, the provider, the entries.
    if as_default:
        await lock_default(change.session)
    if values.get("is_active") and not row.is_active:
        await _check_provider(change.session, row.provider)
    if not await lock_model(change.session, row, as_default=as_default):
        raise ModelConfigNotFound
    locked()
    apply(row, values)
    if values.get("is_default"):
        await clear_default(change.session, keep=row.id)
    change.record("model_config.updated", "model_config", row.id, **values)
    touch(change)
    return row


async def delete(change: Change, row: ModelConfigRow) -> None:
    await change.session.delete(row)
    change.record(
        "model_config.deleted", "model_config", row.id, target_provider=row.provider, target_model=row.model_id
    )
    if row.kill_switch_disabled_at is not None:
        change.touch("switch", row.id, urgent=True)
    touch(change)


async def set_active(change: Change, body: BulkUpdate) -> Sequence[ModelConfigRow]:
    """Activate or deactivate entries, and return them. Unknown ids are ignored."""
    rows = await models_by_id(change.session, list(dict.fromkeys(body.model_ids)))
    for row in rows:
        apply(row, {"is_active": body.is_active})
    if rows:
        ids = [str(row.id) for row in rows]
        change.record("model_config.bulk_updated", "model_config", is_active=body.is_active, model_ids=ids)
        touch(change)
    return rows


def new_row(change: Change, provider: str, model_id: str, values: Mapping[str, Any]) -> ModelConfigRow:
    """Return an entry that is not stored yet: the defaults, replaced by `values`."""
    now = utc_now()
    row = ModelConfigRow(
        id=new_id(), tenant_id=change.tenant_id, provider=provider, model_id=model_id, display_name=None,
        is_active=True, is_default=False, access="open", context_window=None, max_output_tokens=None, capabilities={},
        kill_switch_disabled_at=None, disabled_reason=None, created_at=now, updated_at=now,
        **dict.fromkeys(_PRICES),
    )  # fmt: skip
    apply(row, values)
    row.capabilities = {"streaming": not row.capabilities.get("embeddings", False), **row.capabilities}
    return row


def apply(row: ModelConfigRow, values: Mapping[str, Any]) -> None:
    """Set the row's columns to `values`. Capabilities that are not in `values` stay."""
    for name, value in values.items():
        setattr(row, name, {**row.capabilities, **value} if name == "capabilities" else value)
    if row.context_window is not None or "max_context_window" in row.capabilities:
        row.capabilities = {**row.capabilities, "max_context_window": row.context_window}
    row.updated_at = utc_now()


def touch(change: Change) -> None:
    """Have the policy compiled again. The response waits for it, so that the change is in force by then."""
    change.touch("policy", change.tenant_id, urgent=True)


async def _check_provider(session: AsyncSession, provider: str) -> None:
    """Raises `UnknownProvider`."""
    # Locked, so that the provider is not removed while an entry of it is added.
    if await find_provider(session, provider, lock=True) is None:
        raise UnknownProvider(provider)


def _values(sent: dict[str, Any]) -> dict[str, Any]:
    """Return a body's fields as columns. Vision and the context window have two fields each; raises `Contradiction`
    where these differ."""
    values = {name: value for name, value in sent.items() if name not in {"provider", "model_id", "supports_vision"}}
    sent_capabilities = values.pop("capabilities", None) or {}
    capabilities = {name: value for name, value in sent_capabilities.items() if value is not None}
    vision = sent.get("supports_vision")
    if vision is not None and capabilities.setdefault("vision", vision) != vision:
        raise Contradiction("supports_vision", "capabilities.vision")
    window = capabilities.pop("max_context_window", None)
    if window is not None and values.setdefault("context_window", window) != window:
        raise Contradiction("context_window", "capabilities.max_context_window")
    return {**values, "capabilities": capabilities} if capabilities else values
