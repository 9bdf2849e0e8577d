"""Creates, changes and deletes the entries of the catalog."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.errors import Conflict, FieldFault, NotFound, Unprocessable
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.storage.conflicts import unique
from gatehouse.platform.changes.change import Change
from gatehouse.platform.routing.model_catalog.known_models import KnownModel
from gatehouse.platform.routing.model_catalog.schemas import (
    BulkUpdate,
    Capabilities,
    ModelConfig,
    ModelUpdate,
    NewModel,
)
from gatehouse.platform.routing.model_catalog.table import (
    PRICES,
    ModelConfigRow,
    clear_default,
    lock_default,
    lock_model,
    models_by_id,
)
from gatehouse.platform.routing.model_catalog.vendor_data import load_known
from gatehouse.platform.routing.providers.table import ProviderRow, find_provider
from gatehouse.policy.routing import SPECIAL_USES

#: Fields that null clears.
_NULLABLE = frozenset({"display_name", "context_window", "max_output_tokens", *PRICES})


class ModelConfigNotFound(NotFound):
    message = "Model config not found"


class ModelExists(Conflict):
    code = "model_exists"
    message = "The catalog already has an entry with this provider and model_id."


class UnknownProvider(Unprocessable):
    """`provider` is not one of the organization's."""

    def __init__(self, provider: str) -> None:
        message = f"{provider!r} is not a provider of this organization. GET /api/admin/providers lists them."
        super().__init__(faults=[FieldFault("provider", message)])


class Contradiction(Unprocessable):
    """Two fields for the same value differ."""

    def __init__(self, field: str, other: str) -> None:
        super().__init__(faults=[FieldFault(field, f"contradicts {other}")])


class FixedModelField(Unprocessable):
    def __init__(self, field: str) -> None:
        super().__init__(faults=[FieldFault(field, "cannot be changed: create another entry")])


def shown(row: ModelConfigRow) -> ModelConfig:
    capabilities = Capabilities.model_validate({**row.capabilities, "max_context_window": row.context_window})
    fields = {name: getattr(row, name) for name in ModelConfig.model_fields if hasattr(row, name)}
    if row.has_own_prices:
        fields["price_source"] = "administrator"
    return ModelConfig.model_validate({**fields, "capabilities": capabilities, "supports_vision": capabilities.vision})


async def create(change: Change, new: NewModel) -> ModelConfigRow:
    """Create an entry. Limits, capabilities and prices that are not sent are taken from the known models. Raises
    `UnknownProvider`, `ModelExists`, `Contradiction`."""
    values = _values(new.model_dump(exclude_unset=True))
    if new.is_default:
        await lock_default(change.session)
    provider = await _check_provider(change.session, new.provider)
    known = await load_known(change.session)
    values = with_known(values, known.find_at(provider.record, new.model_id))
    row = new_row(change, new.provider, new.model_id, values)
    change.session.add(row)
    with unique(ModelExists):
        await change.session.flush()
    if row.is_default:
        await clear_default(change.session, keep=row.id)
    change.record(
        "model_config.created", "model_config", row.id, provider=row.provider, model_id=row.model_id, **values
    )
    recompile_policy(change)
    return row


async def update(
    change: Change, row: ModelConfigRow, body: ModelUpdate, *, locked: Callable[[], None]
) -> ModelConfigRow:
    """Change an entry. Calls `locked` once the row is locked. Raises `FixedModelField`, `Contradiction`,
    `ModelConfigNotFound`, and `UnknownProvider` if the entry would become active without a provider."""
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
    recompile_policy(change)
    return row


async def delete(change: Change, row: ModelConfigRow) -> None:
    await change.session.delete(row)
    change.record(
        "model_config.deleted", "model_config", row.id, target_provider=row.provider, target_model=row.model_id
    )
    if row.kill_switch_disabled_at is not None:
        change.touch("switch", row.id, urgent=True)
    recompile_policy(change)


