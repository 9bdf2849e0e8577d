"""Tables of preferences and pictures, and named queries."""

from collections.abc import Mapping
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import LargeBinary, case, delete, null, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.foundation.storage.rows import TenantRow
from gatehouse.platform.access.users.table import UserRow


class PreferencesRow(TenantRow):
    __tablename__ = "user_preferences"

    user_id: Mapped[UUID] = mapped_column(primary_key=True)
    default_model_id: Mapped[str | None]
    preferred_models: Mapped[list[str]]
    default_summarizer_model_id: Mapped[str | None]
    theme: Mapped[str]


class AvatarRow(TenantRow):
    """A user's picture. `digest` is its digest in hexadecimal."""

    __tablename__ = "user_avatars"

    user_id: Mapped[UUID] = mapped_column(primary_key=True)
    png: Mapped[bytes] = mapped_column(LargeBinary)
    digest: Mapped[str]


class StoredPreferences(NamedTuple):
    """A user's preferences, with defaults for those that were never set. `avatar` is the digest of the user's
    picture."""

    default_model_id: str | None = None
    preferred_models: tuple[str, ...] = ()
    default_summarizer_model_id: str | None = None
    theme: str = "system"
    avatar: str | None = None


async def preferences(session: AsyncSession, user_id: UUID) -> StoredPreferences:
    row = await session.get(PreferencesRow, user_id, populate_existing=True)
    avatar = await avatar_digest(session, user_id)
    if row is None:
        return StoredPreferences(avatar=avatar)
    return StoredPreferences(
        row.default_model_id, tuple(row.preferred_models), row.default_summarizer_model_id, row.theme, avatar
    )


async def store(session: AsyncSession, user_id: UUID, changed: Mapping[str, Any]) -> None:
    """Store the preferences in `changed`, which maps at least one column to its value."""
    row = {"tenant_id": session.info["tenant_id"], "user_id": user_id, **changed}
    statement = insert(PreferencesRow).values(row)
    await session.execute(statement.on_conflict_do_update(index_elements=[PreferencesRow.user_id], set_=dict(changed)))


async def avatar_digest(session: AsyncSession, user_id: UUID) -> str | None:
    return await session.scalar(select(AvatarRow.digest).where(AvatarRow.user_id == user_id))


async def avatar(session: AsyncSession, user_id: UUID, known_digest: str | None) -> tuple[str, bytes | None] | None:
    """Return a picture's digest and the picture; None if there is no picture. The picture is None if its digest is
    `known_digest`."""
    png = case((AvatarRow.digest == known_digest, null()), else_=AvatarRow.png)
    row = (await session.execute(select(AvatarRow.digest, png).where(AvatarRow.user_id == user_id))).first()
    return None if row is None else (row[0], row[1])


async def store_avatar(session: AsyncSession, user_id: UUID, png: bytes, digest: str) -> None:
    row = {"tenant_id": session.info["tenant_id"], "user_id": user_id, "png": png, "digest": digest}
    statement = insert(AvatarRow).values(row)
    updates = {"png": png, "digest": digest}
    await session.execute(statement.on_conflict_do_update(index_elements=[AvatarRow.user_id], set_=updates))


async def drop_avatar(session: AsyncSession, user_id: UUID) -> bool:
    """Delete the picture; return whether there was one."""
    deleted_user_id = await session.scalar(
        delete(AvatarRow).where(AvatarRow.user_id == user_id).returning(AvatarRow.user_id)
    )
    return deleted_user_id is not None


async def user_exists(session: AsyncSession, user_id: UUID, *, lock: bool = False) -> bool:
    """Return whether the user exists. `lock` locks the row against deletion until the transaction ends, which also
    serializes changes of the user's preferences."""
    query = select(UserRow.id).where(UserRow.id == user_id)
    if lock:
        query = query.with_for_update(key_share=True)
    return (await session.execute(query)).first() is not None
