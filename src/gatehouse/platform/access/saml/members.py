"""Finds or creates the user that an assertion names, and synchronizes the user's groups."""

from typing import Final
from uuid import UUID

import msgspec
from pydantic import TypeAdapter, ValidationError
from sqlalchemy import func, select, text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation import emails
from gatehouse.foundation.identity import TenantId
from gatehouse.platform.access import linking
from gatehouse.platform.access.groups import service as groups
from gatehouse.platform.access.groups.table import GroupRow, MemberRow
from gatehouse.platform.access.saml.errors import MissingEmail, NotAdmitted
from gatehouse.platform.access.saml.protocol.assertion import SamlAssertion
from gatehouse.platform.access.saml.table import SamlProvider
from gatehouse.platform.access.sessions.service import as_caller
from gatehouse.platform.access.users import service as users
from gatehouse.platform.access.users.errors import EmailTaken, UsernameTaken
from gatehouse.platform.access.users.schemas import NewUser, Username
from gatehouse.platform.access.users.table import UserRow
from gatehouse.platform.changes.change import Change

_CLAIMS_NAMESPACE: Final = "http://schemas.xmlsoap.org/ws/2005/05/identity/claims"
#: Attributes of a field without a mapping. The first that the assertion contains is read.
_DEFAULT_ATTRIBUTES: Final[dict[str, tuple[str, ...]]] = {
    "email": (
        "urn:oid:0.9.2342.19200300.100.1.3",
        f"{_CLAIMS_NAMESPACE}/emailaddress",
        "mail",
        "email",
        "emailAddress",
    ),
    "username": ("urn:oid:0.9.2342.19200300.100.1.1", "uid", "username"),
    "groups": (
        "urn:oid:1.3.6.1.4.1.5923.1.5.1.1",
        "http://schemas.microsoft.com/ws/2008/06/identity/claims/groups",
        "http://schemas.xmlsoap.org/claims/Group",
        "groups",
        "memberOf",
    ),
}
_USERNAME_ADAPTER: Final[TypeAdapter[str]] = TypeAdapter(Username)

_VERIFIED_DOMAIN: Final = text(
    "SELECT jit_provisioning, default_group_id FROM allowed_domains WHERE domain = :domain AND verified_at IS NOT NULL"
)


class AssertedUser(msgspec.Struct, frozen=True, kw_only=True):
    """The user that the assertion describes. `groups` are the directory's ids of the user's groups; None if the
    provider did not send them."""

    email: str
    username: str | None
    groups: frozenset[str] | None


def asserted_user(assertion: SamlAssertion, mapping: dict[str, str] | None) -> AssertedUser:
    """Return the user that the assertion describes. Raises `MissingEmail`."""
    mapped = mapping or {}
    email = _values(assertion, mapped, "email")
    if email is None and "email" not in mapped:
        email = [assertion.name_id]
    names = _values(assertion, mapped, "username") or []
    group_ids = _values(assertion, mapped, "groups")
    if group_ids is None and "groups" in mapped:
        # Many providers leave the attribute out for a user without groups.
        group_ids = []
    return AssertedUser(
        email=_email(email or [""]),
        username=_username(names[0]) if names else None,
        groups=None if group_ids is None else frozenset(group_ids),
    )


async def find_or_create_user(
    change: Change, provider: SamlProvider, asserted: AssertedUser, *, proven_by: TenantId | None
) -> UserRow:
    """Return the organization's user with this address, locked and linked. If there is none, create the user, unless
    the domain is verified and does not allow it (`jit_provisioning`). `proven_by` is the organization that has verified
    the domain.

    Users of other organizations are never read. Raises `NotAdmitted`, `AddressNotProven`.
    """
    user = await _user_by_email(change.session, asserted.email)
    if user is None:
        if proven_by not in {None, change.tenant_id}:
            raise NotAdmitted
        user = await _create_user(change, provider, asserted)
    if not user.is_active or user.kind != "user":
        raise NotAdmitted
    if user.operator and not provider.by_operator:
        # Without this check every administrator of the operators' organization could become an operator.
        raise NotAdmitted
    await linking.link_signed_in(change, user)
    return user


