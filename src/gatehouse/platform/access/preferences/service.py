"""Reads and changes preferences and pictures."""

import hashlib
from typing import Any, Final
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession
from starlette.requests import Request

from gatehouse.foundation.errors import NotFound
from gatehouse.platform.access.preferences import pictures, table, uploads
from gatehouse.platform.access.preferences.schemas import Preferences, PreferencesUpdate
from gatehouse.platform.access.preferences.table import StoredPreferences
from gatehouse.platform.access.users.errors import UserNotFound
from gatehouse.platform.changes.change import Change
from gatehouse.platform.request.injected import SplitTransactions

#: Hexadecimal digits of a picture's digest, enough to make the URLs of a user's pictures unique.
_DIGEST_CHARACTERS: Final = 32


class AvatarNotFound(NotFound):
    message = "The user has no avatar"


async def read(session: AsyncSession, user_id: UUID, public_url: str | None) -> Preferences:
    return _to_response(await table.preferences(session, user_id), user_id, public_url)


async def update(change: Change, user_id: UUID, body: PreferencesUpdate, public_url: str | None) -> Preferences:
    """Store the preferences that are sent and differ. Raises `UserNotFound`."""
    await _lock_user(change.session, user_id)
    before = (await table.preferences(change.session, user_id))._asdict()
    sent = body.sent()
    changed: dict[str, Any] = {name: value for name, value in sent.items() if _differs(before[name], value)}
    if changed:
        await table.store(change.session, user_id, changed)
        change.record("user.preferences_changed", "user", user_id, **changed)
    return await read(change.session, user_id, public_url)


async def set_avatar(
    transactions: SplitTransactions, request: Request, user_id: UUID, public_url: str | None
) -> Preferences:
    """Set a user's picture. The file is converted between two transactions, so that none is open meanwhile. Raises
    `UserNotFound`, `NotAPicture`, `PictureTooLarge`, `BadForm`, `NoFile`, `TooManyPictures`."""
    async with transactions.reading() as session:
        if not await table.user_exists(session, user_id):
            raise UserNotFound
    png = await pictures.avatar(await uploads.read_picture(request))
    digest = hashlib.sha256(png).hexdigest()[:_DIGEST_CHARACTERS]
    async with transactions.changing() as change:
        await _lock_user(change.session, user_id)
        if await table.avatar_digest(change.session, user_id) != digest:
            await table.store_avatar(change.session, user_id, png, digest)
            change.record("user.avatar_set", "user", user_id, digest=digest)
        return await read(change.session, user_id, public_url)


async def remove_avatar(change: Change, user_id: UUID) -> None:
    """Remove the picture, if there is one."""
    if await table.drop_avatar(change.session, user_id):
        change.record("user.avatar_removed", "user", user_id)


async def avatar(session: AsyncSession, user_id: UUID, known_digest: str | None) -> tuple[str, bytes | None]:
    """Return a picture's digest and the picture. The picture is None if its digest is `known_digest`. Raises
    `AvatarNotFound`."""
    avatar_row = await table.avatar(session, user_id, known_digest)
    if avatar_row is None:
        raise AvatarNotFound
    return avatar_row


async def _lock_user(session: AsyncSession, user_id: UUID) -> None:
    if not await table.user_exists(session, user_id, lock=True):
        raise UserNotFound


def _differs(before: object, after: object) -> bool:
    return (list(before) if isinstance(before, tuple) else before) != after


def _to_response(stored: StoredPreferences, user_id: UUID, public_url: str | None) -> Preferences:
    # Each picture has its own URL, so that browsers can cache it permanently.
    avatar_url = f"{(public_url or '').rstrip('/')}/api/users/{user_id}/avatar?v={stored.avatar}"
    return Preferences(
        default_model_id=stored.default_model_id,
        preferred_models=list(stored.preferred_models),
        default_summarizer_model_id=stored.default_summarizer_model_id,
        theme=stored.theme,
        avatar_url=None if stored.avatar is None else avatar_url,
    )
