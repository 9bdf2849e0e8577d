"""Discovers the models of all connected providers, and adds those that are not in the catalog."""

import asyncio
import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any, Final

import msgspec
from sqlalchemy.dialects.postgresql import insert

from gatehouse.engine.providers import ProviderFailed, ProviderModel
from gatehouse.foundation.identity import TenantId
from gatehouse.platform.changes.change import Change
from gatehouse.platform.request.injected import SplitTransactions
from gatehouse.platform.routing.fields import MODEL_ID
from gatehouse.platform.routing.model_catalog.known_models import KnownModel
from gatehouse.platform.routing.model_catalog.schemas import DiscoveredModel
from gatehouse.platform.routing.model_catalog.service import new_row, recompile_policy, with_known
from gatehouse.platform.routing.model_catalog.table import ModelConfigRow, catalog_keys
from gatehouse.platform.routing.model_catalog.vendor_data import load_known
from gatehouse.platform.routing.providers.probe import Prober
from gatehouse.platform.routing.providers.service import has_required_credentials, switched_off
from gatehouse.platform.routing.providers.table import ModelCount, all_providers, model_counts
from gatehouse.policy.catalog import ProviderRecord

#: A provider that takes longer to list its models is skipped.
LIST_TIMEOUT_MS: Final = 10_000
MAX_CONCURRENT_PROVIDERS: Final = 16
#: Maximum number of models of one provider. Further models are ignored.
MAX_MODELS_PER_PROVIDER: Final = 5_000

_is_model_id = re.compile(MODEL_ID).match


class ListedModel(msgspec.Struct, frozen=True):
    """A model that a provider lists, and its entry in the table of known models. Fields that the provider omits are
    filled from that entry."""

    provider: str
    model: ProviderModel
    known: KnownModel | None

    @property
    def catalog_key(self) -> tuple[str, str]:
        """The provider's id and the model's id."""
        return self.provider, self.model.model_id

    @property
    def prices(self) -> dict[str, Decimal | None]:
        """Prices in USD per token, keyed by catalog column. Empty if no price is known."""
        if self.known is None or self.known.usd_per_million_tokens is None:
            return {}
        return self.known.usd_per_million_tokens.columns


async def discover(
    transactions: SplitTransactions, prober: Prober, *, timeout_ms: int = LIST_TIMEOUT_MS
) -> list[DiscoveredModel]:
    """Return all models of all providers that respond, grouped by provider, in the order of the provider's list. Stores
    nothing."""
    discovered = await list_all(transactions, prober, timeout_ms=timeout_ms)
    async with transactions.reading() as session:
        existing = await catalog_keys(session, [entry.catalog_key for entry in discovered])
    return [
        DiscoveredModel(
            provider=entry.provider,
            model_id=entry.model.model_id,
            display_name=_display_name(entry.model),
            already_in_catalog=entry.catalog_key in existing,
            context_window=entry.model.context_window,
            supports_vision=entry.model.supports_vision,
            max_tokens=entry.model.max_output_tokens,
            supports_streaming=entry.model.supports_streaming,
            cost_per_input_token=entry.prices.get("cost_per_input_token"),
            cost_per_output_token=entry.prices.get("cost_per_output_token"),
        )
        for entry in discovered
    ]


async def add_missing(change: Change, discovered: Sequence[ListedModel]) -> Sequence[ModelConfigRow]:
    """Add the models that are not in the catalog, and return them. Concurrent syncs add each model once."""
    existing = await catalog_keys(change.session, [entry.catalog_key for entry in discovered])
    provider_ids = {row.id for row in await all_providers(change.session)}
    rows = [
        _new_columns(change, entry)
        for entry in discovered
        if entry.catalog_key not in existing and entry.provider in provider_ids
    ]
    if not rows:
        return []
    statement = insert(ModelConfigRow).on_conflict_do_nothing().returning(ModelConfigRow)
    added = (await change.session.scalars(statement, rows)).all()
    if added:
        models = [f"{row.provider}/{row.model_id}" for row in added]
        change.record("model_config.synced", "model_config", added=len(added), models=models[:1_000])
        recompile_policy(change)
    return added


async def list_all(
    transactions: SplitTransactions, prober: Prober, *, timeout_ms: int = LIST_TIMEOUT_MS
) -> list[ListedModel]:
    """List the models of all providers concurrently. Providers that fail are left out."""
    async with transactions.reading() as session:
        counts = await model_counts(session)
        known = await load_known(session)
        providers = [
            row.record
            for row in await all_providers(session)
            if row.enabled and has_required_credentials(row) and not switched_off(counts.get(row.id, ModelCount()))
        ]
    semaphore = asyncio.Semaphore(MAX_CONCURRENT_PROVIDERS)
    lists = await asyncio.gather(
        *(_list_models(semaphore, prober, transactions.tenant_id, provider, timeout_ms) for provider in providers)
    )
    return [
        _filled(provider.id, model, known.find_at(provider, model.model_id))
        for provider, models in zip(providers, lists, strict=True)
        for model in models
    ]


async def _list_models(
    semaphore: asyncio.Semaphore, prober: Prober, tenant_id: TenantId, provider: ProviderRecord, timeout_ms: int
) -> list[ProviderModel]:
    async with semaphore:
        try:
            models = await prober.list_models(tenant_id, provider, timeout_ms)
        except ProviderFailed:
            return []
    return _valid(models)


def _filled(provider_id: str, model: ProviderModel, known: KnownModel | None) -> ListedModel:
    """Fill the fields that the provider omits from the entry in the table of known models."""
    if known is not None:
        capabilities = known.capabilities
        model = msgspec.structs.replace(
            model,
            context_window=model.context_window or known.context_window,
            max_output_tokens=model.max_output_tokens or known.max_output_tokens,
            supports_vision=capabilities.vision if model.supports_vision is None else model.supports_vision,
            supports_streaming=capabilities.streaming if model.supports_streaming is None else model.supports_streaming,
        )
    return ListedModel(provider_id, model, known)


def _valid(models: Iterable[ProviderModel]) -> list[ProviderModel]:
    """Return the models with valid ids, each once."""
    by_id: dict[str, ProviderModel] = {}
    for model in models:
        if _is_model_id(model.model_id):
            by_id.setdefault(model.model_id, model)
        if len(by_id) == MAX_MODELS_PER_PROVIDER:
            break
    return list(by_id.values())


def _display_name(model: ProviderModel) -> str:
    name = "".join(character for character in (model.display_name or "")[:255] if character.isprintable()).strip()
    return name or model.model_id


def _new_columns(change: Change, entry: ListedModel) -> dict[str, Any]:
    """Return the columns of a new catalog entry. Its prices come from the table of known models. They are null if the
    model is not in the table."""
    model = entry.model
    values: dict[str, Any] = {
        "context_window": _valid_token_count(model.context_window),
        "max_output_tokens": _valid_token_count(model.max_output_tokens),
        "capabilities": {"vision": model.supports_vision, "streaming": model.supports_streaming},
    }
    values = with_known({"display_name": _display_name(model), **values}, entry.known)
    row = new_row(change, entry.provider, model.model_id, values)
    return {column.key: getattr(row, column.key) for column in ModelConfigRow.__table__.columns}


def _valid_token_count(number: int | None) -> int | None:
    """Return the number, or None if it is not between 1 and 1,000,000,000."""
    return number if number is not None and 0 < number <= 1_000_000_000 else None
