"""Creates, changes and deletes users."""

from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation import emails
from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.errors import FieldFault, Unprocessable
from gatehouse.foundation.identity import Caller
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.secrets.sealing import Sealer
from gatehouse.foundation.storage.conflicts import unique
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
from gatehouse.platform.access.users.one_time import IssuedOneTimeToken
from gatehouse.platform.access.users.schemas import NewUser
from gatehouse.platform.access.users.table import UserRow
from gatehouse.platform.changes.change import DEFAULT_TENANT, Change

_ERRORS_BY_CONSTRAINT: Final = {
    "users_email": EmailTaken,
    "users_username": UsernameTaken,
    "users_user_name": EmailTaken,
}


async def create(
    change: Change,
    caller: Caller | None,
    new: NewUser,
    password_hash: str | None,
    *,
    mail_with: Sealer | None = None,
) -> tuple[UserRow, IssuedOneTimeToken | None]:
    """Create a user. Return the user, and an invitation for a person without a password. The invitation is mailed if
    `mail_with` is set. `caller` is None if the command line or the creation of a tenant calls this function.

    Raises `CannotGrant`, `EmailTaken`, `UsernameTaken`, `Unprocessable`.
    """
    if caller is not None:
        rights.require_may_grant(caller, new.role)
    if new.kind == "service" and password_hash is not None:
        raise Unprocessable(faults=[FieldFault("password", NoPassword.message)])
    user = await add(change, new, password_hash)
    invitation = None
    if new.kind == "user" and password_hash is None:
        invitation = await one_time.issue(change, user, one_time.INVITATION, mail_with=mail_with)
    change.record(
        "user.created", "user", user.id, email=user.email, role=user.role, kind=user.kind, invited=bool(invitation)
    )
    return user, invitation


async def add(change: Change, new: NewUser, password_hash: str | None) -> UserRow:
    """Add a user's row and publish it to every worker. The caller has checked the right to do so.

    Raises `EmailTaken`, `UsernameTaken`."""
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
        email_verified=await _is_domain_proven(change, new.email),
        external_id=None,
        created_at=now,
        updated_at=now,
        last_login_at=None,
    )
    change.session.add(user)
    await flush(change.session)
    # Urgent, so that every worker has the user when the response is sent.
    change.touch("user", user.id, urgent=True)
    return user


async def update(
    change: Change, caller: Caller | None, user: UserRow, sent: Mapping[str, Any], *, mail_with: Sealer | None = None
) -> UserRow:
    """Change a user. `sent` are the fields to change (`schemas.UserUpdate`). `caller` is None if no caller's rights
    apply. With `mail_with` a link to confirm a new address is mailed.

    Raises `CannotGrant`, `OperatorsOnly`, `LastAdmin`, `LastOperator`, `EmailTaken`, `UsernameTaken`.
    """
    changed = user.differing(sent)
    if caller is not None:
        rights.require_may_change(caller, user)
        rights.require_may_grant(caller, changed.get("role", user.role))
        if "operator" in changed and not caller.operator:
            raise OperatorsOnly
    if not changed:
        return user
    before = _admin_flags(user)
    if "email" in changed:
        user.email_verified = await _is_domain_proven(change, changed["email"])
        user.address_proven_at = None
        # The new address may be another person's, so an identity provider must link the account again.
        user.linked_at = None
    user.assign(changed)
    if user.role != "admin" and "operator" not in changed:
        user.operator = False
    if "operator" in changed and user.operator and not _may_be_operator(user):
        raise CannotBeOperator
    await flush(change.session)
    await _require_admin_left(change.session, before, user)
    change.record("user.updated", "user", user.id, **changed)
    if changed.get("is_active") is False:
        await end_sessions(change, user.id, "user_deactivated")
        await _disconnect(change, user)
    if {"is_active", "email"} & changed.keys():
        # A token that was sent to the old address must not open the account under the new one.
        await one_time.revoke_unused(change, user)
    await _mail_confirmation(change, user, changed, mail_with)
    change.touch("user", user.id, urgent=True)
    return user


