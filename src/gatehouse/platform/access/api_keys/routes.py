"""The API key endpoints (reference 2, Endpoints, API keys)."""

from typing import Annotated

from fastapi import APIRouter, Depends

from gatehouse.foundation.identity import Caller
from gatehouse.platform.access.api_keys import service
from gatehouse.platform.access.api_keys.errors import ApiKeyNotFound
from gatehouse.platform.access.api_keys.schemas import (
    ApiKey,
    ApiKeyCreated,
    ApiKeyUpdate,
    NewApiKey,
    OwnedApiKey,
    OwnedApiKeyCreated,
)
from gatehouse.platform.access.api_keys.table import ApiKeyRow, all_keys
from gatehouse.platform.access.users.routes import LoadedUser
from gatehouse.platform.callers import (
    RESPONSES,
    Admin,
    AdminReader,
    AdminStepUp,
    SessionUser,
    SessionUserStepUp,
    stepped_up,
)
from gatehouse.platform.change import Change
from gatehouse.platform.requests import Changing, Session, loaded

router = APIRouter(tags=["API keys"], responses=RESPONSES)

_any_key = loaded(ApiKeyRow, "key_id", ApiKeyNotFound)


def _own_key(caller: SessionUser, key: Annotated[ApiKeyRow, Depends(_any_key)]) -> ApiKeyRow:
    return service.owned(key, caller)


LoadedKey = Annotated[ApiKeyRow, Depends(_any_key)]
OwnKey = Annotated[ApiKeyRow, Depends(_own_key)]


def _set_enabled(caller: Caller, key: ApiKeyRow, body: ApiKeyUpdate, change: Change) -> ApiKeyRow:
    # A key that can be used again is as good as a new one (decisions 3); taking one away is never delayed.
    if body.is_enabled:
        stepped_up(caller)
    return service.set_enabled(change, key, body.is_enabled)


@router.post("/api/auth/api-keys", status_code=201, response_model=ApiKeyCreated)
async def create_api_key(caller: SessionUserStepUp, body: NewApiKey, change: Changing) -> ApiKeyCreated:
    """Makes a key with your own rights. The answer holds it in clear, once."""
    return await service.create(change, caller, body)


@router.get("/api/auth/api-keys", response_model=list[ApiKey])
async def list_own_api_keys(caller: SessionUser, session: Session) -> object:
    """Your keys, newest first."""
    return await all_keys(session, user_id=caller.user_id)


@router.patch("/api/auth/api-keys/{key_id}", response_model=ApiKey)
async def update_api_key(caller: SessionUser, key: OwnKey, body: ApiKeyUpdate, change: Changing) -> object:
    """Disables a key, or enables it again, which asks for a second factor as its creation does. Disabled, it is
    refused from the moment of the answer on."""
    return _set_enabled(caller, key, body, change)


@router.delete("/api/auth/api-keys/{key_id}", status_code=204)
async def delete_api_key(caller: SessionUserStepUp, key: OwnKey, change: Changing) -> None:
    """Removes a key for good."""
    await service.delete(change, key)


@router.get("/api/admin/api-keys", response_model=list[OwnedApiKey])
async def list_api_keys(caller: AdminReader, session: Session) -> object:
    """The keys of all users of the organization, newest first."""
    return await all_keys(session)


@router.post(
    "/api/admin/users/{user_id}/api-keys",
    status_code=201,
    response_model=OwnedApiKeyCreated,
    responses={409: {"description": "The user is a person, who makes their own keys."}},
)
async def create_service_account_key(
    caller: AdminStepUp, user: LoadedUser, body: NewApiKey, change: Changing
) -> OwnedApiKeyCreated:
    """Makes a key for a service account. The answer holds it in clear, once."""
    return await service.create_for(change, caller, user, body)


@router.get("/api/admin/users/{user_id}/api-keys", response_model=list[OwnedApiKey])
async def list_api_keys_of_user(caller: AdminReader, user: LoadedUser, session: Session) -> object:
    """A user's keys, newest first."""
    return await all_keys(session, user_id=user.id)


@router.patch("/api/admin/api-keys/{key_id}", response_model=OwnedApiKey)
async def update_any_api_key(caller: Admin, key: LoadedKey, body: ApiKeyUpdate, change: Changing) -> object:
    """Disables or enables any user's key (reference 2, States: owner or admin)."""
    return _set_enabled(caller, key, body, change)


@router.delete("/api/admin/api-keys/{key_id}", status_code=204)
async def delete_any_api_key(caller: AdminStepUp, key: LoadedKey, change: Changing) -> None:
    """Removes any user's key for good."""
    await service.delete(change, key)
