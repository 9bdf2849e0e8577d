"""The rules of preferences and pictures."""

import hashlib
from typing import Any, Final
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession
from starlette.requests import Request

from gatehouse.platform.access.preferences import pictures, table, uploads
from gatehouse.platform.access.preferences.errors import AvatarNotFound
from gatehouse.platform.access.preferences.schemas import Preferences, PreferencesUpdate
from gatehouse.platform.access.preferences.table import Chosen
from gatehouse.platform.access.users.errors import UserNotFound
from gatehouse.platform.change import Change
from gatehouse.platform.requests import Apart

#: Hexadecimal digits of a picture's digest: enough that no two pictures of a user share an address.
_DIGEST_CHARS: Final = 32


async def shown(session: AsyncSession, user_id: UUID, public_url: str | None) -> Preferences:
    return _shown(await table.preferences(session, user_id), user_id, public_url)


async def update(change: Change, user_id: UUID, body: PreferencesUpdate, public_url: str | None) -> Preferences:
    """What is sent and differs. Raises `UserNotFound`."""
    await _locked(change.session, user_id)
    before = (await table.preferences(change.session, user_id))._asdict()
    sent = body.sent()
    changed: dict[str, Any] = {name: value for name, value in sent.items() if _differs(before[name], value)}
    if changed:
        await table.store(change.session, user_id, changed)
        change.record("user.preferences_changed", "user", user_id, **changed)
    return await shown(change.session, user_id, public_url)


async def set_avatar(parts: Apart, request: Request, user_id: UUID, public_url: str | None) -> Preferences:
    """The picture is made between two transactions. Raises `UserNotFound`, `NotAPicture`, `PictureTooLarge`,
    `BadForm`, `NoFile`, `TooManyPictures`."""
    async with parts.reading() as session:
        if not await table.user_is_there(session, user_id):
            raise UserNotFound
    png = await pictures.avatar(await uploads.picture(request))
    digest = hashlib.sha256(png).hexdigest()[:_DIGEST_CHARS]
    async with parts.changing() as change:
        await _locked(change.session, user_id)
        if await table.avatar_digest(change.session, user_id) != digest:
            await table.store_avatar(change.session, user_id, png, digest)
            change.record("user.avatar_set", "user", user_id, digest=digest)
        return await shown(change.session, user_id, public_url)


async def remove_avatar(change: Change, user_id: UUID) -> None:
    """Nothing happens where there is none."""
    if await table.drop_avatar(change.session, user_id):
        change.record("user.avatar_removed", "user", user_id)


async def avatar(session: AsyncSession, user_id: UUID, known: str | None) -> tuple[str, bytes | None]:
    """A picture's digest and the picture, without it where its digest is the `known` one. Raises `AvatarNotFound`."""
    found = await table.avatar(session, user_id, known)
    if found is None:
        raise AvatarNotFound
    return found


async def _locked(session: AsyncSession, user_id: UUID) -> None:
    if not await table.user_is_there(session, user_id, lock=True):
        raise UserNotFound


def _differs(before: object, after: object) -> bool:
    return (list(before) if isinstance(before, tuple) else before) != after


def _shown(chosen: Chosen, user_id: UUID, public_url: str | None) -> Preferences:
    # Another picture has another address, so that browsers may keep each for good.
    place = f"{(public_url or '').rstrip('/')}/api/users/{user_id}/avatar?v={chosen.avatar}"
    return Preferences(
        default_model_id=chosen.default_model_id,
        preferred_models=list(chosen.preferred_models),
        default_summarizer_model_id=chosen.default_summarizer_model_id,
        theme=chosen.theme,
        avatar_url=None if chosen.avatar is None else place,
    )
