"""Where the registry's two variants differ (decisions 1): the list's bounds and name, how `provider` is looked for,
what a new entry needs and what it clashes with, and the shape of `tags`. C is as A."""

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
from gatehouse.platform.governance.model_registry.schemas import Discovery, NewRegisteredModel
from gatehouse.platform.governance.model_registry.states import RiskTier, Status
from gatehouse.platform.governance.model_registry.table import Filters

_MOST_OF_B: Final = 200

#: PostgreSQL's text holds no NUL.
_Filter = Query(max_length=255, pattern=r"^[^\x00]*$")


def _window(
    variant: RequestVariant, window: Annotated[OffsetWindow, Depends(offset_window(default=50, maximum=500))]
) -> OffsetWindow:
    if variant is Variant.B and window.limit > _MOST_OF_B:
        fault = ParameterFault(("query", "limit"), f"Input should be less than or equal to {_MOST_OF_B}")
        raise Unprocessable(faults=[fault])
    return window


def _filters(
    variant: RequestVariant,
    risk_tier: RiskTier | None = None,
    validation_status: Status | None = None,
    provider: Annotated[str | None, _Filter] = None,
    search: Annotated[str | None, _Filter] = None,
) -> Filters:
    """`search` looks for its text in `model_id`, `display_name` and `description`, whatever the case; `provider` is
    the whole name in variant A, a part of it whatever the case in B."""
    which = "provider_part" if variant is Variant.B else "provider"
    return Filters(risk_tier, validation_status, search=search, **{which: provider})


def _of_the_inventory(
    variant: RequestVariant,
    risk_tier: RiskTier | None = None,
    validation_status: Status | None = None,
    provider: Annotated[str | None, _Filter] = None,
) -> Filters:
    """As those of the list, without `search`."""
    return _filters(variant, risk_tier, validation_status, provider)


def _format(
    variant: RequestVariant,
    format: Annotated[
        Literal["csv", "json"] | None, Query(description="Omitted: `json` in variant A, `csv` in B.")
    ] = None,
) -> str:
    return format or ("csv" if variant is Variant.B else "json")


def _discovery(variant: RequestVariant, body: Discovery | None = None) -> Discovery:
    wanted = body or Discovery()
    if wanted.auto_assign_tier is None:
        wanted.auto_assign_tier = "tier_4" if variant is Variant.B else False
    return wanted


def _new_model(variant: RequestVariant, body: NewRegisteredModel) -> NewRegisteredModel:
    if variant is Variant.B and body.risk_tier in (None, "unclassified"):
        raise TierRequired
    return body


def _once_an_id(variant: RequestVariant) -> bool:
    return variant is Variant.B


ListWindow = Annotated[OffsetWindow, Depends(_window)]
TheFilters = Annotated[Filters, Depends(_filters)]
InventoryFilters = Annotated[Filters, Depends(_of_the_inventory)]
#: `csv` or `json`.
Format = Annotated[str, Depends(_format)]
#: Its `auto_assign_tier` is never None.
DiscoveryBody = Annotated[Discovery, Depends(_discovery)]
NewModelBody = Annotated[NewRegisteredModel, Depends(_new_model)]
#: Whether a model id may be there only once, whoever provides it.
OnceAnId = Annotated[bool, Depends(_once_an_id)]


def items_name(variant: Variant) -> str:
    return "models" if variant is Variant.B else "items"


def tags(variant: Variant, held: Mapping[str, str]) -> Any:
    return dict(held) if variant is Variant.B else list(held)


class Sheet(NamedTuple):
    """How an inventory is written as CSV."""

    filename: str
    columns: tuple[str, ...]
    tags: Callable[[Mapping[str, str]], str]


_BEGIN: Final = (
    "id", "model_id", "provider", "display_name", "risk_tier", "validation_status", "owner", "description", "tags",
)  # fmt: skip
_END: Final = "created_at", "updated_at"


def sheet(variant: Variant, today: date) -> Sheet:
    if variant is Variant.B:
        return Sheet(f"model-inventory-{today:%Y-%m-%d}.csv", (*_BEGIN, "last_seen_at", *_END), _json)
    return Sheet("model-inventory.csv", (*_BEGIN, "request_count_30d", "first_seen_at", *_END), "|".join)


def _json(tags: Mapping[str, str]) -> str:
    return json.dumps(dict(tags), ensure_ascii=False)
