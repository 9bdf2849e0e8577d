"""SCIM operations on groups. `displayName` is the group's name, `externalId` is the directory's id of the group."""

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

import msgspec
from pydantic import ValidationError
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.identity import Caller
from gatehouse.platform.access import linking
from gatehouse.platform.access.groups import service as groups
from gatehouse.platform.access.groups.schemas import GroupUpdate, NewGroup
from gatehouse.platform.access.groups.service import GroupNameTaken
from gatehouse.platform.access.groups.table import GroupRow
from gatehouse.platform.access.scim import table
from gatehouse.platform.access.scim.errors import InvalidValue, UniquenessConflict
from gatehouse.platform.access.scim.protocol.filters import GROUPS, compile_filter
from gatehouse.platform.access.scim.protocol.messages import ListWindow, ResourceView
from gatehouse.platform.access.scim.protocol.team_patch import (
    AttributeStep,
    GroupStep,
    MemberAction,
    MembersStep,
    parse_members,
    steps_of,
)
from gatehouse.platform.access.scim.protocol.urns import GROUP
from gatehouse.platform.changes.change import Change

MAX_BYTES: Final = 8 * 1024 * 1024
MAX_OPERATIONS: Final = 2_000
#: Maximum number of members of all groups of a page, which bounds the response's size. A page with larger groups has
#: fewer groups.
_MAX_MEMBERS_PER_PAGE: Final = 20_000
#: Maximum number of members of a group in the response to a PATCH that selects no attributes. Entra ID sends thousands
#: of members and does not read the responses.
_MAX_MEMBERS_IN_PATCH_RESPONSE: Final = 1_000
#: Maximum number of user ids in one audit event.
_MAX_USERS_PER_EVENT: Final = 500
#: Maximum number of changed members that workers reload one by one. With more, reloading the whole group is faster.
_MAX_USER_TOUCHES: Final = 200
_ATTRIBUTES: Final = {"name": "displayName", "external_group_id": "externalId"}


async def page(session: AsyncSession, window: ListWindow, view: ResourceView) -> tuple[Sequence[GroupRow], int]:
    """Return one page of groups and their total number. If members are selected, a page of more than one group has at
    most `_MAX_MEMBERS_PER_PAGE` members. Raises `InvalidFilter`, `FilterTooSlow`."""
    query = select(GroupRow)
    if window.filter:
        query = query.where(compile_filter(window.filter, GROUPS))
    rows, total = await table.page(session, GroupRow, query, window)
    if not view.projection.includes("members"):
        return rows, total
    member_counts = await table.member_counts(session, [group.id for group in rows])
    member_count, page_size = 0, 0
    for group in rows:
        member_count += member_counts.get(group.id, 0)
        if page_size and member_count > _MAX_MEMBERS_PER_PAGE:
            break
        page_size += 1
    return rows[:page_size], total


async def is_large(session: AsyncSession, group: GroupRow) -> bool:
    """Return whether the group is too large for the response to a PATCH."""
    return (await table.member_counts(session, [group.id])).get(group.id, 0) > _MAX_MEMBERS_IN_PATCH_RESPONSE


async def resources(session: AsyncSession, rows: Sequence[GroupRow], view: ResourceView) -> list[dict[str, Any]]:
    """Return the groups as resources, with the attributes that the request selects."""
    members: dict[UUID, str] = {}
    if rows and view.projection.includes("members"):
        members = await table.members_json(session, [group.id for group in rows], view.base)
    return [view.projection(_to_resource(group, members.get(group.id, "[]"), view.base)) for group in rows]


def _to_resource(group: GroupRow, members: str, base: str) -> dict[str, Any]:
    resource = {
        "schemas": [GROUP],
        "id": str(group.id),
        "externalId": group.external_group_id,
        "displayName": group.name,
        "members": msgspec.Raw(members.encode()),
        "meta": {
            "resourceType": "Group",
            "created": group.created_at,
            "lastModified": group.updated_at,
            "location": location(group, base),
        },
    }
    return {name: value for name, value in resource.items() if value is not None}


def location(group: GroupRow, base: str) -> str:
    return f"{base}/Groups/{group.id}"


async def create(change: Change, body: dict[str, Any]) -> GroupRow:
    """Create a group with its members. Raises `UniquenessConflict`, `InvalidValue`, `TooManyGroups`."""
    name, external_id, members = _parse_group(body)
    try:
        new = NewGroup(name=name, external_group_id=external_id)
        created = await groups.create(change, new)
    except ValidationError as error:
        raise _invalid(error) from None
    except GroupNameTaken as error:
        raise UniquenessConflict(error.text) from None
    group = await change.session.get_one(GroupRow, created.id)
    await _set_members(change, group, [MembersStep(MemberAction.ADD, members)])
    return group


