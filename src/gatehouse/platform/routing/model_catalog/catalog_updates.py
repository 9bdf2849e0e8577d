"""Updates prices, limits and capabilities in the catalog from known models. Values that an administrator set are
kept."""

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import Any, Final

import msgspec

from gatehouse.platform.changes.change import Change
from gatehouse.platform.routing.model_catalog.known_models import KnownModel, KnownModels, Source
from gatehouse.platform.routing.model_catalog.service import apply, recompile_policy
from gatehouse.platform.routing.model_catalog.table import PRICES, ModelConfigRow, all_models
from gatehouse.platform.routing.model_catalog.vendor_data import load_known
from gatehouse.platform.routing.providers.table import all_providers

Prices = Mapping[str, Decimal | None]

#: Maximum number of models in the details of an audit event.
MAX_RECORDED_MODELS: Final = 1_000
_LIMITS: Final = ("context_window", "max_output_tokens")


class EntryUpdate(msgspec.Struct, frozen=True):
    """The values of an entry before and after an update, and values that were kept although the data has others."""

    #: `provider/model-id`
    model: str
    #: the day on which the data was recorded
    recorded_on: date
    #: USD per token, by their columns
    old_prices: Prices
    #: equal to `old_prices` if no price changed, or only the source or the day of the prices
    new_prices: Prices
    prices_changed: bool
    #: limits and capabilities that changed, by their names: old and new value. None: unknown
    changed: dict[str, tuple[Any, Any]]
    #: limits and capabilities that were kept, by their names: the entry's value and the data's value
    kept: dict[str, tuple[Any, Any]]

    @property
    def is_changed(self) -> bool:
        return self.prices_changed or bool(self.changed)


async def update_catalog(change: Change, known: KnownModels, source: Source) -> list[EntryUpdate]:
    """Set the prices, limits and capabilities of the entries whose models are known. Returns the updates of entries
    that changed or that have other limits or capabilities than the data, sorted by name.

    Prices that an administrator set are kept, and so are prices from a file if `source` is `known_models`. A limit or
    capability is set if it is unknown. A file also replaces values that came from this version's data or from an
    earlier file.
    """
    providers = {row.id: row.record for row in await all_providers(change.session)}
    former = await load_known(change.session) if source == "price_file" else None
    updates: list[EntryUpdate] = []
    for row in await all_models(change.session):
        provider = providers.get(row.provider)
        model = None if provider is None else known.find_at(provider, row.model_id)
        if provider is None or model is None:
            continue
        replaceable = None if former is None else former.find_at(provider, row.model_id)
        updates.append(_update(row, model, source, replaceable))
    changed = [update for update in updates if update.is_changed]
    if changed:
        models = {update.model: _recorded(update) for update in changed[:MAX_RECORDED_MODELS]}
        change.record("model_config.prices_updated", "model_config", source=source, updated=len(changed), models=models)
        recompile_policy(change)
    return sorted((update for update in updates if update.is_changed or update.kept), key=lambda update: update.model)


def _update(row: ModelConfigRow, model: KnownModel, source: Source, replaceable: KnownModel | None) -> EntryUpdate:
    """Update an entry. `replaceable` has the limits and capabilities that may be replaced."""
    old_prices: Prices = {name: getattr(row, name) for name in PRICES}
    values = _new_prices(row, model, source)
    current, old_data = _limits_of_row(row), {} if replaceable is None else _limits(replaceable)
    changed: dict[str, tuple[Any, Any]] = {}
    kept: dict[str, tuple[Any, Any]] = {}
    for name, new in _limits(model).items():
        old = current[name]
        if old != new:
            (changed if old is None or old == old_data.get(name) else kept)[name] = old, new
    capabilities = {name: new for name, (_, new) in changed.items() if name not in _LIMITS}
    limits = {name: new for name, (_, new) in changed.items() if name in _LIMITS}
    if values or changed:
        apply(row, {**values, **limits, "capabilities": capabilities})
    new_prices = {name: getattr(row, name) for name in PRICES}
    model_name = f"{row.provider}/{row.model_id}"
    return EntryUpdate(model_name, model.recorded_on, old_prices, new_prices, bool(values), changed, kept)


def _new_prices(row: ModelConfigRow, model: KnownModel, source: Source) -> dict[str, Any]:
    """Return the new values of the price columns, or nothing if the entry keeps its prices."""
    if model.usd_per_million_tokens is None or row.has_own_prices:
        return {}
    if row.price_source == "price_file" and source == "known_models":
        return {}
    values = {
        **model.usd_per_million_tokens.columns, "price_source": source, "price_recorded_on": model.recorded_on,
    }  # fmt: skip
    return values if any(getattr(row, name) != value for name, value in values.items()) else {}


def _limits(model: KnownModel) -> dict[str, Any]:
    """Return the limits and capabilities that are known."""
    values = {name: getattr(model, name) for name in _LIMITS} | model.capabilities.model_dump()
    return {name: value for name, value in values.items() if value is not None}


def _limits_of_row(row: ModelConfigRow) -> dict[str, Any]:
    unknown = dict.fromkeys(KnownModel.model_fields["capabilities"].default.model_dump())
    return {**unknown, **row.capabilities, **{name: getattr(row, name) for name in _LIMITS}}


def _recorded(update: EntryUpdate) -> dict[str, Any]:
    """Return the new values for the audit event."""
    prices = update.new_prices if update.prices_changed else {}
    return {**prices, **{name: new for name, (_, new) in update.changed.items()}}
