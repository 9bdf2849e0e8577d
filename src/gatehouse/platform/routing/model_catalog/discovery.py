"""Discovers the models of all connected providers, and adds those that the catalog lacks."""

import asyncio
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from sqlalchemy.dialects.postgresql import insert

from gatehouse.engine.providers import FoundModel, ProviderFailed
from gatehouse.foundation.identity import TenantId
from gatehouse.platform.changes.change import Change
from gatehouse.platform.request.injected import SplitTransactions
from gatehouse.platform.routing.fields import MODEL_ID
from gatehouse.platform.routing.model_catalog.schemas import DiscoveredModel
from gatehouse.platform.routing.model_catalog.service import new_row, touch
from gatehouse.platform.routing.model_catalog.table import ModelConfigRow, known_pairs
from gatehouse.platform.routing.providers.probe import Prober
from gatehouse.platform.routing.providers.service import is_callable, switched_off
from gatehouse.platform.routing.providers.table import ModelCount, all_providers, model_counts
from gatehouse.policy.records import ProviderRecord

#: A provider that takes longer to list its models is skipped.
LIST_TIMEOUT_MS: Final = 10_000
MAX_CONCURRENT_PROVIDERS: Final = 16
#: Maximum models of one provider. Further models are ignored.
MAX_MODELS_PER_PROVIDER: Final = 5_000

_is_model_id = re.compile(MODEL_ID).match
#: The provider's id, and a model of it.
Discovered = tuple[str, FoundModel]


async def discover(
    transactions: SplitTransactions, prober: Prober, *, timeout_ms: int = LIST_TIMEOUT_MS
) -> list[DiscoveredModel]:
    """Return every model of every provider that answers, by provider and in its order. Stores nothing."""
    discovered = await list_all(transactions, prober, timeout_ms=timeout_ms)
    async with transactions.reading() as session:
        existing = await known_pairs(session, [(provider, model.model_id) for provider, model in discovered])
    return [
        DiscoveredModel(
            provider=provider,
            model_id=model.model_id,
            display_name=_display_name(model),
            already_in_catalog=(provider, model.model_id) in existing,
            context_window=model.context_window,
            supports_vision=model.supports_vision,
            max_tokens=model.max_output_tokens,
            supports_streaming=model.supports_streaming,
        )
        for provider, model in discovered
    ]


async def add_missing(change: Change, discovered: Sequence[Discovered]) -> Sequence[ModelConfigRow]:
    """Add the models that the catalog lacks, and return them. Concurrent syncs add each model once."""
    existing = await known_pairs(change.session, [(provider, model.model_id) for provider, model in discovered])
    provider_ids = {row.id for row in await all_providers(change.session)}
    rows = [
        _row(change, provider, model)
        for provider, model in discovered
        if (provider, model.model_id) not in existing and provider in provider_ids
    ]
    if not rows:
        return []
    statement = insert(ModelConfigRow).on_conflict_do_nothing().returning(ModelConfigRow)
    added = (await change.session.scalars(statement, rows)).all()
    if added:
        models = [f"{row.provider}/{row.model_id}" for row in added]
        change.record("model_config.synced", "model_config", added=len(added), models=models[:1_000])
        touch(change)
    return added


async def list_all(
    transactions: SplitTransactions, prober: Prober, *, timeout_ms: int = LIST_TIMEOUT_MS
) -> list[Discovered]:
    """List the models of all providers concurrently. Providers that fail are left out."""
    async with transactions.reading() as session:
        counts = await model_counts(session)
        providers = [
            row.record
            for row in await all_providers(session)
            if row.enabled and is_callable(row) and not switched_off(counts.get(row.id, ModelCount()))
        ]
    slots = asyncio.Semaphore(MAX_CONCURRENT_PROVIDERS)
    lists = await asyncio.gather(
        *(_list_models(slots, prober, transactions.tenant_id, provider, timeout_ms) for provider in providers)
    )
    return [model for models in lists for model in models]


async def _list_models(
    slots: asyncio.Semaphore, prober: Prober, tenant_id: TenantId, provider: ProviderRecord, timeout_ms: int
) -> list[Discovered]:
    async with slots:
        try:
            models = await prober.list_models(tenant_id, provider, timeout_ms)
        except ProviderFailed:
            return []
    return [(provider.id, model) for model in _valid(models)]


def _valid(models: Iterable[FoundModel]) -> list[FoundModel]:
    """Return the models with valid ids, each once."""
    by_id: dict[str, FoundModel] = {}
    for model in models:
        if _is_model_id(model.model_id):
            by_id.setdefault(model.model_id, model)
        if len(by_id) == MAX_MODELS_PER_PROVIDER:
            break
    return list(by_id.values())


def _display_name(model: FoundModel) -> str:
    name = "".join(character for character in (model.display_name or "")[:255] if character.isprintable()).strip()
    return name or model.model_id


def _row(change: Change, provider: str, model: FoundModel) -> dict[str, Any]:
    """Return the columns of a new entry. Prices are unknown, because providers do not list them."""
    capabilities = {"vision": model.supports_vision, "streaming": model.supports_streaming}
    row = new_row(
        change,
        provider,
        model.model_id,
        {
            "display_name": _display_name(model),
            "context_window": _tokens(model.context_window),
            "max_output_tokens": _tokens(model.max_output_tokens),
            "capabilities": {name: value for name, value in capabilities.items() if value is not None},
        },
    )
    return {column.key: getattr(row, column.key) for column in ModelConfigRow.__table__.columns}


def _tokens(number: int | None) -> int | None:
    return number if number is not None and 0 < number <= 1_000_000_000 else None
