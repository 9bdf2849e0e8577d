"""Endpoints of model access rules."""

from typing import Annotated, Final
from uuid import UUID

from fastapi import APIRouter, Depends, Path, Query, Response

from gatehouse.administration.etags import TheVersions
from gatehouse.foundation.http.lists import (
    TOTAL_COUNT_HEADER,
    OffsetWindow,
    OptionalWindow,
    offset_window,
    optional_window,
    search_parameter,
    windowed,
)
from gatehouse.platform.access.groups.routes import LoadedGroup
from gatehouse.platform.access.model_access import service
from gatehouse.platform.access.model_access.schemas import ModelAccessRule, ModelRules, NewRule
from gatehouse.platform.access.model_access.table import ModelAccessRow, rules
from gatehouse.platform.request.callers import RESPONSES, GroupAdmin, GroupReader
from gatehouse.platform.request.injected import Changing, Session

router = APIRouter(prefix="/api/admin/groups", tags=["Groups"], responses=RESPONSES)

#: A model's id may contain slashes, but no NUL, which PostgreSQL cannot store.
ModelInPath = Annotated[str, Path(max_length=319, pattern=r"^[^\x00]+$", examples=["openai/gpt-4o-mini"])]

Window = Annotated[OffsetWindow, Depends(offset_window(default=50, maximum=200))]
RulesWindow = Annotated[OptionalWindow, Depends(optional_window(maximum=500))]
Search = Annotated[str | None, search_parameter("Part of `model_id` or of `display_name`.")]
_NO_GROUPS: Final[list[UUID]] = []


async def _rule(group: LoadedGroup, model_id: ModelInPath, session: Session, versions: TheVersions) -> ModelAccessRow:
    rule = await service.require_rule(session, group, model_id)
    versions.about(rule, "model_id")
    return rule


#: The rule that the path names. `If-Match` concerns the rule, not the group.
LoadedRule = Annotated[ModelAccessRow, Depends(_rule)]


@router.get("/model-access", response_model=list[ModelAccessRule])
async def list_all_model_access(
    caller: GroupReader, session: Session, window: RulesWindow, response: Response
) -> object:
    """Returns the rules of all groups, by default all of them, sorted by group and model. The header `X-Total-Count` is
    the number of all rules, regardless of `limit` and `offset`."""
    return await windowed(session, rules(), window, response)


@router.get("/model-access/models", response_model=list[ModelRules])
async def list_models_with_rules(
    caller: GroupReader,
    session: Session,
    window: Window,
    response: Response,
    *,
    search: Search = None,
    ruled: Annotated[
        bool,
        Query(description="`true`: only models that are restricted or that a rule of any group names."),
    ] = False,
    group_id: Annotated[list[UUID], Query(max_length=50, description="Groups whose rules are returned.")] = _NO_GROUPS,
) -> object:
    """Returns the models of the catalog with the rules of some groups, sorted by model. With `ruled`, the list contains
    only restricted models and models that a rule names, including models that are missing in the catalog. The header
    `X-Total-Count` is the number of all matching models, regardless of `limit` and `offset`."""
    models, total = await service.models_with_rules(session, window, group_id, search=search or "", ruled=ruled)
    response.headers[TOTAL_COUNT_HEADER] = str(total)
    return models


@router.get("/{group_id}/model-access", response_model=list[ModelAccessRule])
async def list_model_access(
    caller: GroupReader, group: LoadedGroup, session: Session, window: RulesWindow, response: Response
) -> object:
    """Returns the group's rules, by default all of them, sorted by model. Without rules its members may use all models
    that are not restricted. The header `X-Total-Count` is the number of all rules of the group, regardless of `limit`
    and `offset`."""
    return await windowed(session, rules(group.id), window, response)


@router.post(
    "/{group_id}/model-access",
    status_code=201,
    response_model=ModelAccessRule,
    responses={
        409: {"description": "The group has a rule for this model, or the organization has the maximum number."}
    },
)
async def create_model_access(caller: GroupAdmin, group: LoadedGroup, body: NewRule, change: Changing) -> object:
    """Grants the group's members a restricted model, or denies them a model. The rule is active when the response is
    sent."""
    return await service.create(change, group, body)


@router.delete("/{group_id}/model-access/{model_id:path}", status_code=204)
async def delete_model_access(caller: GroupAdmin, group: LoadedGroup, rule: LoadedRule, change: Changing) -> None:
    """Deletes the group's rule for a model. Slashes in the id may be sent plain or encoded. The version of a rule for
    `If-Match` is its `created_at`."""
    await service.delete(change, group, rule)
