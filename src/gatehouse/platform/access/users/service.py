"""The rules of users."""

from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation import emails
from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.errors import FieldFault, Unprocessable
from gatehouse.foundation.identity import Caller
from gatehouse.foundation.ids import new_id
from gatehouse.platform.access.revoking import end_sessions
from gatehouse.platform.access.users import one_time, rights, table
from gatehouse.platform.access.users.errors import (
    CannotBeOperator,
    EmailTaken,
    LastAdmin,
    LastOperator,
    NoPassword,
    OperatorsOnly,
    UsernameTaken,
)
from gatehouse.platform.access.users.one_time import Issued
from gatehouse.platform.access.users.schemas import NewUser
from gatehouse.platform.access.users.table import UserRow
from gatehouse.platform.change import DEFAULT_TENANT, Change

_TAKEN: Final = {"users_email": EmailTaken, "users_username": UsernameTaken, "users_user_name": EmailTaken}


async def create(
    change: Change, caller: Caller | None, new: NewUser, password_hash: str | None
) -> tuple[UserRow, Issued | None]:
    """The user, and an invitation where a person got no password. `caller` None: the command line.

    Raises `CannotGrant`, `EmailTaken`, `UsernameTaken`, `Unprocessable`.
    """
    if caller is not None:
        rights.may_grant(caller, new.role)
    if new.kind == "service" and password_hash is not None:
        raise Unprocessable(faults=[FieldFault("password", NoPassword.message)])
    user = await add(change, new, password_hash)
    invitation = None
    if new.kind == "user" and password_hash is None:
        invitation = await one_time.issue(change, user, one_time.INVITATION)
    change.record(
        "user.created", "user", user.id, email=user.email, role=user.role, kind=user.kind, invited=bool(invitation)
    )
    return user, invitation


async def add(change: Change, new: NewUser, password_hash: str | None) -> UserRow:
    """The row, told to every worker. Whoever calls has judged the right to it. Raises `EmailTaken`, `UsernameTaken`."""
    now = utc_now()
    user = UserRow(
        id=new_id(),
        tenant_id=change.tenant_id,
        kind=new.kind,
        email=new.email,
        username=new.username,
        display_name=new.display_name,
        role=new.role,
        operator=False,
        password_hash=password_hash,
        is_active=True,
        email_verified=await _proven(change, new.email),
        external_id=None,
        created_at=now,
        updated_at=now,
        last_login_at=None,
    )
    change.session.add(user)
    await flush(change.session)
    # Urgent, so that whoever signs in right after the answer is known to every worker.
    change.touch("user", user.id, urgent=True)
    return user


async def update(change: Change, caller: Caller | None, user: UserRow, sent: Mapping[str, Any]) -> UserRow:
    """`sent` are the fields to change (`schemas.UserUpdate`). `caller` None: the command line.

    Raises `CannotGrant`, `OperatorsOnly`, `LastAdmin`, `LastOperator`, `EmailTaken`, `UsernameTaken`.
    """
    changed = {name: value for name, value in sent.items() if getattr(user, name) != value}
    if caller is not None:
        rights.may_change(caller, user)
        rights.may_grant(caller, changed.get("role", user.role))
        if "operator" in changed and not caller.operator:
            raise OperatorsOnly
    if not changed:
        return user
    was = _standing(user)
    if "email" in changed:
        user.email_verified = await _proven(change, changed["email"])
        user.address_proven_at = None
        # The new address may be another person's: its identity provider has to link the account anew.
        user.linked_at = None
    for name, value in changed.items():
        setattr(user, name, value)
    if user.role != "admin" and "operator" not in changed:
        user.operator = False
    if "operator" in changed and user.operator and not _can_operate(user):
        raise CannotBeOperator
    user.updated_at = utc_now()
    await flush(change.session)
    await _someone_left(change.session, was, user)
    change.record("user.updated", "user", user.id, **changed)
    if changed.get("is_active") is False:
        await end_sessions(change, user.id, "user_deactivated")
    if {"is_active", "email"} & changed.keys():
        # What was sent to an old address must not open the account under the new one.
        await one_time.withdraw(change, user)
    change.touch("user", user.id, urgent=True)
    return user


async def delete(change: Change, caller: Caller, user: UserRow) -> None:
    """With the user go sessions, keys and one-time tokens (by the database). Raises `OperatorsOnly`, `LastAdmin`."""
    rights.may_remove(caller, user)
    was = _standing(user)
    keys = await table.key_ids(change.session, user.id)
    # First, so that their tokens are revoked by name too, not only for want of a user.
    await end_sessions(change, user.id, "user_deleted")
    await change.session.delete(user)
    await change.session.flush()
    await _someone_left(change.session, was, None)
    change.record("user.deleted", "user", user.id, email=user.email, role=user.role, kind=user.kind)
    change.touch("user", user.id, urgent=True)
    for key_id in keys:
        change.touch("api_key", key_id, urgent=True)


async def issue_reset(change: Change, caller: Caller | None, user: UserRow) -> Issued:
    """A one-time token with which the user sets a new password. Raises `CannotGrant`, `OperatorsOnly`, `NoPassword`."""
    if caller is not None:
        rights.may_change(caller, user)
    if user.kind == "service":
        raise NoPassword
    issued = await one_time.issue(change, user, one_time.PASSWORD_RESET)
    change.record("user.password_reset_issued", "user", user.id, expires_at=issued.expires_at)
    return issued


async def set_password(change: Change, user: UserRow, password_hash: str) -> None:
    """Voids the user's one-time tokens too. Which sessions end with the old password is the caller's word."""
    user.password_hash = password_hash
    user.updated_at = utc_now()
    await one_time.withdraw(change, user)


def _standing(user: UserRow) -> tuple[bool, bool]:
    """Whether the user counts as an administrator, and as an operator."""
    admin = user.kind == "user" and user.role == "admin" and user.is_active
    return admin, admin and user.operator


async def _someone_left(session: AsyncSession, was: tuple[bool, bool], user: UserRow | None) -> None:
    """After a change that takes an administrator or operator away. Raises `LastAdmin`, `LastOperator`."""
    now = (False, False) if user is None else _standing(user)
    if was[0] <= now[0] and was[1] <= now[1]:
        return
    await table.lock_tenant(session)
    if was[0] > now[0] and not await table.active_admins(session):
        raise LastAdmin
    if was[1] > now[1] and not await table.active_admins(session, operators=True):
        raise LastOperator


def _can_operate(user: UserRow) -> bool:
    return user.tenant_id == DEFAULT_TENANT and user.kind == "user" and user.role == "admin" and user.is_active


async def _proven(change: Change, email: str) -> bool:
    return await table.proven(change.session, emails.domain(email))


async def flush(session: AsyncSession) -> None:
    """Raises `EmailTaken` or `UsernameTaken` where the database says so: it alone sees two requests at once."""
    try:
        await session.flush()
    except IntegrityError as error:
        constraint = getattr(getattr(error.orig, "diag", None), "constraint_name", None)
        taken = _TAKEN.get(constraint or "")
        if taken is None:
            raise
        raise taken from None
