"""Whom an assertion signs in, and what it says of their groups."""

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
from gatehouse.platform.access.saml.assertion import Assertion
from gatehouse.platform.access.saml.errors import MissingEmail, NotAdmitted
from gatehouse.platform.access.saml.table import Provider
from gatehouse.platform.access.sessions.service import as_caller
from gatehouse.platform.access.users import service as users
from gatehouse.platform.access.users.errors import EmailTaken, UsernameTaken
from gatehouse.platform.access.users.schemas import NewUser, Username
from gatehouse.platform.access.users.table import UserRow
from gatehouse.platform.change import Change

_CLAIMS: Final = "http://schemas.xmlsoap.org/ws/2005/05/identity/claims"
#: Where a value is looked for that is not mapped, in this order.
_STANDARD: Final[dict[str, tuple[str, ...]]] = {
    "email": ("urn:oid:0.9.2342.19200300.100.1.3", f"{_CLAIMS}/emailaddress", "mail", "email", "emailAddress"),
    "username": ("urn:oid:0.9.2342.19200300.100.1.1", "uid", "username"),
    "groups": (
        "urn:oid:1.3.6.1.4.1.5923.1.5.1.1",
        "http://schemas.microsoft.com/ws/2008/06/identity/claims/groups",
        "http://schemas.xmlsoap.org/claims/Group",
        "groups",
        "memberOf",
    ),
}
_USERNAME: Final[TypeAdapter[str]] = TypeAdapter(Username)

_DOMAIN: Final = text(
    "SELECT jit_provisioning, default_group_id FROM allowed_domains WHERE domain = :domain AND verified_at IS NOT NULL"
)


class Person(msgspec.Struct, frozen=True, kw_only=True):
    """`groups` are the directory's ids; None where the provider does not speak of groups."""

    email: str
    username: str | None
    groups: frozenset[str] | None


def person(assertion: Assertion, mapping: dict[str, str] | None) -> Person:
    """Raises `MissingEmail`."""
    mapped = mapping or {}
    email = _values(assertion, mapped, "email")
    if email is None and "email" not in mapped:
        email = [assertion.name_id]
    names = _values(assertion, mapped, "username") or []
    in_groups = _values(assertion, mapped, "groups")
    if in_groups is None and "groups" in mapped:
        # Many providers leave the attribute out for whoever is in no group.
        in_groups = []
    return Person(
        email=_email(email or [""]),
        username=_username(names[0]) if names else None,
        groups=None if in_groups is None else frozenset(in_groups),
    )


async def admitted(change: Change, provider: Provider, who: Person, *, proven_by: TenantId | None) -> UserRow:
    """The organization's user of this address, locked and linked; made where there is none and the domain is open for
    that (`jit_provisioning`), or is nobody's. `proven_by` is the organization that has proven the domain.

    Nobody of another organization is ever looked at. Raises `NotAdmitted`, `AddressNotProven`.
    """
    user = await _of_address(change.session, who.email)
    if user is None:
        if proven_by not in {None, change.tenant_id}:
            raise NotAdmitted
        user = await _join(change, provider, who)
    if not user.is_active or user.kind != "user":
        raise NotAdmitted
    if user.operator and not provider.by_operator:
        # Or whoever administers the organization of operators could become one.
        raise NotAdmitted
    await linking.link_signed_in(change, user)
    return user


async def sync_groups(change: Change, user: UserRow, wanted: frozenset[str]) -> None:
    """Into and out of the groups that are linked to the directory. Others are nobody's affair but the
    administrators'."""
    session = change.session
    linked = select(GroupRow.id, GroupRow.external_group_id).where(GroupRow.external_group_id.is_not(None))
    should = {row.id for row in await session.execute(linked) if row.external_group_id in wanted}
    own = select(MemberRow.group_id).join(GroupRow, GroupRow.id == MemberRow.group_id)
    own = own.where(MemberRow.user_id == user.id, GroupRow.external_group_id.is_not(None))
    is_in = set((await session.scalars(own)).all())
    for group in await _locked(session, should ^ is_in):
        if group.id in should:
            await groups.add_member(change, group, user.id)
        else:
            await groups.remove_member(change, group, user.id)


async def _of_address(session: AsyncSession, email: str) -> UserRow | None:
    query = select(UserRow).where(func.lower(UserRow.email) == email).with_for_update()
    return (await session.scalars(query)).one_or_none()


async def _join(change: Change, provider: Provider, who: Person) -> UserRow:
    domain = (await change.session.execute(_DOMAIN, {"domain": emails.domain(who.email)})).first()
    if domain is not None and not domain.jit_provisioning:
        raise NotAdmitted
    try:
        user = await _added(change, who.email, who.username)
    except EmailTaken:
        # Their first sign-in, made a moment ago in another window; or the directory calls somebody else by it.
        there = await _of_address(change.session, who.email)
        if there is None:
            raise NotAdmitted from None
        return there
    change.caller = as_caller(user, None)
    change.record("user.registered", "user", user.id, email=user.email, idp_id=provider.id)
    if domain is not None and domain.default_group_id is not None:
        for group in await _locked(change.session, {domain.default_group_id}):
            await groups.add_member(change, group, user.id)
    return user


async def _added(change: Change, email: str, username: str | None) -> UserRow:
    """A name that somebody has is left out. Raises `EmailTaken`."""
    try:
        async with change.session.begin_nested():
            user = await users.add(change, NewUser(email=email, username=username), None)
            linking.made_by(change, user, "saml")
            return user
    except UsernameTaken:
        return await _added(change, email, None)


async def _locked(session: AsyncSession, ids: set[UUID]) -> list[GroupRow]:
    """In one order, so that two sign-ins at once wait for each other only one way."""
    if not ids:
        return []
    query = select(GroupRow).where(GroupRow.id.in_(ids)).order_by(GroupRow.id).with_for_update()
    return list((await session.scalars(query)).all())


def _values(assertion: Assertion, mapped: dict[str, str], wanted: str) -> list[str] | None:
    """None where no such attribute was sent."""
    for name in (mapped[wanted],) if wanted in mapped else _STANDARD[wanted]:
        if name in assertion.attributes:
            return assertion.attributes[name]
    return None


def _email(values: list[str]) -> str:
    try:
        email = emails.normal(values[0])
    except ValueError:
        raise MissingEmail from None
    if len(email) > emails.MAX_CHARS:
        raise MissingEmail
    return email


def _username(value: str) -> str | None:
    """Names differ in what they may hold; one that cannot be a user name here is left out."""
    try:
        return _USERNAME.validate_python(value)
    except ValidationError:
        return None
