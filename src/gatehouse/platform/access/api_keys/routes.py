"""Endpoints of API keys."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Response

from gatehouse.foundation.http.lists import (
    TOTAL_COUNT_HEADER,
    OffsetWindow,
    OptionalWindow,
    max_total_parameter,
    offset_window,
    optional_window,
    search_parameter,
    sort_parameter,
)
from gatehouse.foundation.identity import Caller
from gatehouse.platform.access.api_keys import service, table
from gatehouse.platform.access.api_keys.schemas import (
    ApiKey,
    ApiKeyCreated,
    ApiKeyUpdate,
    NewApiKey,
    OwnedApiKey,
    OwnedApiKeyCreated,
    OwnSort,
    Sort,
)
from gatehouse.platform.access.api_keys.service import ApiKeyNotFound
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
OwnWindow = Annotated[OptionalWindow, Depends(optional_window(maximum=500))]
Search = Annotated[
    str | None,
    search_parameter(
        "Part of the description or of the key's first characters, and without `user_id` also of the owner's name."
    ),
]
OwnSearch = Annotated[str | None, search_parameter("Part of the description or of the key's first characters.")]
Enabled = Annotated[bool | None, Query(description="`true`: only enabled keys. `false`: only disabled keys.")]

_any_key = loaded(ApiKeyRow, "key_id", ApiKeyNotFound)


async def _own_key(caller: SessionUser, key: Annotated[ApiKeyRow, Depends(_any_key)]) -> ApiKeyRow:
    return service.own_or_administered(key, caller)


LoadedKey = Annotated[ApiKeyRow, Depends(_any_key)]
OwnKey = Annotated[ApiKeyRow, Depends(_own_key)]


async def _update(caller: Caller, key: ApiKeyRow, body: ApiKeyUpdate, change: Change) -> OwnedApiKey:
    sent = body.sent()
    # Other changes require the same second factor as creating a key. Disabling requires none, so that nothing delays
    # it.
    if not service.only_disables(key, sent):
        stepped_up(caller)
        await service.require_open_session(change, caller)
    return await service.with_status(change.session, await service.update(change, caller, key, sent))


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
async def list_own_api_keys(
    caller: SessionUser,
    session: Session,
    window: OwnWindow,
    response: Response,
    *,
    search: OwnSearch = None,
    enabled: Enabled = None,
    sort: Annotated[OwnSort, sort_parameter()] = "-created_at",
) -> object:
    """Returns your keys, by default all of them, newest first. A key that never expires has the latest `expires_at`,
    and a key that was never used the earliest `last_used`. The header `X-Total-Count` is the number of all matching
    keys, regardless of `limit` and `offset`."""
    ids = await table.page_of_ids(session, window, search=search, user_id=caller.user_id, enabled=enabled, sort=sort)
    response.headers[TOTAL_COUNT_HEADER] = str(ids.total)
    return await service.list_keys(session, ids.query)


@router.patch("/api/auth/api-keys/{key_id}", response_model=ApiKey)
async def update_api_key(caller: SessionUser, key: OwnKey, body: ApiKeyUpdate, change: Changing) -> object:
    """Changes the description, the expiry and the scopes of one of your keys, and disables or enables it.
    Administrators can do this with any user's key. Only the sent fields change. All changes require a second factor, as
    creating does, except disabling. A disabled key is refused as soon as the response is sent. If an administrator
    disabled a key, its owner cannot enable it: the response is 403 `disabled_by_administrator`."""
    return await _update(caller, key, body, change)


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
    enabled: Enabled = None,
    search: Search = None,
    sort: Annotated[Sort, sort_parameter()] = "-created_at",
    max_total: Annotated[int | None, max_total_parameter()] = None,
) -> object:
    """Returns the keys of all users of the organization, by default newest first. `owner` sorts by `user_name`. A key
    that never expires has the latest `expires_at`, and a key that was never used the earliest `last_used`. The header
    `X-Total-Count` is the number of all matching keys, regardless of `limit` and `offset`."""
    ids = await table.page_of_ids(
        session, window, search=search, user_id=user_id, enabled=enabled, sort=sort, max_total=max_total
    )
    response.headers[TOTAL_COUNT_HEADER] = str(ids.total)
    return await service.list_keys(session, ids.query)


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
async def list_api_keys_of_user(
    caller: AdminReader, user: LoadedUser, session: Session, window: OwnWindow, response: Response
) -> object:
    """Returns a user's keys, newest first, by default all of them. The header `X-Total-Count` is the number of all keys
    of the user, regardless of `limit` and `offset`."""
    ids = await table.page_of_ids(session, window, user_id=user.id)
    response.headers[TOTAL_COUNT_HEADER] = str(ids.total)
    return await service.list_keys(session, ids.query)


@router.get("/api/admin/api-keys/{key_id}", response_model=OwnedApiKey)
async def read_api_key(caller: AdminReader, key: LoadedKey, session: Session) -> object:
    """Returns one key of any user."""
    return await service.with_status(session, key)


@router.patch("/api/admin/api-keys/{key_id}", response_model=OwnedApiKey)
async def update_any_api_key(caller: Admin, key: LoadedKey, body: ApiKeyUpdate, change: Changing) -> object:
    """Changes the description, the expiry and the scopes of any user's key, and disables or enables it. Only the sent
    fields change. Clients, and keys with scopes, need all scopes of the owner's role, except to disable or enable."""
    return await _update(caller, key, body, change)


@router.delete("/api/admin/api-keys/{key_id}", status_code=204)
async def delete_any_api_key(caller: AdminStepUp, key: LoadedKey, change: Changing) -> None:
    """Deletes any user's key permanently."""
    await service.delete(change, key)
