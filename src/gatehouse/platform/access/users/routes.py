"""The users' endpoints (decisions 2, Users)."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from gatehouse.foundation.http.lists import PageWindow, counted, page_window
from gatehouse.platform.access.anonymising import forget
from gatehouse.platform.access.users import service
from gatehouse.platform.access.users.errors import UserNotFound
from gatehouse.platform.access.users.schemas import (
    NewUser,
    PasswordResetIssued,
    RoleName,
    User,
    UserCreated,
    UserPage,
    UserUpdate,
)
from gatehouse.platform.access.users.table import UserRow, matching
from gatehouse.platform.callers import RESPONSES, AdminReader, AdminStepUp
from gatehouse.platform.ports import TheHost
from gatehouse.platform.requests import Changing, InParts, Session, loaded

router = APIRouter(prefix="/api/admin/users", tags=["Users"], responses=RESPONSES)

LoadedUser = Annotated[UserRow, Depends(loaded(UserRow, "user_id", UserNotFound))]
Window = Annotated[PageWindow, Depends(page_window(default=50, maximum=200))]
Search = Annotated[
    str | None, Query(max_length=255, pattern=r"^[^\x00]*$", description="Part of an address, username or name.")
]

Anonymise = Annotated[
    bool,
    Query(
        description="Take the user out of the audit chain too. Its events stay, without saying who it was; "
        "this cannot be undone."
    ),
]


@router.get("", response_model=UserPage)
async def list_users(
    caller: AdminReader,
    session: Session,
    window: Window,
    *,
    search: Search = None,
    role: RoleName | None = None,
    active: bool | None = None,
) -> object:
    """The organization's users, newest first."""
    query = matching(search=search, role=role, active=active)
    total = await session.scalar(counted(query)) or 0
    return window.envelope("items", (await session.scalars(window.apply(query))).all(), total)


@router.post("", status_code=201, response_model=UserCreated)
async def create_user(caller: AdminStepUp, body: NewUser, host: TheHost, parts: InParts) -> object:
    """Makes a user. Without a password the answer holds an invitation token, which the user redeems at
    `POST /api/auth/register` within seven days."""
    hashed = None if body.password is None else await host.passwords.hash(body.password, about=body.email)
    async with parts.changing() as change:
        user, invitation = await service.create(change, caller, body, hashed)
        shown = User.model_validate(user).model_dump()
    token, until = invitation or (None, None)
    return UserCreated(**shown, invitation_token=token, invitation_expires_at=until)


@router.get("/{user_id}", response_model=User)
async def read_user(caller: AdminReader, user: LoadedUser) -> object:
    """One user."""
    return user


@router.patch("/{user_id}", response_model=User)
async def update_user(caller: AdminStepUp, user: LoadedUser, body: UserUpdate, change: Changing) -> object:
    """Changes what is sent. Inactive, a user's sessions end and keys stop at once."""
    return await service.update(change, caller, user, body.sent())


@router.delete("/{user_id}", status_code=204)
async def delete_user(caller: AdminStepUp, user: LoadedUser, change: Changing, *, anonymise: Anonymise = False) -> None:
    """Removes a user for good, with their sessions and keys; OAuth clients they made stay."""
    await service.delete(change, caller, user)
    if anonymise:
        await forget(change, user.id)


@router.post("/{user_id}/password-reset", status_code=201, response_model=PasswordResetIssued)
async def issue_password_reset(caller: AdminStepUp, user: LoadedUser, change: Changing) -> object:
    """A token with which the user sets a new password at `POST /api/auth/password/reset`, once, within 24 hours.
    Earlier ones are void; the old password goes on until then."""
    token, expires_at = await service.issue_reset(change, caller, user)
    return PasswordResetIssued(token=token, expires_at=expires_at)
