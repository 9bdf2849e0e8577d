"""Registers users, and changes and resets passwords."""

from contextlib import suppress
from datetime import timedelta
from typing import Final

from fastapi import Request

from gatehouse.foundation import emails
from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.errors import Conflict, Forbidden
from gatehouse.foundation.identity import Caller, TenantId
from gatehouse.platform.access.accounts import table
from gatehouse.platform.access.accounts.schemas import (
    AddressConfirmation,
    PasswordChange,
    PasswordReset,
    Registration,
)
from gatehouse.platform.access.groups import service as groups
from gatehouse.platform.access.revoking import end_sessions
from gatehouse.platform.access.sessions.service import as_caller
from gatehouse.platform.access.sessions.table import login_candidates
from gatehouse.platform.access.users import one_time
from gatehouse.platform.access.users import service as users
from gatehouse.platform.access.users.errors import BadOneTimeToken, EmailTaken, UsernameTaken
from gatehouse.platform.access.users.schemas import NewUser
from gatehouse.platform.access.users.table import UserRow
from gatehouse.platform.changes.change import Change
from gatehouse.platform.request.injected import changing
from gatehouse.platform.request.ports import Host

#: Lifetime of a reset link that was requested by mail. It is short because anybody can request one for any address.
_REQUESTED_RESET_LIFETIME: Final = timedelta(hours=1)


class RegistrationClosed(Forbidden):
    code = "registration_closed"
    message = "Registration needs an invitation, or an address of a domain with self-registration."
    error_format = "error_message"


class MailNotConfigured(Conflict):
    code = "mail_not_configured"
    message = "The platform sends no mail. Ask an administrator of your organization for a link to set a new password."
    error_format = "error_message"


class WrongPassword(Forbidden):
    code = "wrong_password"
    message = "current_password: this is not your password."


async def register(request: Request, host: Host, body: Registration) -> UserRow | None:
    """Register a user. Return the invited user. Without an invitation return None, and finish the registration in the
    background, so that neither the response nor its time reveals whether the address had an account.

    Raises `RegistrationClosed`, and with an invitation `UsernameTaken`.
    """
    token = body.invitation_token
    async with host.database.service() as lookup:
        if token is not None:
            tenant_id = await table.tenant_of_one_time_token(lookup, token)
        else:
            tenant_id = await table.tenant_of_open_domain(lookup, emails.domain(body.email))
    if tenant_id is None:
        raise RegistrationClosed
    password_hash = await host.passwords.hash(body.password, about=body.email)
    if token is None:
        await host.later.run(_register_in_background(request, host, tenant_id, body, password_hash))
        return None
    async with changing(request, host, tenant_id) as change:
        user = await _accept_invitation(change, body, token, password_hash)
        change.caller = as_caller(user, None)
        change.record("user.registered", "user", user.id, email=user.email, invited=True)
        return user


async def _register_in_background(
    request: Request, host: Host, tenant_id: TenantId, body: Registration, password_hash: str
) -> None:
    """Create the account, unless the address has one. If the user name is taken, create the account without it."""
    with suppress(EmailTaken):
        for username in dict.fromkeys((body.username, None)):
            with suppress(UsernameTaken):
                async with changing(request, host, tenant_id) as change:
                    user = await _add_user(change, body, username, password_hash)
                    change.caller = as_caller(user, None)
                    if host.settings.mail is not None:
                        user.awaits_confirmation = True
                        await one_time.issue(change, user, one_time.ADDRESS_CONFIRMATION, mail_with=host.sealer)
                    change.record("user.registered", "user", user.id, email=user.email, invited=False)
                return


async def _accept_invitation(change: Change, body: Registration, token: str, password_hash: str) -> UserRow:
    """Complete and return the user that an administrator created. The role stays as it is.

    Raises `RegistrationClosed`, `UsernameTaken`."""
    try:
        user, proves_address, _ = await one_time.redeem(change, token, one_time.INVITATION)
    except BadOneTimeToken:
        raise RegistrationClosed from None
    if user.email.lower() != body.email:
        raise RegistrationClosed
    change.caller = as_caller(user, None)
    profile = {"display_name": body.display_name, "username": body.username}
    await users.update(change, None, user, {name: value for name, value in profile.items() if value is not None})
    await users.set_password(change, user, password_hash)
    if proves_address:
        user.address_proven_at = utc_now()
    return user


async def _add_user(change: Change, body: Registration, username: str | None, password_hash: str) -> UserRow:
    """Add a user with the role `user`, and to the domain's default group. The address is not proven: see
    `access.linking`."""
    new = NewUser(email=body.email, display_name=body.display_name, username=username)
    user = await users.add(change, new, password_hash)
    user.self_registered = True
    group = await table.default_group(change.session, emails.domain(user.email))
    if group is not None:
        await groups.add_member(change, group, user.id)
    return user


