"""The rules of groups as a directory sees them: `displayName` is the group's name, `externalId` its link to it."""

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
from gatehouse.platform.access.groups.errors import GroupNameTaken
from gatehouse.platform.access.groups.schemas import GroupUpdate, NewGroup
from gatehouse.platform.access.groups.table import GroupRow
from gatehouse.platform.access.scim import table
from gatehouse.platform.access.scim.errors import InvalidValue, Taken
from gatehouse.platform.access.scim.filters import GROUPS, compiled
from gatehouse.platform.access.scim.reading import View, Window
from gatehouse.platform.access.scim.team_patch import Members, Named, Step, What, named_members, steps_of
from gatehouse.platform.access.scim.urns import GROUP
from gatehouse.platform.change import Change

MAX_BYTES: Final = 8 * 1024 * 1024
MAX_OPERATIONS: Final = 2_000
#: Of all groups of a page together: more would be an answer of megabytes. The page then has fewer groups than asked.
_MEMBERS_OF_A_PAGE: Final = 20_000
#: of a PATCH that does not say what to show: Entra ID sends thousands to a group, and reads none of the answers
_MEMBERS_OF_AN_ANSWER: Final = 1_000
#: Who reads a page of events is not handed ten thousand ids in one of them.
_IN_AN_EVENT: Final = 500
#: Changed members that workers are told of one by one: of more, it is quicker to load all of the group's.
_TOLD_BY_USER: Final = 200
_ATTRIBUTES: Final = {"name": "displayName", "external_group_id": "externalId"}


async def page(session: AsyncSession, window: Window, view: View) -> tuple[Sequence[GroupRow], int]:
    """As `people.page`. With their members, at least one group, and then as many as there is room for."""
    query = select(GroupRow)
    if window.filter:
        query = query.where(compiled(window.filter, GROUPS))
    found, total = await table.page(session, GroupRow, query, window)
    if not view.part.shows("members"):
        return found, total
    sizes = await table.sizes(session, [group.id for group in found])
    members, fitting = 0, 0
    for group in found:
        members += sizes.get(group.id, 0)
        if fitting and members > _MEMBERS_OF_A_PAGE:
            break
        fitting += 1
    return found[:fitting], total


async def large(session: AsyncSession, group: GroupRow) -> bool:
    """Whether who changes it had better not be shown all of it."""
    return (await table.sizes(session, [group.id])).get(group.id, 0) > _MEMBERS_OF_AN_ANSWER


async def resources(session: AsyncSession, rows: Sequence[GroupRow], view: View) -> list[dict[str, Any]]:
    """The groups as resources: of each, what is asked for."""
    members: dict[UUID, str] = {}
    if rows and view.part.shows("members"):
        members = await table.members_json(session, [group.id for group in rows], view.base)
    return [view.part(_shown(group, members.get(group.id, "[]"), view.base)) for group in rows]


def _shown(group: GroupRow, members: str, base: str) -> dict[str, Any]:
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
    """Raises `Taken`, `InvalidValue`, `TooManyGroups`."""
    name, external_id, members = _read(body)
    try:
        new = NewGroup(name=name, external_group_id=external_id)
        made = await groups.create(change, new)
    except ValidationError as error:
        raise _invalid(error) from None
    except GroupNameTaken as error:
        raise Taken(error.text) from None
    group = await change.session.get_one(GroupRow, made.id)
    await _set_members(change, group, [Members(What.ADD, members)])
    return group


async def replace(change: Change, group: GroupRow, body: dict[str, Any]) -> None:
    """Name, link and members become what the body says; a description is not the directory's to take away."""
    name, external_id, members = _read(body)
    named = [Named("displayName", name), Named("externalId", external_id)]
    await _apply(change, group, [*named, Members(What.BECOME, members)])


async def patch(change: Change, group: GroupRow, operations: list[dict[str, Any]]) -> None:
    """All operations or none. Raises `Taken`, `BadScim`."""
    await _apply(change, group, steps_of(operations))


async def delete(change: Change, caller: Caller, group: GroupRow) -> None:
    """With its DLP overrides and model access rules."""
    await groups.delete(change, group)


async def _apply(change: Change, group: GroupRow, steps: Sequence[Step]) -> None:
    named = {step.attribute: step.value for step in steps if isinstance(step, Named)}
    changed = {column: named[name] or None for column, name in _ATTRIBUTES.items() if name in named}
    if changed:
        try:
            await groups.update(change, group, GroupUpdate.model_validate(changed))
        except ValidationError as error:
            raise _invalid(error) from None
        except GroupNameTaken as error:
            raise Taken(error.text) from None
    await _set_members(change, group, [step for step in steps if isinstance(step, Members)])


async def _set_members(change: Change, group: GroupRow, steps: Sequence[Members]) -> None:
    """Each worker knows of it when the answer is there. Raises `InvalidValue` for a user that there is not."""
    coming = {user for step in steps if step.what is not What.REMOVE for user in step.users}
    if coming and (missing := coming - await table.people(change.session, coming)):
        raise InvalidValue(f"members: there is no user {min(missing)}")
    await linking.link_members(change, coming)
    added: set[UUID] = set()
    removed: set[UUID] = set()
    for step in steps:
        came, gone = await _done(change.session, group.id, step)
        added, removed = (added - gone) | (came - removed), (removed - came) | (gone - added)
    if added or removed:
        group.updated_at = utc_now()
        _tell(change, group, added, removed)


async def _done(session: AsyncSession, group: UUID, step: Members) -> tuple[set[UUID], set[UUID]]:
    """Who came, and who went."""
    came: set[UUID] = set()
    gone: set[UUID] = set()
    if step.what is What.REMOVE:
        gone = await table.remove_members(session, group, step.users)
    elif step.what is What.BECOME:
        gone = await table.keep_members(session, group, step.users)
    if step.what is not What.REMOVE and step.users:
        came = await table.add_members(session, group, step.users)
    return came, gone


def _tell(change: Change, group: GroupRow, added: set[UUID], removed: set[UUID]) -> None:
    for word, users in (("added", sorted(added)), ("removed", sorted(removed))):
        for first in range(0, len(users), _IN_AN_EVENT):
            some: dict[str, Any] = {word: users[first : first + _IN_AN_EVENT]}
            change.record("group.members_changed", "group", group.id, name=group.name, **some)
    if len(added) + len(removed) > _TOLD_BY_USER:
        change.touch("group", group.id, urgent=True)
        return
    for user in added | removed:
        change.touch("user", user, urgent=True)


def _read(body: dict[str, Any]) -> tuple[str, str | None, dict[UUID, str | None]]:
    """Name, link and members of a whole resource. Raises `InvalidValue`."""
    fields = {name.lower(): value for name, value in body.items()}
    name, external_id = fields.get("displayname"), fields.get("externalid")
    if not isinstance(name, str):
        raise InvalidValue("displayName is required, and must be text")
    if external_id is not None and not isinstance(external_id, str):
        raise InvalidValue("externalId must be text")
    return name, external_id or None, named_members(fields.get("members"))


def _invalid(error: ValidationError) -> InvalidValue:
    fault = error.errors(include_input=False)[0]
    return InvalidValue(f"{_ATTRIBUTES.get(str(fault['loc'][0]), 'value')}: {fault['msg']}")
