"""The preferences' endpoints (reference 2, Endpoints, User settings and system configuration)."""

from typing import Annotated, Any, Final
from uuid import UUID

from fastapi import APIRouter, Header, Query, Request, Response

from gatehouse.platform.access.preferences import service, uploads
from gatehouse.platform.access.preferences.schemas import Preferences, PreferencesUpdate
from gatehouse.platform.callers import RESPONSES, Admin, ApiReader, PersonReader, PersonWriter
from gatehouse.platform.ports import TheHost
from gatehouse.platform.requests import Changing, InParts, Session

router = APIRouter(tags=["Preferences"], responses=RESPONSES)

_UPLOADED: Final[dict[int | str, dict[str, Any]]] = {
    400: {"description": "Neither a PNG nor a JPEG picture that can be read."},
    413: {"description": "The picture has more than 1 MB."},
}
#: A picture that somebody uploaded: shown as that, and as nothing else.
_SAFE: Final = {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "default-src 'none'; sandbox"}


@router.get("/api/users/me/preferences", response_model=Preferences)
async def read_preferences(caller: PersonReader, session: Session, host: TheHost) -> Preferences:
    """Your preferences, with defaults for what you never set."""
    assert caller.user_id is not None
    return await service.shown(session, caller.user_id, host.settings.public_url)


@router.put("/api/users/me/preferences", response_model=Preferences)
async def update_preferences(
    caller: PersonWriter, body: PreferencesUpdate, change: Changing, host: TheHost
) -> Preferences:
    """Changes what the body names; null clears a model."""
    assert caller.user_id is not None
    return await service.update(change, caller.user_id, body, host.settings.public_url)


@router.patch("/api/users/me/avatar", response_model=Preferences, openapi_extra=uploads.OPENAPI, responses=_UPLOADED)
async def set_avatar(caller: PersonWriter, request: Request, parts: InParts, host: TheHost) -> Preferences:
    """Your picture: its middle square becomes a PNG of 256 by 256 pixels, without anything else that the file held."""
    assert caller.user_id is not None
    return await service.set_avatar(parts, request, caller.user_id, host.settings.public_url)


@router.delete("/api/users/me/avatar", status_code=204)
async def remove_avatar(caller: PersonWriter, change: Changing) -> None:
    """Takes your picture away, if there is one."""
    assert caller.user_id is not None
    await service.remove_avatar(change, caller.user_id)


@router.patch(
    "/api/admin/users/{user_id}/avatar",
    response_model=Preferences,
    openapi_extra=uploads.OPENAPI,
    responses=_UPLOADED,
)
async def set_users_avatar(
    caller: Admin, user_id: UUID, request: Request, parts: InParts, host: TheHost
) -> Preferences:
    """A user's picture, as for one's own."""
    return await service.set_avatar(parts, request, user_id, host.settings.public_url)


@router.get(
    "/api/users/{user_id}/avatar",
    response_class=Response,
    responses={200: {"content": {"image/png": {}}}, 304: {"description": "It is the one that you have."}},
)
async def read_avatar(
    caller: ApiReader,
    user_id: UUID,
    session: Session,
    v: Annotated[str | None, Query(max_length=64, description="The picture's digest, as in `avatar_url`.")] = None,
    if_none_match: Annotated[str | None, Header(max_length=1_000)] = None,
) -> Response:
    """A user's picture, for everybody of the same organization."""
    known = (if_none_match or "").strip().removeprefix("W/").strip('"')
    digest, png = await service.avatar(session, user_id, known or None)
    # For good where the address names this very picture; else asked again each time. Never by what stands in between.
    kept = "private, max-age=31536000, immutable" if v == digest else "private, no-cache"
    headers = {"ETag": f'"{digest}"', "Cache-Control": kept, **_SAFE}
    if png is None:
        return Response(status_code=304, headers=headers)
    return Response(png, media_type="image/png", headers=headers)
