"""The differences between the catalog's variants (docs/variants.md): the pages of the list, the required name of a new
entry, and the response of a sync."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import Depends

from gatehouse.foundation.errors import FieldFault, Unprocessable
from gatehouse.foundation.http.lists import Window, by_variant, page_window
from gatehouse.foundation.http.variants import RequestVariant, Variant
from gatehouse.platform.routing.model_catalog.schemas import AddedModel, ModelConfig, NewModel, SyncResult

CatalogWindow = Annotated[
    Window,
    Depends(
        by_variant(a=page_window(default=50, maximum=200, size_name="per_page"), b=page_window(default=20, maximum=200))
    ),
]


async def _new_model(variant: RequestVariant, body: NewModel) -> NewModel:
    if variant is Variant.B and body.display_name is None:
        raise Unprocessable(faults=[FieldFault("display_name", "Field required")])
    return body


#: `display_name` is required in variant B.
NewModelBody = Annotated[NewModel, Depends(_new_model)]


def sync_result(variant: Variant, added: Sequence[ModelConfig], skipped: int) -> SyncResult | list[ModelConfig]:
    if variant is Variant.B:
        return list(added)
    return SyncResult(
        added=len(added),
        skipped=skipped,
        added_models=[AddedModel(provider=model.provider, model_id=model.model_id) for model in added],
    )
