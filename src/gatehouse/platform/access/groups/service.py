"""Creates, changes and deletes groups, their members and overrides."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.errors import Conflict, NotFound, Unprocessable
from gatehouse.foundation.http.envelopes import ParameterFault
from gatehouse.foundation.http.lists import OptionalWindow
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.storage.conflicts import unique
from gatehouse.foundation.storage.locks import ScopedLock, require_room
from gatehouse.platform.access.groups import table
from gatehouse.platform.access.groups.schemas import (
    Group,
    GroupList,
    GroupUpdate,
    Member,
    NewGroup,
    NewOverride,
    Override,
    Sort,
)
from gatehouse.platform.access.groups.table import GroupFilters, GroupRow, MemberRow
from gatehouse.platform.access.users.errors import UserNotFound
from gatehouse.platform.changes.change import Change

#: Maximum number of groups of an organization.
MAX_GROUPS: Final = 10_000


class GroupNotFound(NotFound):
    message = "Group not found"


class MemberNotFound(NotFound):
    message = "The user is not a member of the group"


class GroupNameTaken(Conflict):
    code = "group_name_taken"

    def __init__(self, name: str) -> None:
        super().__init__(f"There is a group called {name!r} already.")


class AlreadyMember(Conflict):
    code = "already_member"
    message = "The user is a member of the group already."


class TooManyGroups(Conflict):
    code = "too_many_groups"
    message = "The organization has the maximum number of groups. Remove some first."


class BadOverrides(Unprocessable):
    """Invalid overrides. `faults` are pairs of the position in the body and the message about its `entity_type`."""

    def __init__(self, faults: Sequence[tuple[int, str]]) -> None:
        super().__init__(faults=[ParameterFault(("body", index, "entity_type"), message) for index, message in faults])


async def list_groups(session: AsyncSession, window: OptionalWindow, filters: GroupFilters, *, sort: Sort) -> GroupList:
    query = table.list_query(filters, sort=sort)
    total = await table.count_matching(session, query)
    rows = await table.rows(session, window.apply(query))
    return GroupList(groups=[_with_count(group, members) for group, members in rows], total=total)


async def with_member_count(session: AsyncSession, group: GroupRow) -> Group:
    return _with_count(group, await table.count_members(session, group.id))


async def create(change: Change, new: NewGroup) -> Group:
    """Create a group. Raises `GroupNameTaken`, `TooManyGroups`."""
    await require_room(change.session, ScopedLock.GROUPS, table.count_groups, limit=MAX_GROUPS, full=TooManyGroups)
    now = utc_now()
    group = GroupRow(id=new_id(), tenant_id=change.tenant_id, created_at=now, updated_at=now, **new.model_dump())
    change.session.add(group)
    await _flush(change, group.name)
    change.record("group.created", "group", group.id, **new.model_dump())
    return _with_count(group, 0)


async def update(change: Change, group: GroupRow, body: GroupUpdate) -> Group:
    """Change a group. Raises `GroupNameTaken`."""
    changed = group.differing(body.sent())
    if changed:
        group.assign(changed)
        await _flush(change, group.name)
        change.record("group.updated", "group", group.id, **changed)
    return await with_member_count(change.session, group)


async def delete(change: Change, group: GroupRow) -> None:
    """Delete the group. The database deletes members, overrides, model access rules and content filters with it."""
    members = await table.count_members(change.session, group.id)
    await change.session.delete(group)
    change.record("group.deleted", "group", group.id, name=group.name, members=members)
    change.touch("group", group.id, urgent=True)
    _touch_policy(change)


async def add_member(change: Change, group: GroupRow, user_id: UUID) -> Member:
    """Add a user to the group. The caller has locked the group, so that no concurrent request adds the same user.

    Raises `UserNotFound`, `AlreadyMember`."""
    user = await table.lock_user(change.session, user_id)
    if user is None:
        raise UserNotFound
    if await table.find_member(change.session, group.id, user_id) is not None:
        raise AlreadyMember
    member = MemberRow(id=new_id(), tenant_id=change.tenant_id, group_id=group.id, user_id=user_id, joined_at=utc_now())
    change.session.add(member)
    change.record("group.member_added", "group", group.id, name=group.name, user_id=user_id)
    change.touch("user", user_id, urgent=True)
    return Member(id=member.id, user_id=user_id, group_id=group.id, user_email=user.email, joined_at=member.joined_at)


async def remove_member(change: Change, group: GroupRow, user_id: UUID) -> None:
    """Remove a user from the group. Raises `MemberNotFound`."""
    member = await table.find_member(change.session, group.id, user_id)
    if member is None:
        raise MemberNotFound
    await change.session.delete(member)
    change.record("group.member_removed", "group", group.id, name=group.name, user_id=user_id)
    change.touch("user", user_id, urgent=True)


async def replace_overrides(change: Change, group: GroupRow, new: Sequence[NewOverride]) -> list[Override]:
    """Replace all overrides of the group. Raises `BadOverrides` if an entity type occurs twice."""
    _check_duplicates(new)
    actions = {override.entity_type: override.action for override in new}
    before = {row.entity_type: row.action for row in await table.overrides_of(change.session, group.id)}
    if actions != before:
        await table.replace_overrides(change.session, group, actions)
        # The overrides share the group's version.
        group.updated_at = utc_now()
        change.record("group.dlp_overrides_set", "group", group.id, name=group.name, overrides=actions, before=before)
        _touch_policy(change)
    return [Override(entity_type=entity_type, action=action) for entity_type, action in sorted(actions.items())]


def _check_duplicates(new: Sequence[NewOverride]) -> None:
    faults: list[tuple[int, str]] = []
    entity_types: set[str] = set()
    for index, override in enumerate(new):
        if override.entity_type in entity_types:
            faults.append((index, "occurs twice in the body"))
        entity_types.add(override.entity_type)
    if faults:
        raise BadOverrides(faults)


def _with_count(group: GroupRow, members: int) -> Group:
    fields = {name: getattr(group, name) for name in Group.model_fields if hasattr(group, name)}
    return Group.model_validate({**fields, "member_count": members})


def _touch_policy(change: Change) -> None:
    """Request a recompilation of the policy. The response waits until the new policy is active."""
    change.touch("policy", change.tenant_id, urgent=True)


async def _flush(change: Change, name: str) -> None:
    with unique(GroupNameTaken(name)):
        await change.session.flush()
