"""The rules of users as a directory sees them.

userName      `user_name`; of a user whom no directory has named, the address
emails        `directory`; one of them is the address that signs in (`_address`)
displayName, externalId, active   columns of the user's
the rest      `directory`
"""

import re
from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

import msgspec
from pydantic import ValidationError
from scim2_models import Context, PatchOp, SCIMException
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation import emails
from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.identity import Caller
from gatehouse.foundation.ids import new_id
from gatehouse.platform.access import linking
from gatehouse.platform.access.anonymising import defer_anonymisation
from gatehouse.platform.access.scim import table
from gatehouse.platform.access.scim.errors import AddressFixed, BadScim, InvalidValue, Taken
from gatehouse.platform.access.scim.filters import USERS, compiled
from gatehouse.platform.access.scim.reading import View, Window
from gatehouse.platform.access.scim.resources import POLICY, Person
from gatehouse.platform.access.scim.urns import ENTERPRISE, USER
from gatehouse.platform.access.users import service as users
from gatehouse.platform.access.users.errors import EmailTaken, OperatorsOnly, UsernameTaken
from gatehouse.platform.access.users.schemas import NewUser
from gatehouse.platform.access.users.table import UserRow
from gatehouse.platform.change import Change

MAX_BYTES: Final = 64 * 1024
MAX_OPERATIONS: Final = 50
#: entries of an attribute: each operation with a filter looks at all of them
_MAX_ENTRIES: Final = 20
_MAX_CHARS: Final = 255

#: What has a column, or is the service's own word.
_NOT_KEPT: Final = ("schemas", "id", "externalId", "userName", "displayName", "active", "groups", "meta")
#: What a directory may say without effect where it says all it knows.
_READ_ONLY: Final = frozenset({"schemas", "id", "meta", "groups"})
_sign_in_name = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}").fullmatch


async def page(session: AsyncSession, window: Window, view: View) -> tuple[Sequence[UserRow], int]:
    """As `table.page`. Raises `InvalidFilter`, `TooMany`."""
    query = select(UserRow).where(UserRow.kind == "user")
    if window.filter:
        query = query.where(compiled(window.filter, USERS))
    return await table.page(session, UserRow, query, window)


async def resources(session: AsyncSession, rows: Sequence[UserRow], view: View) -> list[dict[str, Any]]:
    """The users as resources: of each, what is asked for."""
    found: dict[UUID, list[tuple[UUID, str]]] = {}
    if view.part.shows("groups"):
        found = await table.groups_of(session, [user.id for user in rows])
    return [view.part(shown(user, found.get(user.id, []), view.base)) for user in rows]


def shown(user: UserRow, groups: Sequence[tuple[UUID, str]], base: str) -> dict[str, Any]:
    """The user as a resource, without what is empty but for `groups`. `base` is what `location` begins with.

    The address that an organization has set is one of work: there a directory changes it.
    """
    resource = {
        "schemas": [USER, *((ENTERPRISE,) if ENTERPRISE in user.directory else ())],
        "id": str(user.id),
        "externalId": user.external_id,
        "userName": user.user_name or user.email,
        "displayName": user.display_name,
        "emails": [{"value": user.email, "type": "work", "primary": True}],
        **user.directory,
        "active": user.is_active,
        "groups": [{"value": str(group), "$ref": f"{base}/Groups/{group}", "display": name} for group, name in groups],
        "meta": {
            "resourceType": "User",
            "created": user.created_at,
            "lastModified": user.updated_at,
            "location": location(user, base),
        },
    }
    return {name: value for name, value in resource.items() if name == "groups" or value not in (None, [])}


def location(user: UserRow, base: str) -> str:
    return f"{base}/Users/{user.id}"