async def sync_groups(change: Change, user: UserRow, external_group_ids: frozenset[str]) -> None:
    """Add the user to the groups that have these external ids, and remove the user from all other groups that are
    linked to the directory. Groups without an external id do not change, because administrators manage them."""
    session = change.session
    linked = select(GroupRow.id, GroupRow.external_group_id).where(GroupRow.external_group_id.is_not(None))
    target_ids = {row.id for row in await session.execute(linked) if row.external_group_id in external_group_ids}
    membership = select(MemberRow.group_id).join(GroupRow, GroupRow.id == MemberRow.group_id)
    membership = membership.where(MemberRow.user_id == user.id, GroupRow.external_group_id.is_not(None))
    current_ids = set((await session.scalars(membership)).all())
    for group in await _lock_groups(session, target_ids ^ current_ids):
        if group.id in target_ids:
            await groups.add_member(change, group, user.id)
        else:
            await groups.remove_member(change, group, user.id)


async def _user_by_email(session: AsyncSession, email: str) -> UserRow | None:
    query = select(UserRow).where(func.lower(UserRow.email) == email).with_for_update()
    return (await session.scalars(query)).one_or_none()


async def _create_user(change: Change, provider: SamlProvider, asserted: AssertedUser) -> UserRow:
    domain = (await change.session.execute(_VERIFIED_DOMAIN, {"domain": emails.domain(asserted.email)})).first()
    if domain is not None and not domain.jit_provisioning:
        raise NotAdmitted
    try:
        user = await _add_user(change, asserted.email, asserted.username)
    except EmailTaken:
        # A concurrent first sign-in has added the user, or a directory has given this address to another user as the
        # user name.
        existing = await _user_by_email(change.session, asserted.email)
        if existing is None:
            raise NotAdmitted from None
        return existing
    change.caller = as_caller(user, None)
    change.record("user.registered", "user", user.id, email=user.email, idp_id=provider.id)
    if domain is not None and domain.default_group_id is not None:
        for group in await _lock_groups(change.session, {domain.default_group_id}):
            await groups.add_member(change, group, user.id)
    return user


async def _add_user(change: Change, email: str, username: str | None) -> UserRow:
    """Add the user. If the user name is taken, add the user without it. Raises `EmailTaken`."""
    try:
        async with change.session.begin_nested():
            user = await users.add(change, NewUser(email=email, username=username), None)
            linking.mark_created_by(change, user, "saml")
            return user
    except UsernameTaken:
        return await _add_user(change, email, None)


async def _lock_groups(session: AsyncSession, ids: set[UUID]) -> list[GroupRow]:
    """Lock the groups, always in the same order, so that concurrent sign-ins do not deadlock."""
    if not ids:
        return []
    query = select(GroupRow).where(GroupRow.id.in_(ids)).order_by(GroupRow.id).with_for_update()
    return list((await session.scalars(query)).all())


def _values(assertion: SamlAssertion, mapped: dict[str, str], field: str) -> list[str] | None:
    """Return the values of the field's attribute; None if the provider did not send it."""
    for name in (mapped[field],) if field in mapped else _DEFAULT_ATTRIBUTES[field]:
        if name in assertion.attributes:
            return assertion.attributes[name]
    return None


def _email(values: list[str]) -> str:
    try:
        email = emails.normalize(values[0])
    except ValueError:
        raise MissingEmail from None
    if len(email) > emails.MAX_ADDRESS_CHARACTERS:
        raise MissingEmail
    return email


def _username(value: str) -> str | None:
    """Return the name; None if it is not a valid user name of this platform."""
    try:
        return _USERNAME_ADAPTER.validate_python(value)
    except ValidationError:
        return None