async def change_password(request: Request, host: Host, caller: Caller, body: PasswordChange) -> None:
    """Change the caller's password. Raises `WrongPassword`."""
    assert caller.tenant_id is not None
    async with host.database.tenant(caller.tenant_id) as session:
        user = await session.get(UserRow, caller.user_id)
        verified_hash = user.password_hash if user is not None else None
    if not await host.passwords.verify(verified_hash, body.current_password):
        async with changing(request, host, caller.tenant_id, caller) as change:
            reason = "wrong_password"
            change.record("user.password_changed", "user", caller.user_id, outcome="failure", reason=reason)
        raise WrongPassword
    password_hash = await host.passwords.hash(body.new_password, about=caller.email, field="new_password")
    async with changing(request, host, caller.tenant_id, caller) as change:
        user = await change.session.get(UserRow, caller.user_id, with_for_update=True)
        if user is None or user.password_hash != verified_hash:
            # A concurrent request has changed the password since it was verified.
            raise WrongPassword
        await users.set_password(change, user, password_hash)
        await end_sessions(change, user.id, "password_changed", but=caller.session_id)
        change.record("user.password_changed", "user", user.id)


async def reset_password(request: Request, host: Host, body: PasswordReset) -> None:
    """Set a new password with a one-time token. Raises `BadOneTimeToken`."""
    async with host.database.service() as lookup:
        tenant_id = await table.tenant_of_one_time_token(lookup, body.token)
    if tenant_id is None:
        raise BadOneTimeToken
    password_hash = await host.passwords.hash(body.password)
    async with changing(request, host, tenant_id) as change:
        user, _, by_mail = await one_time.redeem(change, body.token, one_time.PASSWORD_RESET)
        # Nobody can have used an account that awaits its confirmation. In any other account an earlier user may have
        # left an API key, so the mail must not prove the address (`access.linking`).
        if by_mail and user.awaits_confirmation:
            user.address_proven_at = utc_now()
        await users.set_password(change, user, password_hash)
        await end_sessions(change, user.id, "password_reset")
        change.caller = as_caller(user, None)
        change.record("user.password_reset", "user", user.id)


async def request_password_reset(request: Request, host: Host, email: str) -> None:
    """Mail links to set a new password to the accounts of an address. The mails are queued in the background, so that
    neither the response nor its time reveals whether an account exists. Raises `MailNotConfigured`."""
    if host.settings.mail is None:
        raise MailNotConfigured
    await host.later.run(_mail_resets(request, host, email))


async def _mail_resets(request: Request, host: Host, email: str) -> None:
    async with host.database.service() as lookup:
        candidates = await login_candidates(lookup, email, tenant=None)
    for account in candidates.accounts:
        async with changing(request, host, account.tenant_id) as change:
            user = await change.session.get(UserRow, account.id, with_for_update=True)
            if user is None or not user.is_active or user.password_hash is None:
                continue
            expires_at = await one_time.mail_on_request(
                change, user, one_time.PASSWORD_RESET, host.sealer, lifetime=_REQUESTED_RESET_LIFETIME
            )
            if expires_at is not None:
                change.record("user.password_reset_issued", "user", user.id, expires_at=expires_at, requested=True)


async def confirm_address(request: Request, host: Host, body: AddressConfirmation) -> UserRow:
    """Confirm an address with a mailed token and the account's password. Raises `BadOneTimeToken`, `WrongPassword`."""
    async with host.database.service() as lookup:
        tenant_id = await table.tenant_of_one_time_token(lookup, body.token)
    if tenant_id is None:
        raise BadOneTimeToken
    async with changing(request, host, tenant_id) as change:
        _, user = await one_time.find(change, body.token, one_time.ADDRESS_CONFIRMATION)
        verified_hash = user.password_hash
    if not await host.passwords.verify(verified_hash, body.password):
        async with changing(request, host, tenant_id) as change:
            reason = "wrong_password"
            change.record("user.address_confirmed", "user", user.id, outcome="failure", reason=reason)
        raise WrongPassword("password: this is not the account's password.")
    async with changing(request, host, tenant_id) as change:
        user = (await one_time.redeem(change, body.token, one_time.ADDRESS_CONFIRMATION)).user
        if user.password_hash != verified_hash:
            raise WrongPassword("password: this is not the account's password.")
        user.awaits_confirmation = False
        user.address_proven_at = utc_now()
        change.caller = as_caller(user, None)
        change.record("user.address_confirmed", "user", user.id)
        return user
