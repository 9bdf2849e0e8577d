"""Differences between the registry's variants (docs/model-registry.md, section Variants): bounds and name of the list,
matching of `provider`, required fields and conflicts of a new entry, and the form of `tags`. Variant C equals A."""

import json
from collections.abc import Callable, Mapping
from datetime import date
from typing import Annotated, Any, Final, Literal, NamedTuple

from fastapi import Depends, Query

from gatehouse.foundation.errors import Unprocessable
from gatehouse.foundation.http.envelopes import ParameterFault
from gatehouse.foundation.http.lists import OffsetWindow, offset_window
from gatehouse.foundation.http.variants import RequestVariant, Variant
from gatehouse.platform.governance.model_registry.errors import TierRequired
from gatehouse.platform.governance.model_registry.schemas import Discovery, NewRegisteredModel, RiskTier, Status
from gatehouse.platform.governance.model_registry.table import RegistryFilters

_MAX_LIMIT_B: Final = 200

#: PostgreSQL's type text cannot store NUL.
_Filter = Query(max_length=255, pattern=r"^[^\x00]*$")


async def _window(
    variant: RequestVariant, window: Annotated[OffsetWindow, Depends(offset_window(default=50, maximum=500))]
) -> OffsetWindow:
    if variant is Variant.B and window.limit > _MAX_LIMIT_B:
        fault = ParameterFault(("query", "limit"), f"Input should be less than or equal to {_MAX_LIMIT_B}")
        raise Unprocessable(faults=[fault])
    return window


async def _filters(
    variant: RequestVariant,
    risk_tier: RiskTier | None = None,
    validation_status: Status | None = None,
    provider: Annotated[str | None, _Filter] = None,
    search: Annotated[str | None, _Filter] = None,
) -> RegistryFilters:
    """Return the filters. `search` matches substrings of `model_id`, `display_name` and `description`, ignoring case.
    `provider` matches the whole name in variant A, and a substring ignoring case in B."""
    field = "provider_part" if variant is Variant.B else "provider"
    return RegistryFilters(risk_tier, validation_status, search=search, **{field: provider})


async def _inventory_filters(
    variant: RequestVariant,
    risk_tier: RiskTier | None = None,
    validation_status: Status | None = None,
    provider: Annotated[str | None, _Filter] = None,
) -> RegistryFilters:
    """Return the filters of the list, without `search`."""
    return await _filters(variant, risk_tier, validation_status, provider)


async def _format(
    variant: RequestVariant,
    format: Annotated[
        Literal["csv", "json"] | None, Query(description="Default: `json` in variant A, `csv` in B.")
    ] = None,
) -> str:
    return format or ("csv" if variant is Variant.B else "json")


async def _discovery(variant: RequestVariant, body: Discovery | None = None) -> Discovery:
    options = body or Discovery()
    if options.auto_assign_tier is None:
        options.auto_assign_tier = "tier_4" if variant is Variant.B else False
    return options


async def _new_model(variant: RequestVariant, body: NewRegisteredModel) -> NewRegisteredModel:
    if variant is Variant.B and body.risk_tier in (None, "unclassified"):
        raise TierRequired
    return body


async def _unique_model_id(variant: RequestVariant) -> bool:
    return variant is Variant.B


ListWindow = Annotated[OffsetWindow, Depends(_window)]
TheFilters = Annotated[RegistryFilters, Depends(_filters)]
InventoryFilters = Annotated[RegistryFilters, Depends(_inventory_filters)]
#: `csv` or `json`.
Format = Annotated[str, Depends(_format)]
#: Options with the variant's defaults. `auto_assign_tier` is never None.
DiscoveryBody = Annotated[Discovery, Depends(_discovery)]
NewModelBody = Annotated[NewRegisteredModel, Depends(_new_model)]
#: Whether a model id is unique across providers.
UniqueModelId = Annotated[bool, Depends(_unique_model_id)]


def items_name(variant: Variant) -> str:
    return "models" if variant is Variant.B else "items"


def tags(variant: Variant, stored_tags: Mapping[str, str]) -> Any:
    return dict(stored_tags) if variant is Variant.B else list(stored_tags)


class Sheet(NamedTuple):
    """The form of an inventory as CSV. `tags` formats the cell of the tags."""

    filename: str
    columns: tuple[str, ...]
    tags: Callable[[Mapping[str, str]], str]


_FIRST_COLUMNS: Final = (
    "id", "model_id", "provider", "display_name", "risk_tier", "validation_status", "owner", "description", "tags",
)  # fmt: skip
_LAST_COLUMNS: Final = "created_at", "updated_at"


def sheet(variant: Variant, today: date) -> Sheet:
    if variant is Variant.B:
        return Sheet(f"model-inventory-{today:%Y-%m-%d}.csv", (*_FIRST_COLUMNS, "last_seen_at", *_LAST_COLUMNS), _json)
    return Sheet(
        "model-inventory.csv", (*_FIRST_COLUMNS, "request_count_30d", "first_seen_at", *_LAST_COLUMNS), "|".join
    )


def _json(tags: Mapping[str, str]) -> str:
    return json.dumps(dict(tags), ensure_ascii=False)
