"""The endpoints of members."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from gatehouse.administration.etags import READ_METHODS, TheVersions
from gatehouse.foundation.http.bodies import PathId
from gatehouse.foundation.http.lists import OptionalWindow, optional_window, windowed
from gatehouse.portal.members import service, table
from gatehouse.portal.members.schemas import Member, MemberInvited, MemberUpdate, NewMember
from gatehouse.portal.members.service import PortalMemberNotFound
from gatehouse.portal.members.table import PortalMemberRow
from gatehouse.portal.request.callers import RESPONSES, OrgAdmin, OrgMember
from gatehouse.portal.request.injected import Changing, Session

router = APIRouter(prefix="/v1/orgs/{org_id}/members", tags=["Members"], responses=RESPONSES)

Window = Annotated[OptionalWindow, Depends(optional_window(maximum=200))]


async def _member(session: Session, request: Request, versions: TheVersions, user_id: PathId) -> PortalMemberRow:
    """Returns the member that the path names. If the request can change the member, locks the organization's members,
    so that two concurrent changes cannot leave the organization without an administrator."""
    changes = request.method not in READ_METHODS
    if changes:
        await table.lock(session)
    member = None if user_id is None else await session.get(PortalMemberRow, user_id, with_for_update=changes or None)
    if member is None:
        raise PortalMemberNotFound
    versions.about(member, "user_id")
    return member


LoadedMember = Annotated[PortalMemberRow, Depends(_member)]


@router.get("", response_model=list[Member])
async def list_members(caller: OrgMember, session: Session, window: Window, response: Response) -> object:
    """Returns the organization's members and invitations, by default all of them, the oldest first. The header
    `X-Total-Count` is their number, regardless of `limit` and `offset`."""
    return await windowed(session, table.all_members(), window, response)


@router.post(
    "",
    status_code=201,
    response_model=MemberInvited,
    responses={409: {"description": "A member or an invitation has this address."}},
)
async def invite_member(caller: OrgAdmin, body: NewMember, change: Changing) -> MemberInvited:
    """Invites a person. No mail is sent: give the token to the person. It is shown once, and is valid for seven
    days."""
    return await service.invite(change, body)


@router.get("/{user_id}", response_model=Member)
async def show_member(caller: OrgMember, member: LoadedMember) -> object:
    """Returns one member or invitation. `user_id` is the member's `id`."""
    return member


@router.put(
    "/{user_id}",
    response_model=Member,
    responses={409: {"description": "It is the last administrator."}},
)
async def change_role(caller: OrgAdmin, member: LoadedMember, body: MemberUpdate, change: Changing) -> object:
    """Changes the role of a member. The new role applies to requests after this response."""
    return await service.set_role(change, member, body.role)


@router.delete("/{user_id}", status_code=204, responses={409: {"description": "It is the last administrator."}})
async def remove_member(caller: OrgAdmin, member: LoadedMember, change: Changing) -> None:
    """Removes a member, or withdraws an invitation that is not accepted. The member's tokens are refused after this
    response."""
    await service.remove(change, member)