async def _mail_confirmation(
    change: Change, user: UserRow, changed: Mapping[str, Any], mail_with: Sealer | None
) -> None:
    """Mail a link to confirm a new address, if the user has a password. For other users an identity provider or an
    invitation proves the address."""
    if mail_with is not None and "email" in changed and user.password_hash is not None and user.is_active:
        await one_time.issue(change, user, one_time.ADDRESS_CONFIRMATION, mail_with=mail_with)


async def delete(change: Change, caller: Caller, user: UserRow) -> None:
    """Delete a user. The database deletes sessions, keys and one-time tokens with it.

    Raises `OperatorsOnly`, `LastAdmin`, `LastOperator`."""
    rights.require_may_remove(caller, user)
    before = _admin_flags(user)
    keys = await table.key_ids(change.session, user.id)
    # Ends the sessions first, so that their tokens are revoked explicitly, and not only refused because the user is
    # missing.
    await end_sessions(change, user.id, "user_deleted")
    await _disconnect(change, user)
    await change.session.delete(user)
    await change.session.flush()
    await _require_admin_left(change.session, before, None)
    change.record("user.deleted", "user", user.id, email=user.email, role=user.role, kind=user.kind)
    change.touch("user", user.id, urgent=True)
    for key_id in keys:
        change.touch("api_key", key_id, urgent=True)


async def _disconnect(change: Change, user: UserRow) -> None:
    """Remove the user's tokens for MCP servers. The number of servers of an organization limits that of the events."""
    for server_id, name in await table.remove_mcp_connections(change.session, user.id):
        change.record("mcp_connection.deleted", "mcp_server", server_id, name=name, user_id=user.id)
        change.touch("mcp_connection", f"{server_id}/{user.id}", urgent=True)


async def issue_reset(
    change: Change, caller: Caller | None, user: UserRow, *, mail_with: Sealer | None = None
) -> IssuedOneTimeToken:
    """Issue a one-time token for a new password. The token is mailed if `mail_with` is set.

    Raises `CannotGrant`, `OperatorsOnly`, `NoPassword`."""
    if caller is not None:
        rights.require_may_change(caller, user)
    if user.kind == "service":
        raise NoPassword
    issued = await one_time.issue(change, user, one_time.PASSWORD_RESET, mail_with=mail_with)
    change.record("user.password_reset_issued", "user", user.id, expires_at=issued.expires_at)
    return issued


async def set_password(change: Change, user: UserRow, password_hash: str) -> None:
    """Set the password, revoke the user's one-time tokens, and end the wait for a confirmation of the address. The
    caller decides which sessions end."""
    user.password_hash = password_hash
    user.awaits_confirmation = False
    user.updated_at = utc_now()
    await one_time.revoke_unused(change, user)


def _admin_flags(user: UserRow) -> tuple[bool, bool]:
    """Return whether the user is an active administrator, and an active operator."""
    is_admin = user.kind == "user" and user.role == "admin" and user.is_active
    return is_admin, is_admin and user.operator


async def _require_admin_left(session: AsyncSession, before: tuple[bool, bool], user: UserRow | None) -> None:
    """Require that the change leaves an active administrator and an active operator. `before` are the user's flags
    before the change.

    Raises `LastAdmin`, `LastOperator`."""
    after = (False, False) if user is None else _admin_flags(user)
    if before[0] <= after[0] and before[1] <= after[1]:
        return
    await table.lock_tenant(session)
    if before[0] > after[0] and not await table.active_admins(session):
        raise LastAdmin
    if before[1] > after[1] and not await table.active_admins(session, operators=True):
        raise LastOperator


def _may_be_operator(user: UserRow) -> bool:
    return user.tenant_id == DEFAULT_TENANT and user.kind == "user" and user.role == "admin" and user.is_active


async def _is_domain_proven(change: Change, email: str) -> bool:
    return await table.has_proven_domain(change.session, emails.domain(email))


async def flush(session: AsyncSession) -> None:
    """Flush the session. Raises `EmailTaken` or `UsernameTaken` if a unique constraint is violated."""
    with unique(_ERRORS_BY_CONSTRAINT):
        await session.flush()