async def create(change: Change, body: dict[str, Any]) -> UserRow:
    """Raises `Taken`, `BadScim`."""
    said = _read(body, active=True)
    name = _name(said)
    email = _address(said)
    new = NewUser.model_construct(
        kind="user",
        email=email or f"{new_id()}{emails.NOWHERE}",
        username=await _free_username(change.session, name),
        display_name=_text(said.display_name, "displayName"),
        role="user",
    )
    try:
        user = await users.add(change, new, None)
        linking.mark_created_by(change, user, "scim")
        user.user_name, user.external_id = name, _text(said.external_id, "externalId")
        user.directory = _kept(said)
        user.is_active = bool(said.active)
        await users.flush(change.session)
    except (EmailTaken, UsernameTaken) as error:
        raise _taken(error) from None
    change.record("user.created", "user", user.id, email=user.email, role=user.role, kind=user.kind, invited=False)
    return user


async def replace(change: Change, user: UserRow, body: dict[str, Any]) -> None:
    """What is not said is taken away, but for `active`, of which silence says nothing. Raises `Taken`, `BadScim`,
    `OperatorsOnly`, `LastAdmin`, `AddressFixed`, `AddressNotProven`."""
    await _write(change, user, _before(user), _read(body, active=user.is_active))


async def patch(change: Change, user: UserRow, operations: list[dict[str, Any]]) -> None:
    """All operations or none. Raises as `replace`."""
    before, said = _before(user), _before(user)
    with POLICY:
        for operation in operations:
            _apply(said, _lenient(operation))
    await _write(change, user, before, said)


async def delete(change: Change, caller: Caller, user: UserRow) -> None:
    """For good, with sessions and keys; the audit chain forgets them too. Raises `OperatorsOnly`, `LastAdmin`."""
    await users.delete(change, caller, user)
    await defer_anonymisation(change, user.id)


async def _write(change: Change, user: UserRow, before: Person, said: Person) -> None:
    if user.operator:
        raise OperatorsOnly
    await linking.link_provisioned(change, user)
    name = _name(said)
    sent: dict[str, Any] = {
        "user_name": name,
        "external_id": _text(said.external_id, "externalId"),
        "display_name": _text(said.display_name, "displayName"),
        "is_active": said.active,
    }
    if (email := _address(said)) != _address(before):
        if user.role != "user" or user.linked_at is None:
            raise AddressFixed
        sent["email"] = email or f"{user.id}{emails.NOWHERE}"
    was = before.user_name or ""
    # The name to sign in with follows the directory's, unless somebody gave the user another one.
    if name.lower() != was.lower() and (user.username or was).lower() == was.lower():
        sent["username"] = await _free_username(change.session, name)
    directory = _kept(said)
    changed = sorted(
        key for key in directory.keys() | user.directory.keys() if directory.get(key) != user.directory.get(key)
    )
    try:
        await users.update(change, None, user, sent)
    except (EmailTaken, UsernameTaken) as error:
        raise _taken(error) from None
    if "email" in sent and user.linked_at is None:
        await linking.link_moved(change, user)
    if changed:
        user.directory = directory
        user.updated_at = utc_now()
        change.record("user.updated", "user", user.id, attributes=changed)


def _read(body: dict[str, Any], *, active: bool) -> Person:
    """A whole resource, as it is made or replaced. Where `active` is left out, it is this."""
    if "active" not in (name.lower() for name in body):
        body = {**body, "active": active}
    try:
        said = Person.model_validate(
            _with_manager(body), scim_ctx=Context.RESOURCE_CREATION_REQUEST, scim_policy=POLICY
        )
    except ValidationError as error:
        raise BadScim.of(error) from None
    _bounded(said)
    return said


def _before(user: UserRow) -> Person:
    resource = shown(user, [], "")
    del resource["meta"]
    return Person.model_validate(resource, scim_policy=POLICY)


def _apply(said: Person, operation: dict[str, Any]) -> None:
    message = {"Operations": [operation]}
    try:
        PatchOp[Person].model_validate(message, scim_ctx=Context.RESOURCE_PATCH_REQUEST).patch(said)
    except (ValidationError, SCIMException) as error:
        raise BadScim.of(error) from None
    _bounded(said)


