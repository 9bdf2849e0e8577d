"""Endpoints of SCIM tokens, for administrators."""

from typing import Annotated

from fastapi import APIRouter, Depends

from gatehouse.platform.access.scim import service
from gatehouse.platform.access.scim.errors import ScimTokenNotFound
from gatehouse.platform.access.scim.schemas import NewScimToken, ScimTokenCreated, ScimTokenList
from gatehouse.platform.access.scim.table import ScimTokenRow, all_tokens
from gatehouse.platform.request.callers import RESPONSES, AdminReader, AdminStepUp
from gatehouse.platform.request.injected import Changing, Session, loaded

router = APIRouter(prefix="/api/admin/scim", tags=["SCIM"], responses=RESPONSES)

LoadedToken = Annotated[ScimTokenRow, Depends(loaded(ScimTokenRow, "token_id", ScimTokenNotFound))]


@router.post(
    "/token",
    status_code=201,
    response_model=ScimTokenCreated,
    responses={409: {"description": "The organization has the maximum number of tokens."}},
)
async def create_scim_token(caller: AdminStepUp, body: NewScimToken, change: Changing) -> ScimTokenCreated:
    """Creates a token for the organization's directory. The response contains the token, which is shown only once."""
    return await service.create(change, caller, body)


@router.get("/tokens", response_model=ScimTokenList)
async def list_scim_tokens(caller: AdminReader, session: Session) -> object:
    """Returns the organization's tokens, newest first. An organization has at most 100 tokens."""
    return {"tokens": await all_tokens(session)}


@router.delete("/tokens/{token_id}", status_code=204)
async def delete_scim_token(caller: AdminStepUp, token: LoadedToken, change: Changing) -> None:
    """Deletes a token. When the response is sent, the token is refused. Users and groups of the directory stay."""
    await service.delete(change, token)
