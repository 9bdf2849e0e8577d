"""Endpoints of API keys."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Response

from gatehouse.foundation.http.lists import TOTAL_COUNT_HEADER, OffsetWindow, offset_window
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
from gatehouse.platform.changes.change import Change
from gatehouse.platform.request.callers import (
    RESPONSES,
    Admin,
    AdminReader,
    AdminStepUp,
    SessionUser,
    SessionUserStepUp,
    stepped_up,
)
from gatehouse.platform.request.injected import Changing, Session, loaded
from gatehouse.platform.request.ports import TheHost

router = APIRouter(tags=["API keys"], responses=RESPONSES)

Window = Annotated[OffsetWindow, Depends(offset_window(default=500, maximum=500))]

_any_key = loaded(ApiKeyRow, "key_id", ApiKeyNotFound)


async def _own_key(caller: SessionUser, key: Annotated[ApiKeyRow, Depends(_any_key)]) -> ApiKeyRow:
    return service.own_or_administered(key, caller)


LoadedKey = Annotated[ApiKeyRow, Depends(_any_key)]
OwnKey = Annotated[ApiKeyRow, Depends(_own_key)]


async def _set_enabled(caller: Caller, key: ApiKeyRow, body: ApiKeyUpdate, change: Change) -> OwnedApiKey:
    # Enabling a key requires the same second factor as creating one. Disabling requires none, so that nothing delays
    # it.
    if body.is_enabled:
        stepped_up(caller)
        await service.require_open_session(change, caller)
    return await service.with_status(change.session, service.set_enabled(change, key, body.is_enabled))


@router.post(
    "/api/auth/api-keys",
    status_code=201,
    response_model=ApiKeyCreated,
    responses={409: {"description": "You have the maximum number of keys (`MAX_API_KEYS_PER_USER`)."}},
)
async def create_api_key(caller: SessionUserStepUp, body: NewApiKey, change: Changing, host: TheHost) -> ApiKeyCreated:
    """Creates a key with your own rights. The response contains the key, which is shown only once."""
    return await service.create(change, caller, body, limit=host.settings.max_api_keys_per_user)


@router.get("/api/auth/api-keys", response_model=list[ApiKey])
async def list_own_api_keys(caller: SessionUser, session: Session) -> object:
    """Returns your keys, newest first."""
    return await service.list_keys(session, table.list_query(user_id=caller.user_id))


@router.patch("/api/auth/api-keys/{key_id}", response_model=ApiKey)
async def update_api_key(caller: SessionUser, key: OwnKey, body: ApiKeyUpdate, change: Changing) -> object:
    """Disables or enables one of your keys; administrators can do this with any user's key. Enabling requires a second
    factor, as creating does. A disabled key is refused as soon as the response is sent. If an administrator disabled a
    key, its owner cannot enable it: the response is 403 `disabled_by_administrator`."""
    return await _set_enabled(caller, key, body, change)


@router.delete("/api/auth/api-keys/{key_id}", status_code=204)
async def delete_api_key(caller: SessionUserStepUp, key: OwnKey, change: Changing) -> None:
    """Deletes one of your keys permanently. Administrators can delete any user's key."""
    await service.delete(change, key)


@router.get("/api/admin/api-keys", response_model=list[OwnedApiKey])
async def list_api_keys(
    caller: AdminReader,
    session: Session,
    window: Window,
    response: Response,
    *,
    user_id: Annotated[UUID | None, Query(description="Only keys of this user.")] = None,
    enabled: Annotated[
        bool | None, Query(description="`true`: only enabled keys. `false`: only disabled keys.")
    ] = None,
) -> object:
    """Returns the keys of all users of the organization, newest first. The header `X-Total-Count` is the number of all
    matching keys, regardless of `limit` and `offset`."""
    query = table.list_query(user_id=user_id, enabled=enabled)
    response.headers[TOTAL_COUNT_HEADER] = str(await table.count_keys(session, query))
    return await service.list_keys(session, window.apply(query))


@router.post(
    "/api/admin/users/{user_id}/api-keys",
    status_code=201,
    response_model=OwnedApiKeyCreated,
    responses={409: {"description": "The user is a person, or has the maximum number of keys."}},
)
async def create_service_account_key(
    caller: AdminStepUp, user: LoadedUser, body: NewApiKey, change: Changing, host: TheHost
) -> OwnedApiKeyCreated:
    """Creates a key for a service account. The response contains the key, which is shown only once."""
    return await service.create_for_service_account(
        change, caller, user, body, limit=host.settings.max_api_keys_per_user
    )


@router.get("/api/admin/users/{user_id}/api-keys", response_model=list[OwnedApiKey])
async def list_api_keys_of_user(caller: AdminReader, user: LoadedUser, session: Session) -> object:
    """Returns a user's keys, newest first."""
    return await service.list_keys(session, table.list_query(user_id=user.id))


@router.patch("/api/admin/api-keys/{key_id}", response_model=OwnedApiKey)
async def update_any_api_key(caller: Admin, key: LoadedKey, body: ApiKeyUpdate, change: Changing) -> object:
    """Disables or enables any user's key."""
    return await _set_enabled(caller, key, body, change)


@router.delete("/api/admin/api-keys/{key_id}", status_code=204)
async def delete_any_api_key(caller: AdminStepUp, key: LoadedKey, change: Changing) -> None:
    """Deletes any user's key permanently."""
    await service.delete(change, key)