def _bounded(said: Person) -> None:
    for attribute, entries in (
        ("emails", said.emails), ("phoneNumbers", said.phone_numbers), ("addresses", said.addresses),
    ):  # fmt: skip
        if len(entries or ()) > _MAX_ENTRIES:
            raise InvalidValue(f"{attribute} may have {_MAX_ENTRIES} entries")


def _lenient(operation: dict[str, Any]) -> dict[str, Any]:
    """As directories send them: a manager in other forms, and beside what is meant what only the service says."""
    path, value = operation.get("path"), operation.get("value")
    if not path and isinstance(value, dict):
        value = {name: each for name, each in value.items() if name.lower() not in _READ_ONLY}
        return {**operation, "value": _with_manager(value)}
    if not isinstance(path, str) or path.lower() not in {"manager", _MANAGER.lower()} or "value" not in operation:
        return operation
    manager = _manager(value)
    if manager is None:
        return {"op": "remove", "path": _MANAGER}
    return {**operation, "path": _MANAGER, "value": manager}


_MANAGER: Final = f"{ENTERPRISE}:manager"


def _manager(value: Any) -> Any:
    """An object: Entra ID sends it as text too, or in a list (as its manual shows it). None where nobody is meant."""
    if isinstance(value, list) and len(value) < 2:
        value = value[0] if value else None
    if isinstance(value, str):
        value = {"value": value}
    return None if isinstance(value, dict) and not value.get("value") else value


def _with_manager(resource: dict[str, Any]) -> dict[str, Any]:
    """The resource with its manager as an object or null, whatever form it has."""
    mended = dict(resource)
    for name, value in resource.items():
        if name.lower() == _MANAGER.lower():
            mended[name] = _manager(value)
        elif name.lower() == ENTERPRISE.lower() and isinstance(value, dict):
            mended[name] = {
                below: _manager(each) if below.lower() == "manager" else each for below, each in value.items()
            }
    return mended


def _kept(said: Person) -> dict[str, Any]:
    """What goes into `directory`. `emails` is always there: a user whom a directory gives none has none."""
    dumped = said.model_dump()
    kept = {name: value for name, value in dumped.items() if name not in _NOT_KEPT}
    kept.setdefault("emails", [])
    if len(msgspec.json.encode(kept)) > MAX_BYTES:
        raise InvalidValue("The resource is too large.")
    return kept


def _name(said: Person) -> str:
    name = _text(said.user_name, "userName")
    if name is None:
        raise InvalidValue("userName is required")
    return name


def _text(value: str | None, attribute: str) -> str | None:
    if value is not None and (len(value) > _MAX_CHARS or not value.isprintable()):
        raise InvalidValue(f"{attribute} may have {_MAX_CHARS} characters, all of them printable")
    return value or None


def _address(said: Person) -> str | None:
    """The address to sign in with: the primary one, else that of work, else the first, else the name if it is one."""
    entries = [entry for entry in said.emails or () if entry.value]
    entries.sort(key=lambda entry: (not entry.primary, (entry.type or "").lower() != "work"))
    chosen = entries[0].value if entries else said.user_name
    if chosen is None or (not entries and "@" not in chosen) or chosen.endswith(emails.NOWHERE):
        return None
    try:
        return emails.normal(chosen)
    except ValueError:
        if not entries:
            return None
        raise InvalidValue("emails: the address to sign in with is not one") from None


async def _free_username(session: AsyncSession, name: str) -> str | None:
    """The name, if one can sign in by it and nobody else does."""
    if not _sign_in_name(name) or await table.username_taken(session, name):
        return None
    return name


def _taken(error: EmailTaken | UsernameTaken) -> Taken:
    what = "userName" if isinstance(error, UsernameTaken) else "userName or address"
    return Taken(f"A user of this organization has this {what}.")
