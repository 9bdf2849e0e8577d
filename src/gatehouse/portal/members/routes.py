"""The members' endpoints (reference 2, Cloud portal)."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends

from gatehouse.portal.callers import RESPONSES, OrgAdmin, OrgMember
from gatehouse.portal.members import service, table
from gatehouse.portal.members.errors import MemberNotFound
from gatehouse.portal.members.schemas import Member, MemberInvited, MemberUpdate, NewMember
from gatehouse.portal.members.table import MemberRow
from gatehouse.portal.requests import Changing, Session

router = APIRouter(prefix="/v1/orgs/{org_id}/members", tags=["Members"], responses=RESPONSES)


async def _member(caller: OrgAdmin, session: Session, user_id: UUID) -> MemberRow:
    """Two changes that each leave one administrator would together leave none: one is after the other."""
    await table.lock(session)
    found = await session.get(MemberRow, user_id)
    if found is None:
        raise MemberNotFound
    return found


LoadedMember = Annotated[MemberRow, Depends(_member)]


@router.get("", response_model=list[Member])
async def list_members(caller: OrgMember, session: Session) -> object:
    """The organization's members and invitations, oldest first."""
    return await table.all_members(session)


@router.post(
    "",
    status_code=201,
    response_model=MemberInvited,
    responses={409: {"description": "There is a member, or an invitation, with this address."}},
)
async def invite_member(caller: OrgAdmin, body: NewMember, change: Changing) -> MemberInvited:
    """Invites a person. Hand them the token yourself: it is shown once, and good for seven days."""
    return await service.invite(change, body)


@router.put(
    "/{user_id}",
    response_model=Member,
    responses={409: {"description": "It is the last administrator."}},
)
async def change_role(caller: OrgAdmin, member: LoadedMember, body: MemberUpdate, change: Changing) -> object:
    """Changes what a member may do, from the answer on. `user_id` is the member's `id`."""
    return await service.set_role(change, member, body.role)


@router.delete("/{user_id}", status_code=204, responses={409: {"description": "It is the last administrator."}})
async def remove_member(caller: OrgAdmin, member: LoadedMember, change: Changing) -> None:
    """Removes a member: their tokens are refused from the answer on. Withdraws an invitation that is not accepted."""
    await service.remove(change, member)
