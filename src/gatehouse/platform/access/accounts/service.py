"""The rules of registering and of passwords."""

from contextlib import suppress

from fastapi import Request

from gatehouse.foundation import emails
from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.identity import Caller, TenantId
from gatehouse.platform.access.accounts import lookups
from gatehouse.platform.access.accounts.errors import RegistrationClosed, WrongPassword
from gatehouse.platform.access.accounts.schemas import PasswordChange, PasswordReset, Registration
from gatehouse.platform.access.accounts.table import default_group
from gatehouse.platform.access.groups import service as groups
from gatehouse.platform.access.revoking import end_sessions
from gatehouse.platform.access.sessions.service import as_caller
from gatehouse.platform.access.users import one_time
from gatehouse.platform.access.users import service as users
from gatehouse.platform.access.users.errors import BadOneTimeToken, EmailTaken, UsernameTaken
from gatehouse.platform.access.users.schemas import NewUser
from gatehouse.platform.access.users.table import UserRow
from gatehouse.platform.change import Change
from gatehouse.platform.ports import Host
from gatehouse.platform.requests import changing


async def register(request: Request, host: Host, given: Registration) -> UserRow | None:
    """The invited user; None for a registration without an invitation, which is finished after the answer: neither the
    answer nor its time tells whether the address had an account.

    Raises `RegistrationClosed`; with an invitation `UsernameTaken`.
    """
    token = given.invitation_token
    async with host.database.service() as lookup:
        if token is not None:
            tenant_id = await lookups.one_time_token(lookup, token)
        else:
            tenant_id = await lookups.open_domain(lookup, emails.domain(given.email))
    if tenant_id is None:
        raise RegistrationClosed
    hashed = await host.passwords.hash(given.password, about=given.email)
    if token is None:
        await host.later.run(_registered(request, host, tenant_id, given, hashed))
        return None
    async with changing(request, host, tenant_id) as change:
        user = await _accept(change, given, token, hashed)
        change.caller = as_caller(user, None)
        change.record("user.registered", "user", user.id, email=user.email, invited=True)
        return user


async def _registered(request: Request, host: Host, tenant_id: TenantId, given: Registration, hashed: str) -> None:
    """Makes the account, unless the address has one. A user name that somebody has is left out."""
    with suppress(EmailTaken):
        for username in dict.fromkeys((given.username, None)):
            with suppress(UsernameTaken):
                async with changing(request, host, tenant_id) as change:
                    user = await _join(change, given, username, hashed)
                    change.caller = as_caller(user, None)
                    change.record("user.registered", "user", user.id, email=user.email, invited=False)
                return


async def _accept(change: Change, given: Registration, token: str, hashed: str) -> UserRow:
    """The user that an administrator made, with the role that it was given there."""
    try:
        user, issued_by_person = await one_time.redeem(change, token, one_time.INVITATION)
    except BadOneTimeToken:
        raise RegistrationClosed from None
    if user.email.lower() != given.email:
        raise RegistrationClosed
    change.caller = as_caller(user, None)
    named = {"display_name": given.display_name, "username": given.username}
    await users.update(change, None, user, {name: value for name, value in named.items() if value is not None})
    await users.set_password(change, user, hashed)
    if issued_by_person:
        user.address_proven_at = utc_now()
    return user


async def _join(change: Change, given: Registration, username: str | None, hashed: str) -> UserRow:
    """A user of the least role, in the domain's group. Nobody has shown that the address is theirs: see
    `access.linking`."""
    new = NewUser(email=given.email, display_name=given.display_name, username=username)
    user = await users.add(change, new, hashed)
    user.self_registered = True
    group = await default_group(change.session, emails.domain(user.email))
    if group is not None:
        await groups.add_member(change, group, user.id)
    return user


async def change_password(request: Request, host: Host, caller: Caller, given: PasswordChange) -> None:
    """Raises `WrongPassword`."""
    assert caller.tenant_id is not None
    async with host.database.tenant(caller.tenant_id) as session:
        user = await session.get(UserRow, caller.user_id)
        judged = user.password_hash if user is not None else None
    if not await host.passwords.verify(judged, given.current_password):
        async with changing(request, host, caller.tenant_id, caller) as change:
            reason = "wrong_password"
            change.record("user.password_changed", "user", caller.user_id, outcome="failure", reason=reason)
        raise WrongPassword
    hashed = await host.passwords.hash(given.new_password, about=caller.email, field="new_password")
    async with changing(request, host, caller.tenant_id, caller) as change:
        user = await change.session.get(UserRow, caller.user_id, with_for_update=True)
        if user is None or user.password_hash != judged:
            # Someone else's change came first.
            raise WrongPassword
        await users.set_password(change, user, hashed)
        await end_sessions(change, user.id, "password_changed", but=caller.session_id)
        change.record("user.password_changed", "user", user.id)


async def reset_password(request: Request, host: Host, given: PasswordReset) -> None:
    """Raises `BadOneTimeToken`."""
    async with host.database.service() as lookup:
        tenant_id = await lookups.one_time_token(lookup, given.token)
    if tenant_id is None:
        raise BadOneTimeToken
    hashed = await host.passwords.hash(given.password)
    async with changing(request, host, tenant_id) as change:
        user, _ = await one_time.redeem(change, given.token, one_time.PASSWORD_RESET)
        await users.set_password(change, user, hashed)
        await end_sessions(change, user.id, "password_reset")
        change.caller = as_caller(user, None)
        change.record("user.password_reset", "user", user.id)
