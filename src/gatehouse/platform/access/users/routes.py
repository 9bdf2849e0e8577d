"""Endpoints of users."""

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query

from gatehouse.foundation import emails
from gatehouse.foundation.http.lists import (
    PageWindow,
    count_query,
    max_total_parameter,
    page_window,
    search_parameter,
    sort_parameter,
)
from gatehouse.foundation.secrets.sealing import Sealer
from gatehouse.platform.access.anonymising import queue_anonymisation
from gatehouse.platform.access.users import service
from gatehouse.platform.access.users.errors import MailNotPossible, UserNotFound
from gatehouse.platform.access.users.schemas import (
    Kind,
    NewUser,
    PasswordResetIssued,
    RoleName,
    Sort,
    User,
    UserCreated,
    UserPage,
    UserUpdate,
)
from gatehouse.platform.access.users.table import UserRow, matching
from gatehouse.platform.request.callers import RESPONSES, AdminReader, AdminStepUp
from gatehouse.platform.request.injected import (
    Changing,
    InSplitTransactions,
    Session,
    loaded,
)
from gatehouse.platform.request.ports import Host, TheHost

router = APIRouter(prefix="/api/admin/users", tags=["Users"], responses=RESPONSES)

Delivery = Annotated[
    Literal["mail", "response"] | None,
    Query(
        description="`mail`: the platform mails a link to the user, and the response has no token. `response`: the"
        " response contains the token. By default `mail` if mail is configured (docs/mail.md), otherwise `response`."
    ),
]
LoadedUser = Annotated[UserRow, Depends(loaded(UserRow, "user_id", UserNotFound))]
Window = Annotated[PageWindow, Depends(page_window(default=50, maximum=200))]
Search = Annotated[str | None, search_parameter("Part of an address, username or name.")]

Anonymise = Annotated[
    bool,
    Query(
        description="Whether to anonymize the user in the audit chain too. The events stay, without the user's"
        " identity. This cannot be undone."
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
    kind: Annotated[Kind | None, Query(description="`service`: only service accounts.")] = None,
    sort: Annotated[Sort, sort_parameter()] = "-created_at",
    max_total: Annotated[int | None, max_total_parameter()] = None,
) -> object:
    """Returns the organization's users, by default newest first. `name` sorts by display name, else by address or user
    name. A user who has never signed in has the earliest `last_login_at`."""
    query = await matching(session, search=search, role=role, active=active, kind=kind, sort=sort)
    total = await session.scalar(count_query(query, max_total)) or 0
    return window.envelope("items", (await session.scalars(window.apply(query))).all(), total)


@router.post("", status_code=201, response_model=UserCreated)
async def create_user(
    caller: AdminStepUp, body: NewUser, host: TheHost, transactions: InSplitTransactions, delivery: Delivery = None
) -> object:
    """Creates a user. Without a password the user gets an invitation by mail, or the response contains the invitation's
    token. The user redeems it at `POST /api/auth/register` within seven days."""
    mail_with = _mail_sealer(host, delivery)
    password_hash = None if body.password is None else await host.passwords.hash(body.password, about=body.email)
    async with transactions.changing() as change:
        user, invitation = await service.create(change, caller, body, password_hash, mail_with=mail_with)
        user_fields = User.model_validate(user).model_dump()
    token, expires_at = invitation or (None, None)
    sent_to = body.email if invitation is not None and token is None else None
    return UserCreated(
        **user_fields, invitation_token=token, invitation_expires_at=expires_at, invitation_sent_to=sent_to
    )


@router.get("/{user_id}", response_model=User)
async def read_user(caller: AdminReader, user: LoadedUser) -> object:
    """Returns one user."""
    return user


@router.patch("/{user_id}", response_model=User)
async def update_user(
    caller: AdminStepUp, user: LoadedUser, body: UserUpdate, host: TheHost, change: Changing
) -> object:
    """Changes the fields that are sent. After deactivation the user's sessions end and the user's keys are refused at
    once. If mail is configured, a user with a password gets a mail to confirm a new address."""
    return await service.update(change, caller, user, body.sent(), mail_with=_mail_sealer(host))


@router.delete("/{user_id}", status_code=204)
async def delete_user(caller: AdminStepUp, user: LoadedUser, change: Changing, *, anonymise: Anonymise = False) -> None:
    """Deletes a user permanently, with sessions and keys. OAuth clients that the user created stay."""
    await service.delete(change, caller, user)
    if anonymise:
        await queue_anonymisation(change, user.id)


@router.post("/{user_id}/password-reset", status_code=201, response_model=PasswordResetIssued)
async def issue_password_reset(
    caller: AdminStepUp, user: LoadedUser, host: TheHost, change: Changing, delivery: Delivery = None
) -> object:
    """Issues a token with which the user sets a new password at `POST /api/auth/password/reset`, once, within 24 hours.
    The token is mailed to the user, or is in the response. Earlier tokens become void. The old password stays valid
    until the new one is set."""
    mail_with = _mail_sealer(host, delivery, has_mailbox=emails.visible_address(user.email) is not None)
    token, expires_at = await service.issue_reset(change, caller, user, mail_with=mail_with)
    return PasswordResetIssued(token=token, expires_at=expires_at, sent_to=None if mail_with is None else user.email)


def _mail_sealer(host: Host, delivery: str | None = None, *, has_mailbox: bool = True) -> Sealer | None:
    """Return the sealer if the token is mailed; None if the token is returned. Raises `MailNotPossible`."""
    if delivery != "response" and has_mailbox and host.settings.mail is not None:
        return host.sealer
    if delivery == "mail":
        raise MailNotPossible
    return None
