"""The API key endpoints (reference 2, Endpoints, API keys)."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Response

from gatehouse.foundation.http.lists import OffsetWindow, offset_window
from gatehouse.foundation.identity import Caller
from gatehouse.platform.access.api_keys import service, table
from gatehouse.platform.access.api_keys.errors import ApiKeyNotFound
from gatehouse.platform.access.api_keys.schemas import (
    ApiKey,
    ApiKeyCreated,
    ApiKeyUpdate,
    NewApiKey,
    OwnedApiKey,
    OwnedApiKeyCreated,
)
from gatehouse.platform.access.api_keys.table import ApiKeyRow
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
from gatehouse.platform.ports import TheHost
from gatehouse.platform.requests import Changing, Session, loaded

router = APIRouter(tags=["API keys"], responses=RESPONSES)

Window = Annotated[OffsetWindow, Depends(offset_window(default=500, maximum=500))]

_any_key = loaded(ApiKeyRow, "key_id", ApiKeyNotFound)


def _own_key(caller: SessionUser, key: Annotated[ApiKeyRow, Depends(_any_key)]) -> ApiKeyRow:
    return service.own_or_administered(key, caller)


LoadedKey = Annotated[ApiKeyRow, Depends(_any_key)]
OwnKey = Annotated[ApiKeyRow, Depends(_own_key)]


async def _set_enabled(caller: Caller, key: ApiKeyRow, body: ApiKeyUpdate, change: Change) -> OwnedApiKey:
    # A key that can be used again is as good as a new one (decisions 3); taking one away is never delayed.
    if body.is_enabled:
        stepped_up(caller)
        await service.require_open_session(change, caller)
    return await service.shown(change.session, service.set_enabled(change, key, body.is_enabled))


@router.post(
    "/api/auth/api-keys",
    status_code=201,
    response_model=ApiKeyCreated,
    responses={409: {"description": "You have as many keys as a user may have (`MAX_API_KEYS_PER_USER`)."}},
)
async def create_api_key(caller: SessionUserStepUp, body: NewApiKey, change: Changing, host: TheHost) -> ApiKeyCreated:
    """Makes a key with your own rights. The answer holds it in clear, once."""
    return await service.create(change, caller, body, limit=host.settings.max_api_keys_per_user)


@router.get("/api/auth/api-keys", response_model=list[ApiKey])
async def list_own_api_keys(caller: SessionUser, session: Session) -> object:
    """Your keys, newest first."""
    return await service.listed(session, table.listing(user_id=caller.user_id))


@router.patch("/api/auth/api-keys/{key_id}", response_model=ApiKey)
async def update_api_key(caller: SessionUser, key: OwnKey, body: ApiKeyUpdate, change: Changing) -> object:
    """Disables a key of yours, as an administrator anybody's, or enables it again, which asks for a second factor as
    its creation does. Disabled, it is refused from the moment of the answer on. A key that an administrator disabled is
    403 `disabled_by_administrator` for its owner."""
    return await _set_enabled(caller, key, body, change)


@router.delete("/api/auth/api-keys/{key_id}", status_code=204)
async def delete_api_key(caller: SessionUserStepUp, key: OwnKey, change: Changing) -> None:
    """Removes a key of yours for good, as an administrator anybody's."""
    await service.delete(change, key)


@router.get("/api/admin/api-keys", response_model=list[OwnedApiKey])
async def list_api_keys(
    caller: AdminReader,
    session: Session,
    window: Window,
    response: Response,
    *,
    user_id: Annotated[UUID | None, Query(description="Only this user's.")] = None,
    enabled: Annotated[bool | None, Query(description="Only enabled, or only disabled ones.")] = None,
) -> object:
    """The keys of all users of the organization, newest first. The header `X-Total-Count` has the number of all that
    match, whatever `limit` and `offset` say."""
    query = table.listing(user_id=user_id, enabled=enabled)
    response.headers["X-Total-Count"] = str(await table.total(session, query))
    return await service.listed(session, window.apply(query))


@router.post(
    "/api/admin/users/{user_id}/api-keys",
    status_code=201,
    response_model=OwnedApiKeyCreated,
    responses={409: {"description": "The user is a person, or has as many keys as a user may have."}},
)
async def create_service_account_key(
    caller: AdminStepUp, user: LoadedUser, body: NewApiKey, change: Changing, host: TheHost
) -> OwnedApiKeyCreated:
    """Makes a key for a service account. The answer holds it in clear, once."""
    return await service.create_for(change, caller, user, body, limit=host.settings.max_api_keys_per_user)


@router.get("/api/admin/users/{user_id}/api-keys", response_model=list[OwnedApiKey])
async def list_api_keys_of_user(caller: AdminReader, user: LoadedUser, session: Session) -> object:
    """A user's keys, newest first."""
    return await service.listed(session, table.listing(user_id=user.id))


@router.patch("/api/admin/api-keys/{key_id}", response_model=OwnedApiKey)
async def update_any_api_key(caller: Admin, key: LoadedKey, body: ApiKeyUpdate, change: Changing) -> object:
    """Disables or enables any user's key (reference 2, States: owner or admin)."""
    return await _set_enabled(caller, key, body, change)


@router.delete("/api/admin/api-keys/{key_id}", status_code=204)
async def delete_any_api_key(caller: AdminStepUp, key: LoadedKey, change: Changing) -> None:
    """Removes any user's key for good."""
    await service.delete(change, key)
