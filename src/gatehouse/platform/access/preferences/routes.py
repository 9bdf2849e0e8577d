"""Endpoints of preferences and pictures."""

from typing import Annotated, Any, Final
from uuid import UUID

from fastapi import APIRouter, Header, Query, Request, Response

from gatehouse.platform.access.preferences import service, uploads
from gatehouse.platform.access.preferences.schemas import Preferences, PreferencesUpdate
from gatehouse.platform.request.callers import (
    RESPONSES,
    Admin,
    ApiReader,
    PersonReader,
    PersonWriter,
)
from gatehouse.platform.request.injected import Changing, InSplitTransactions, Session
from gatehouse.platform.request.ports import TheHost

router = APIRouter(tags=["Preferences"], responses=RESPONSES)

_UPLOAD_RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    400: {"description": "Neither a PNG nor a JPEG picture that can be read."},
    413: {"description": "The picture has more than 1 MB."},
}
#: Headers of an uploaded picture: browsers must not interpret it as anything else.
_PICTURE_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; sandbox",
}


@router.get("/api/users/me/preferences", response_model=Preferences)
async def read_preferences(caller: PersonReader, session: Session, host: TheHost) -> Preferences:
    """Returns your preferences. A preference that was never set has its default."""
    assert caller.user_id is not None
    return await service.read(session, caller.user_id, host.settings.public_url)


@router.put("/api/users/me/preferences", response_model=Preferences)
async def update_preferences(
    caller: PersonWriter, body: PreferencesUpdate, change: Changing, host: TheHost
) -> Preferences:
    """Changes the preferences that are sent; null clears a model."""
    assert caller.user_id is not None
    return await service.update(change, caller.user_id, body, host.settings.public_url)


@router.patch(
    "/api/users/me/avatar",
    response_model=Preferences,
    openapi_extra=uploads.UPLOAD_OPENAPI,
    responses=_UPLOAD_RESPONSES,
)
async def set_avatar(
    caller: PersonWriter, request: Request, transactions: InSplitTransactions, host: TheHost
) -> Preferences:
    """Sets your picture. Its middle square is stored as a PNG of 256 by 256 pixels. Nothing else of the file is
    kept."""
    assert caller.user_id is not None
    return await service.set_avatar(transactions, request, caller.user_id, host.settings.public_url)


@router.delete("/api/users/me/avatar", status_code=204)
async def remove_avatar(caller: PersonWriter, change: Changing) -> None:
    """Removes your picture, if there is one."""
    assert caller.user_id is not None
    await service.remove_avatar(change, caller.user_id)


@router.patch(
    "/api/admin/users/{user_id}/avatar",
    response_model=Preferences,
    openapi_extra=uploads.UPLOAD_OPENAPI,
    responses=_UPLOAD_RESPONSES,
)
async def set_users_avatar(
    caller: Admin, user_id: UUID, request: Request, transactions: InSplitTransactions, host: TheHost
) -> Preferences:
    """Sets a user's picture, as `PATCH /api/users/me/avatar` does for your own."""
    return await service.set_avatar(transactions, request, user_id, host.settings.public_url)


@router.get(
    "/api/users/{user_id}/avatar",
    response_class=Response,
    responses={200: {"content": {"image/png": {}}}, 304: {"description": "The picture has not changed."}},
)
async def read_avatar(
    caller: ApiReader,
    user_id: UUID,
    session: Session,
    v: Annotated[str | None, Query(max_length=64, description="The picture's digest, as in `avatar_url`.")] = None,
    if_none_match: Annotated[str | None, Header(max_length=1_000)] = None,
) -> Response:
    """Returns a user's picture. Every user of the same organization can read it."""
    client_digest = (if_none_match or "").strip().removeprefix("W/").strip('"')
    digest, png = await service.avatar(session, user_id, client_digest or None)
    # A browser may cache the picture permanently if the URL contains its digest. Otherwise it must revalidate the
    # picture each time. Shared caches must never store it.
    cache_control = "private, max-age=31536000, immutable" if v == digest else "private, no-cache"
    headers = {"ETag": f'"{digest}"', "Cache-Control": cache_control, **_PICTURE_HEADERS}
    if png is None:
        return Response(status_code=304, headers=headers)
    return Response(png, media_type="image/png", headers=headers)