async def set_active(change: Change, body: BulkUpdate) -> Sequence[ModelConfigRow]:
    """Activate or deactivate entries, and return them. Unknown ids are ignored."""
    rows = await models_by_id(change.session, list(dict.fromkeys(body.model_ids)))
    for row in rows:
        apply(row, {"is_active": body.is_active})
    if rows:
        ids = [str(row.id) for row in rows]
        change.record("model_config.bulk_updated", "model_config", is_active=body.is_active, model_ids=ids)
        recompile_policy(change)
    return rows


def with_known(values: Mapping[str, Any], known: KnownModel | None) -> dict[str, Any]:
    """Return the columns of a new entry: `values`, and the known values of columns that `values` does not have. Prices
    are filled together or not at all."""
    if known is None:
        return dict(values)
    filled = {"context_window": known.context_window, "max_output_tokens": known.max_output_tokens, **values}
    filled["capabilities"] = {**known.capabilities.model_dump(exclude_none=True), **values.get("capabilities", {})}
    if known.usd_per_million_tokens is not None and values.keys().isdisjoint(PRICES):
        filled |= known.usd_per_million_tokens.columns
        filled |= {"price_source": known.source, "price_recorded_on": known.recorded_on}
    return filled


def new_row(change: Change, provider: str, model_id: str, values: Mapping[str, Any]) -> ModelConfigRow:
    """Return an entry that is not stored yet: the defaults, replaced by `values`."""
    now = utc_now()
    row = ModelConfigRow(
        id=new_id(), tenant_id=change.tenant_id, provider=provider, model_id=model_id, display_name=None,
        is_active=True, is_default=False, access="open", context_window=None, max_output_tokens=None, capabilities={},
        kill_switch_disabled_at=None, disabled_reason=None, created_at=now, updated_at=now,
        price_source=None, price_recorded_on=None, **dict.fromkeys(PRICES),
    )  # fmt: skip
    apply(row, values)
    row.capabilities = {"streaming": not any(map(row.capabilities.get, SPECIAL_USES)), **row.capabilities}
    return row


def apply(row: ModelConfigRow, values: Mapping[str, Any]) -> None:
    """Set the row's columns to `values`. Capabilities that are not in `values` are kept; None removes one. If a price
    changes and `values` has no `price_source`, the prices are treated as set by an administrator."""
    if "price_source" not in values and any(
        getattr(row, name) != values.get(name, getattr(row, name)) for name in PRICES
    ):
        row.price_source = row.price_recorded_on = None
    if "capabilities" in values:
        values = {**values, "capabilities": _merged(row.capabilities, values["capabilities"])}
    row.assign(values)
    if row.context_window is not None or "max_context_window" in row.capabilities:
        row.capabilities = {**row.capabilities, "max_context_window": row.context_window}


def _merged(capabilities: Mapping[str, Any], changed: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in {**capabilities, **changed}.items() if value is not None}


def recompile_policy(change: Change) -> None:
    """Make the workers compile the organization's policy again. The response waits until they have."""
    change.touch("policy", change.tenant_id, urgent=True)


async def _check_provider(session: AsyncSession, provider: str) -> ProviderRow:
    """Return the provider. Raises `UnknownProvider`."""
    # Locked, so that the provider is not removed while an entry is added to it.
    row = await find_provider(session, provider, lock=True)
    if row is None:
        raise UnknownProvider(provider)
    return row


def _values(sent: dict[str, Any]) -> dict[str, Any]:
    """Return a body's fields as columns. Vision and the context window have two fields each. Raises `Contradiction` if
    the two differ."""
    values = {name: value for name, value in sent.items() if name not in {"provider", "model_id", "supports_vision"}}
    sent_capabilities = values.pop("capabilities", None) or {}
    capabilities = dict(sent_capabilities)
    vision = sent.get("supports_vision")
    if vision is not None and capabilities.setdefault("vision", vision) != vision:
        raise Contradiction("supports_vision", "capabilities.vision")
    window = capabilities.pop("max_context_window", None)
    if window is not None and values.setdefault("context_window", window) != window:
        raise Contradiction("context_window", "capabilities.max_context_window")
    return {**values, "capabilities": capabilities} if capabilities else values
