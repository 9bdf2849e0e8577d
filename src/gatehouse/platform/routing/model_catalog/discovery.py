"""Asking every connected provider what models it has, and taking over what the catalog lacks."""

import asyncio
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from sqlalchemy.dialects.postgresql import insert

from gatehouse.engine.providers import FoundModel, ProviderFailed
from gatehouse.foundation.identity import TenantId
from gatehouse.platform.change import Change
from gatehouse.platform.requests import Apart
from gatehouse.platform.routing.fields import MODEL_ID
from gatehouse.platform.routing.model_catalog.schemas import DiscoveredModel
from gatehouse.platform.routing.model_catalog.service import new_row, touch
from gatehouse.platform.routing.model_catalog.table import ModelConfigRow, known_pairs
from gatehouse.platform.routing.providers.probe import Prober
from gatehouse.platform.routing.providers.service import callable_as_it_is, switched_off
from gatehouse.platform.routing.providers.table import ModelCount, all_providers, model_counts
from gatehouse.policy.records import ProviderRecord

#: What a provider may take to list its models; one that takes longer is skipped.
LIMIT_MS: Final = 10_000
AT_ONCE: Final = 16
#: Models of one provider that are looked at: more is no list that anyone wants in the catalog.
MOST: Final = 5_000

_named = re.compile(MODEL_ID).match
Found = tuple[str, FoundModel]


async def discover(parts: Apart, prober: Prober, *, limit_ms: int = LIMIT_MS) -> list[DiscoveredModel]:
    """Every model of every provider that answers, by provider and in its order. Stores nothing."""
    found = await ask_all(parts, prober, limit_ms=limit_ms)
    async with parts.reading() as session:
        known = await known_pairs(session, [(provider, model.model_id) for provider, model in found])
    return [
        DiscoveredModel(
            provider=provider,
            model_id=model.model_id,
            display_name=_display_name(model),
            already_in_catalog=(provider, model.model_id) in known,
            context_window=model.context_window,
            supports_vision=model.supports_vision,
            max_tokens=model.max_output_tokens,
            supports_streaming=model.supports_streaming,
        )
        for provider, model in found
    ]


async def add_missing(change: Change, found: Sequence[Found]) -> Sequence[ModelConfigRow]:
    """Adds what the catalog lacks and gives that back. Two syncs at once add each model once."""
    known = await known_pairs(change.session, [(provider, model.model_id) for provider, model in found])
    still_there = {row.id for row in await all_providers(change.session)}
    rows = [
        _row(change, provider, model)
        for provider, model in found
        if (provider, model.model_id) not in known and provider in still_there
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


async def ask_all(parts: Apart, prober: Prober, *, limit_ms: int = LIMIT_MS) -> list[Found]:
    """All at once, so that the slowest decides how long it takes. Who fails is left out."""
    async with parts.reading() as session:
        counts = await model_counts(session)
        providers = [
            row.record
            for row in await all_providers(session)
            if row.enabled and callable_as_it_is(row) and not switched_off(counts.get(row.id, ModelCount()))
        ]
    gate = asyncio.Semaphore(AT_ONCE)
    lists = await asyncio.gather(*(_ask(gate, prober, parts.tenant_id, one, limit_ms) for one in providers))
    return [found for one in lists for found in one]


async def _ask(
    gate: asyncio.Semaphore, prober: Prober, tenant_id: TenantId, provider: ProviderRecord, limit_ms: int
) -> list[Found]:
    async with gate:
        try:
            models = await prober.list_models(tenant_id, provider, limit_ms)
        except ProviderFailed:
            return []
    return [(provider.id, model) for model in _sane(models)]


def _sane(models: Iterable[FoundModel]) -> list[FoundModel]:
    """Each once, and only under names that a request could hold."""
    sane: dict[str, FoundModel] = {}
    for model in models:
        if _named(model.model_id):
            sane.setdefault(model.model_id, model)
        if len(sane) == MOST:
            break
    return list(sane.values())


def _display_name(model: FoundModel) -> str:
    name = "".join(letter for letter in (model.display_name or "")[:255] if letter.isprintable()).strip()
    return name or model.model_id


def _row(change: Change, provider: str, model: FoundModel) -> dict[str, Any]:
    """What the provider says; prices are not among it, so they stay unknown."""
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
