"""Tables of groups, their members and overrides, and named queries."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple, TypeAlias
from uuid import UUID

from sqlalchemy import Select, Text, case, cast, column, delete, func, insert, literal_column, select, table
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.foundation import emails
from gatehouse.foundation.http.lists import OptionalWindow, containing, count_query, sorted_by
from gatehouse.foundation.storage.rows import TenantRow
from gatehouse.platform.access.users.table import UserRow


class GroupRow(TenantRow):
    __tablename__ = "groups"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    name: Mapped[str]
    description: Mapped[str | None]
    external_group_id: Mapped[str | None]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]


class MemberRow(TenantRow):
    __tablename__ = "group_members"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    group_id: Mapped[UUID]
    user_id: Mapped[UUID]
    joined_at: Mapped[datetime]
    #: display name that a directory sent for the member (`access.scim`)
    display: Mapped[str | None]


class OverrideRow(TenantRow):
    __tablename__ = "group_dlp_overrides"

    group_id: Mapped[UUID] = mapped_column(primary_key=True)
    entity_type: Mapped[str] = mapped_column(primary_key=True)
    action: Mapped[str]


def _members_query(group_id: UUID, search: str | None) -> Select[Any]:
    query = select(MemberRow).join(UserRow, UserRow.id == MemberRow.user_id).where(MemberRow.group_id == group_id)
    return containing(query, search, UserRow.email, UserRow.username, UserRow.display_name)


#: a query of groups, each with its number of members
GroupListQuery: TypeAlias = Select[Any]


#: The model access rules, whose family (`access.model_access`) depends on this one.
_RULES: Final = table("group_model_access", column("group_id"), column("model_id"), column("access_type"))


class GroupFilters(NamedTuple):
    """Filters of the list. `search` is a part of the name, the description or the directory's id. `allowed_model` is
    `provider/model-id`."""

    search: str | None = None
    allowed_model: str | None = None
    from_directory: bool | None = None


def list_query(filters: GroupFilters, *, sort: str) -> GroupListQuery:
    """Return the query of groups, each with its number of members."""
    counts = select(MemberRow.group_id, func.count().label("members")).group_by(MemberRow.group_id).subquery()
    members = func.coalesce(counts.c.members, 0)
    query: GroupListQuery = select(GroupRow, members).outerjoin(counts, counts.c.group_id == GroupRow.id)  # type: ignore[assignment]
    query = containing(query, filters.search, GroupRow.name, GroupRow.description, GroupRow.external_group_id)
    if filters.allowed_model is not None:
        allows = (_RULES.c.model_id == filters.allowed_model) & (_RULES.c.access_type == "ALLOW")
        query = query.where(GroupRow.id.in_(select(_RULES.c.group_id).where(allows)))
    if filters.from_directory is not None:
        query = query.where(GroupRow.external_group_id.is_not(None).is_(filters.from_directory))
    columns = {"name": GroupRow.name, "member_count": members, "created_at": GroupRow.created_at}
    return sorted_by(query, sort, columns, unique=GroupRow.id)


async def rows(session: AsyncSession, query: GroupListQuery) -> Sequence[tuple[GroupRow, int]]:
    result: Iterable[Any] = await session.execute(query)
    return [(group, members) for group, members in result]


async def count_matching(session: AsyncSession, query: GroupListQuery) -> int:
    return (await session.execute(count_query(query))).scalar_one()


async def count_groups(session: AsyncSession) -> int:
    return (await session.execute(select(func.count()).select_from(GroupRow))).scalar_one()


async def count_members(session: AsyncSession, group_id: UUID) -> int:
    return (await session.execute(select(func.count()).where(MemberRow.group_id == group_id))).scalar_one()


async def count_matching_members(session: AsyncSession, group_id: UUID, *, search: str | None) -> int:
    """Return the number of members whose address or name contains `search`."""
    return (await session.execute(count_query(_members_query(group_id, search)))).scalar_one()


async def members_json(
    session: AsyncSession, group_id: UUID, window: OptionalWindow, *, search: str | None, sort: str
) -> str:
    """Return the members of one page as a JSON array of `Member`."""
    columns = {"user_email": UserRow.email, "joined_at": MemberRow.joined_at}
    page = sorted_by(_members_query(group_id, search), sort, columns, unique=MemberRow.id)
    has_address = UserRow.email.not_like(f"%{emails.PLACEHOLDER_SUFFIX}")
    # The database renders the JSON: a group may have 100,000 members, which would take this process seconds.
    member = func.json_build_object(
        "id", MemberRow.id, "user_id", MemberRow.user_id, "group_id", MemberRow.group_id,
        "user_email", case((has_address, UserRow.email)),
        "joined_at", func.to_char(func.timezone("UTC", MemberRow.joined_at), 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
    )  # fmt: skip
    rows = window.apply(page.with_only_columns(member.label("member"))).subquery()
    query = select(cast(func.coalesce(func.json_agg(rows.c.member), literal_column("'[]'")), Text))
    members: str = (await session.execute(query)).scalar_one()
    return members


async def find_member(session: AsyncSession, group_id: UUID, user_id: UUID) -> MemberRow | None:
    query = select(MemberRow).where(MemberRow.group_id == group_id, MemberRow.user_id == user_id)
    return (await session.scalars(query)).one_or_none()


async def lock_user(session: AsyncSession, user_id: UUID) -> UserRow | None:
    """Return the user, locked against deletion. Others can still add rows that reference the user."""
    query = select(UserRow).where(UserRow.id == user_id).with_for_update(read=True, key_share=True)
    return (await session.scalars(query)).one_or_none()


async def overrides_of(session: AsyncSession, group_id: UUID) -> Sequence[OverrideRow]:
    """Return the group's overrides, sorted by entity type."""
    query = select(OverrideRow).where(OverrideRow.group_id == group_id).order_by(OverrideRow.entity_type)
    return (await session.scalars(query)).all()


async def replace_overrides(session: AsyncSession, group: GroupRow, actions: Mapping[str, str]) -> None:
    """Replace the group's overrides. `actions` maps entity types to actions."""
    await session.execute(delete(OverrideRow).where(OverrideRow.group_id == group.id))
    if actions:
        keys = {"tenant_id": group.tenant_id, "group_id": group.id}
        rows = [{**keys, "entity_type": entity_type, "action": action} for entity_type, action in actions.items()]
        await session.execute(insert(OverrideRow), rows)
