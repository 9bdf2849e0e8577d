"""The model access endpoints (reference 2, Endpoints, Groups and model access)."""

from typing import Annotated

from fastapi import APIRouter, Path

from gatehouse.platform.access.groups.routes import LoadedGroup
from gatehouse.platform.access.model_access import service
from gatehouse.platform.access.model_access.schemas import ModelAccessRule, NewRule
from gatehouse.platform.access.model_access.table import rules
from gatehouse.platform.callers import RESPONSES, GroupAdmin, GroupReader
from gatehouse.platform.requests import Changing, Session

router = APIRouter(prefix="/api/admin/groups", tags=["Groups"], responses=RESPONSES)

#: A model's id may hold slashes. PostgreSQL's text holds no NUL.
ModelInPath = Annotated[str, Path(max_length=319, pattern=r"^[^\x00]+$", examples=["openai/gpt-4o-mini"])]


@router.get("/model-access", response_model=list[ModelAccessRule])
async def list_all_model_access(caller: GroupReader, session: Session) -> object:
    """The rules of all groups, by group and model."""
    return await rules(session)


@router.get("/{group_id}/model-access", response_model=list[ModelAccessRule])
async def list_model_access(caller: GroupReader, group: LoadedGroup, session: Session) -> object:
    """The group's rules, by model. None: its members may use what everybody may."""
    return await rules(session, group.id)


@router.post(
    "/{group_id}/model-access",
    status_code=201,
    response_model=ModelAccessRule,
    responses={409: {"description": "The group has a rule for this model, or the organization too many."}},
)
async def create_model_access(caller: GroupAdmin, group: LoadedGroup, body: NewRule, change: Changing) -> object:
    """Grants the group's members a restricted model, or denies them any. In force when the answer is there."""
    return await service.create(change, group, body)


@router.delete("/{group_id}/model-access/{model_id:path}", status_code=204)
async def delete_model_access(caller: GroupAdmin, group: LoadedGroup, model_id: ModelInPath, change: Changing) -> None:
    """Removes the group's rule for a model. Slashes of the id may stand as they are, or encoded."""
    await service.delete(change, group, model_id)
