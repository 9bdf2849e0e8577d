"""Endpoints of groups."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Body, Depends, Query, Response

from gatehouse.foundation.http.lists import (
    TOTAL_COUNT_HEADER,
    OptionalWindow,
    optional_window,
    search_parameter,
    sort_parameter,
)
from gatehouse.platform.access.groups import service
from gatehouse.platform.access.groups.schemas import (
    Group,
    GroupList,
    GroupUpdate,
    Member,
    MemberSort,
    NewGroup,
    NewMember,
    NewOverride,
    Override,
    Sort,
)
from gatehouse.platform.access.groups.service import GroupNotFound
from gatehouse.platform.access.groups.table import (
    GroupFilters,
    GroupRow,
    count_matching_members,
    members_json,
    overrides_of,
)
from gatehouse.platform.request.callers import RESPONSES, GroupAdmin, GroupReader
from gatehouse.platform.request.injected import Changing, Session, loaded

router = APIRouter(prefix="/api/admin/groups", tags=["Groups"], responses=RESPONSES)

LoadedGroup = Annotated[GroupRow, Depends(loaded(GroupRow, "group_id", GroupNotFound))]
#: The overrides share the group's version.
OverriddenGroup = Annotated[GroupRow, Depends(loaded(GroupRow, "group_id", GroupNotFound, part="/dlp"))]
Window = Annotated[OptionalWindow, Depends(optional_window(maximum=500))]
Search = Annotated[str | None, search_parameter("Part of the name, the description or the directory's id.")]
AllowedModel = Annotated[
    str | None,
    Query(
        max_length=319,
        pattern=r"^[^\x00]+$",
        description="Only groups with a rule that allows this model (`provider/model-id`).",
        examples=["openai/gpt-4o-mini"],
    ),
]
FromDirectory = Annotated[
    bool | None,
    Query(description="`true`: only groups with an `external_group_id`. `false`: only groups without one."),
]
Overrides = Annotated[list[NewOverride], Body(max_length=1_000)]


@router.post("", status_code=201, response_model=Group)
async def create_group(caller: GroupAdmin, body: NewGroup, change: Changing) -> Group:
    """Creates a group without members. Its name must be unique in the organization."""
    return await service.create(change, body)


@router.get("", response_model=GroupList)
async def list_groups(
    caller: GroupReader,
    session: Session,
    window: Window,
    *,
    search: Search = None,
    allowed_model: AllowedModel = None,
    from_directory: FromDirectory = None,
    sort: Annotated[Sort, sort_parameter()] = "name",
) -> GroupList:
    """Returns the organization's groups, by default all of them, sorted by name."""
    filters = GroupFilters(search, allowed_model, from_directory)
    return await service.list_groups(session, window, filters, sort=sort)


@router.get("/{group_id}", response_model=Group)
async def read_group(caller: GroupReader, group: LoadedGroup, session: Session) -> Group:
    """Returns one group."""
    return await service.with_member_count(session, group)


@router.put("/{group_id}", response_model=Group)
async def update_group(caller: GroupAdmin, group: LoadedGroup, body: GroupUpdate, change: Changing) -> Group:
    """Changes the fields that are sent; null clears `description` and `external_group_id`."""
    return await service.update(change, group, body)


@router.delete("/{group_id}", status_code=204)
async def delete_group(caller: GroupAdmin, group: LoadedGroup, change: Changing) -> None:
    """Deletes a group with its memberships, DLP overrides, model access rules and content filters. The users stay."""
    await service.delete(change, group)


@router.get("/{group_id}/members", response_model=list[Member])
async def list_members(
    caller: GroupReader,
    group: LoadedGroup,
    session: Session,
    window: Window,
    *,
    search: Annotated[str | None, search_parameter("Part of the member's address, user name or name.")] = None,
    sort: Annotated[MemberSort, sort_parameter()] = "user_email",
) -> Response:
    """Returns the members, by default all of them, sorted by address. The header `X-Total-Count` is the number of all
    matching members, regardless of `limit` and `offset`."""
    headers = {TOTAL_COUNT_HEADER: str(await count_matching_members(session, group.id, search=search))}
    members = await members_json(session, group.id, window, search=search, sort=sort)
    return Response(members, media_type="application/json", headers=headers)


@router.post("/{group_id}/members", status_code=201, response_model=Member)
async def add_member(caller: GroupAdmin, group: LoadedGroup, body: NewMember, change: Changing) -> Member:
    """Adds a user to the group. The membership is active for the user's next request, on every worker."""
    return await service.add_member(change, group, body.user_id)


@router.delete("/{group_id}/members/{user_id}", status_code=204)
async def remove_member(caller: GroupAdmin, group: LoadedGroup, user_id: UUID, change: Changing) -> None:
    """Removes a user from the group. The removal is active when the response is sent. The account is not changed."""
    await service.remove_member(change, group, user_id)


@router.get("/{group_id}/dlp", response_model=list[Override])
async def list_overrides(caller: GroupReader, group: OverriddenGroup, session: Session) -> object:
    """Returns the group's DLP overrides, sorted by entity type. Without overrides the organization's policy applies."""
    return await overrides_of(session, group.id)


@router.put("/{group_id}/dlp", response_model=list[Override])
async def replace_overrides(
    caller: GroupAdmin, group: OverriddenGroup, overrides: Overrides, change: Changing
) -> list[Override]:
    """Replaces all overrides; an empty array clears them. The change is active when the response is sent."""
    return await service.replace_overrides(change, group, overrides)
