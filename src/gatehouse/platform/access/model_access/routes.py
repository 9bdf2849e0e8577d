"""Endpoints of model access rules."""

from typing import Annotated

from fastapi import APIRouter, Path

from gatehouse.platform.access.groups.routes import LoadedGroup
from gatehouse.platform.access.model_access import service
from gatehouse.platform.access.model_access.schemas import ModelAccessRule, NewRule
from gatehouse.platform.access.model_access.table import rules
from gatehouse.platform.request.callers import RESPONSES, GroupAdmin, GroupReader
from gatehouse.platform.request.injected import Changing, Session

router = APIRouter(prefix="/api/admin/groups", tags=["Groups"], responses=RESPONSES)

#: A model's id may contain slashes, but no NUL, which PostgreSQL cannot store.
ModelInPath = Annotated[str, Path(max_length=319, pattern=r"^[^\x00]+$", examples=["openai/gpt-4o-mini"])]


@router.get("/model-access", response_model=list[ModelAccessRule])
async def list_all_model_access(caller: GroupReader, session: Session) -> object:
    """Returns the rules of all groups, sorted by group and model."""
    return await rules(session)


@router.get("/{group_id}/model-access", response_model=list[ModelAccessRule])
async def list_model_access(caller: GroupReader, group: LoadedGroup, session: Session) -> object:
    """Returns the group's rules, sorted by model. Without rules its members may use all models that are not
    restricted."""
    return await rules(session, group.id)


@router.post(
    "/{group_id}/model-access",
    status_code=201,
    response_model=ModelAccessRule,
    responses={
        409: {"description": "The group has a rule for this model, or the organization has the maximum number."}
    },
)
async def create_model_access(caller: GroupAdmin, group: LoadedGroup, body: NewRule, change: Changing) -> object:
    """Grants the group's members a restricted model, or denies them a model. The rule is in force when the response is
    sent."""
    return await service.create(change, group, body)


@router.delete("/{group_id}/model-access/{model_id:path}", status_code=204)
async def delete_model_access(caller: GroupAdmin, group: LoadedGroup, model_id: ModelInPath, change: Changing) -> None:
    """Deletes the group's rule for a model. Slashes in the id may be sent plain or encoded."""
    await service.delete(change, group, model_id)