async def replace(change: Change, group: GroupRow, body: dict[str, Any]) -> None:
    """Replace the group's name, `externalId` and members. The description stays, because directories do not have this
    attribute."""
    name, external_id, members = _parse_group(body)
    attribute_steps = [AttributeStep("displayName", name), AttributeStep("externalId", external_id)]
    await _apply(change, group, [*attribute_steps, MembersStep(MemberAction.REPLACE, members)])


async def patch(change: Change, group: GroupRow, operations: list[dict[str, Any]]) -> None:
    """Apply all operations or none. Raises `UniquenessConflict`, `BadScim`."""
    await _apply(change, group, steps_of(operations))


async def delete(change: Change, caller: Caller, group: GroupRow) -> None:
    """Delete the group with its DLP overrides and model access rules."""
    await groups.delete(change, group)


async def _apply(change: Change, group: GroupRow, steps: Sequence[GroupStep]) -> None:
    values = {step.attribute: step.value for step in steps if isinstance(step, AttributeStep)}
    changed = {column: values[name] or None for column, name in _ATTRIBUTES.items() if name in values}
    if changed:
        try:
            await groups.update(change, group, GroupUpdate.model_validate(changed))
        except ValidationError as error:
            raise _invalid(error) from None
        except GroupNameTaken as error:
            raise UniquenessConflict(error.text) from None
    await _set_members(change, group, [step for step in steps if isinstance(step, MembersStep)])


async def _set_members(change: Change, group: GroupRow, steps: Sequence[MembersStep]) -> None:
    """Apply changes of members. The changes are active on every worker when the response is sent. Raises
    `InvalidValue` for an unknown user."""
    requested_ids = {user for step in steps if step.action is not MemberAction.REMOVE for user in step.users}
    if requested_ids and (missing := requested_ids - await table.lock_users(change.session, requested_ids)):
        raise InvalidValue(f"members: there is no user {min(missing)}")
    await linking.link_members(change, requested_ids)
    added: set[UUID] = set()
    removed: set[UUID] = set()
    for step in steps:
        joined, left = await _apply_step(change.session, group.id, step)
        added, removed = (added - left) | (joined - removed), (removed - joined) | (left - added)
    if added or removed:
        group.updated_at = utc_now()
        _record_and_touch(change, group, added, removed)


async def _apply_step(session: AsyncSession, group: UUID, step: MembersStep) -> tuple[set[UUID], set[UUID]]:
    """Apply one change. Return the ids of the users who joined, and of the users who left."""
    joined: set[UUID] = set()
    left: set[UUID] = set()
    if step.action is MemberAction.REMOVE:
        left = await table.remove_members(session, group, step.users)
    elif step.action is MemberAction.REPLACE:
        left = await table.keep_members(session, group, step.users)
    if step.action is not MemberAction.REMOVE and step.users:
        joined = await table.add_members(session, group, step.users)
    return joined, left


def _record_and_touch(change: Change, group: GroupRow, added: set[UUID], removed: set[UUID]) -> None:
    for direction, users in (("added", sorted(added)), ("removed", sorted(removed))):
        for start in range(0, len(users), _MAX_USERS_PER_EVENT):
            batch: dict[str, Any] = {direction: users[start : start + _MAX_USERS_PER_EVENT]}
            change.record("group.members_changed", "group", group.id, name=group.name, **batch)
    if len(added) + len(removed) > _MAX_USER_TOUCHES:
        change.touch("group", group.id, urgent=True)
        return
    for user in added | removed:
        change.touch("user", user, urgent=True)


def _parse_group(body: dict[str, Any]) -> tuple[str, str | None, dict[UUID, str | None]]:
    """Return name, `externalId` and members of a whole resource. Raises `InvalidValue`."""
    fields = {name.lower(): value for name, value in body.items()}
    name, external_id = fields.get("displayname"), fields.get("externalid")
    if not isinstance(name, str):
        raise InvalidValue("displayName is required, and must be text")
    if external_id is not None and not isinstance(external_id, str):
        raise InvalidValue("externalId must be text")
    return name, external_id or None, parse_members(fields.get("members"))


def _invalid(error: ValidationError) -> InvalidValue:
    fault = error.errors(include_input=False)[0]
    return InvalidValue(f"{_ATTRIBUTES.get(str(fault['loc'][0]), 'value')}: {fault['msg']}")
