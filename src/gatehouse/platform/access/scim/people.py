"""SCIM operations on users.

userName                          `user_name`, or the address if no directory has set a name
emails                            `directory`; one of them is the sign-in address (`_sign_in_address`)
displayName, externalId, active   columns of the user
all others                        `directory`
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
from gatehouse.platform.access.anonymising import queue_anonymisation
from gatehouse.platform.access.scim import table
from gatehouse.platform.access.scim.errors import AddressFixed, BadScim, InvalidValue, UniquenessConflict
from gatehouse.platform.access.scim.protocol.filters import USERS, compile_filter
from gatehouse.platform.access.scim.protocol.messages import ListWindow, ResourceView
from gatehouse.platform.access.scim.protocol.resources import POLICY, Person
from gatehouse.platform.access.scim.protocol.urns import ENTERPRISE, USER
from gatehouse.platform.access.users import service as users
from gatehouse.platform.access.users.errors import EmailTaken, OperatorsOnly, UsernameTaken
from gatehouse.platform.access.users.schemas import NewUser
from gatehouse.platform.access.users.table import UserRow
from gatehouse.platform.changes.change import Change

MAX_BYTES: Final = 64 * 1024
MAX_OPERATIONS: Final = 50
#: Maximum number of entries of a multi-valued attribute. An operation with a filter reads all entries.
_MAX_ENTRIES: Final = 20
_MAX_TEXT_CHARACTERS: Final = 255

#: Attributes that have their own column, or that this service sets.
_ATTRIBUTES_OUTSIDE_DIRECTORY: Final = (
    "schemas",
    "id",
    "externalId",
    "userName",
    "displayName",
    "active",
    "groups",
    "meta",
)
#: Attributes that are ignored in a PATCH without a path, because some directories send whole resources there.
_READ_ONLY_ATTRIBUTES: Final = frozenset({"schemas", "id", "meta", "groups"})
_match_username = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}").fullmatch


async def page(session: AsyncSession, window: ListWindow, view: ResourceView) -> tuple[Sequence[UserRow], int]:
    """Return one page of users and their total number. Raises `InvalidFilter`, `FilterTooSlow`."""
    query = select(UserRow).where(UserRow.kind == "user")
    if window.filter:
        query = query.where(compile_filter(window.filter, USERS))
    return await table.page(session, UserRow, query, window)


async def resources(session: AsyncSession, rows: Sequence[UserRow], view: ResourceView) -> list[dict[str, Any]]:
    """Return the users as resources, with the attributes that the request selects."""
    groups_by_user: dict[UUID, list[tuple[UUID, str]]] = {}
    if view.projection.includes("groups"):
        groups_by_user = await table.groups_of(session, [user.id for user in rows])
    return [view.projection(to_resource(user, groups_by_user.get(user.id, []), view.base)) for user in rows]


def to_resource(user: UserRow, groups: Sequence[tuple[UUID, str]], base: str) -> dict[str, Any]:
    """Return the user as a resource, without empty attributes except `groups`. `base` is the prefix of `location`.

    A sign-in address that the organization has set is shown with the type `work`, so that a directory that sends a
    `work` address replaces it.
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
    """Create a user. Raises `UniquenessConflict`, `BadScim`."""
    person = _parse_person(body, active=True)
    name = _user_name(person)
    email = _sign_in_address(person)
    new = NewUser.model_construct(
        kind="user",
        email=email or f"{new_id()}{emails.PLACEHOLDER_SUFFIX}",
        username=await _free_username(change.session, name),
        display_name=_checked_text(person.display_name, "displayName"),
        role="user",
    )
    try:
        user = await users.add(change, new, None)
        linking.mark_created_by(change, user, "scim")
        user.user_name, user.external_id = name, _checked_text(person.external_id, "externalId")
        user.directory = _directory_attributes(person)
        user.is_active = bool(person.active)
        await users.flush(change.session)
    except (EmailTaken, UsernameTaken) as error:
        raise _uniqueness_conflict(error) from None
    change.record("user.created", "user", user.id, email=user.email, role=user.role, kind=user.kind, invited=False)
    return user


async def replace(change: Change, user: UserRow, body: dict[str, Any]) -> None:
    """Replace the user's attributes. Missing attributes are removed. A missing `active` keeps its value.

    Raises `UniquenessConflict`, `BadScim`, `OperatorsOnly`, `LastAdmin`, `AddressFixed`, `AddressNotProven`."""
    await _write(change, user, _current_person(user), _parse_person(body, active=user.is_active))


async def patch(change: Change, user: UserRow, operations: list[dict[str, Any]]) -> None:
    """Apply all operations or none. Raises the same errors as `replace`."""
    before, person = _current_person(user), _current_person(user)
    with POLICY:
        for operation in operations:
            _apply_operation(person, _normalize_operation(operation))
    await _write(change, user, before, person)


async def delete(change: Change, caller: Caller, user: UserRow) -> None:
    """Delete the user with sessions and keys, and anonymize the user in the audit chain. Raises `OperatorsOnly`,
    `LastAdmin`."""
    await users.delete(change, caller, user)
    await queue_anonymisation(change, user.id)


async def _write(change: Change, user: UserRow, before: Person, person: Person) -> None:
    if user.operator:
        raise OperatorsOnly
    await linking.link_provisioned(change, user)
    name = _user_name(person)
    sent: dict[str, Any] = {
        "user_name": name,
        "external_id": _checked_text(person.external_id, "externalId"),
        "display_name": _checked_text(person.display_name, "displayName"),
        "is_active": person.active,
    }
    if (email := _sign_in_address(person)) != _sign_in_address(before):
        if user.role != "user" or user.linked_at is None:
            raise AddressFixed
        sent["email"] = email or f"{user.id}{emails.PLACEHOLDER_SUFFIX}"
    former_name = before.user_name or ""
    # The column `username` follows the directory's `userName`, unless an administrator has set another one.
    if name.lower() != former_name.lower() and (user.username or former_name).lower() == former_name.lower():
        sent["username"] = await _free_username(change.session, name)
    directory = _directory_attributes(person)
    changed = sorted(
        key for key in directory.keys() | user.directory.keys() if directory.get(key) != user.directory.get(key)
    )
    try:
        await users.update(change, None, user, sent)
    except (EmailTaken, UsernameTaken) as error:
        raise _uniqueness_conflict(error) from None
    if "email" in sent and user.linked_at is None:
        await linking.link_moved(change, user)
    if changed:
        user.directory = directory
        user.updated_at = utc_now()
        change.record("user.updated", "user", user.id, attributes=changed)


def _parse_person(body: dict[str, Any], *, active: bool) -> Person:
    """Parse a whole resource, for a create or a replace. The parameter `active` is the value if the body contains
    none."""
    if "active" not in (name.lower() for name in body):
        body = {**body, "active": active}
    try:
        person = Person.model_validate(
            _normalize_managers(body), scim_ctx=Context.RESOURCE_CREATION_REQUEST, scim_policy=POLICY
        )
    except ValidationError as error:
        raise BadScim.from_library(error) from None
    _check_entry_counts(person)
    return person


def _current_person(user: UserRow) -> Person:
    resource = to_resource(user, [], "")
    del resource["meta"]
    return Person.model_validate(resource, scim_policy=POLICY)


def _apply_operation(person: Person, operation: dict[str, Any]) -> None:
    message = {"Operations": [operation]}
    try:
        PatchOp[Person].model_validate(message, scim_ctx=Context.RESOURCE_PATCH_REQUEST).patch(person)
    except (ValidationError, SCIMException) as error:
        raise BadScim.from_library(error) from None
    _check_entry_counts(person)


def _check_entry_counts(person: Person) -> None:
    for attribute, entries in (
        ("emails", person.emails), ("phoneNumbers", person.phone_numbers), ("addresses", person.addresses),
    ):  # fmt: skip
        if len(entries or ()) > _MAX_ENTRIES:
            raise InvalidValue(f"{attribute} may have at most {_MAX_ENTRIES} entries")


def _normalize_operation(operation: dict[str, Any]) -> dict[str, Any]:
    """Return the operation without read-only attributes, and with the manager in the standard form."""
    path, value = operation.get("path"), operation.get("value")
    if not path and isinstance(value, dict):
        value = {name: item for name, item in value.items() if name.lower() not in _READ_ONLY_ATTRIBUTES}
        return {**operation, "value": _normalize_managers(value)}
    if not isinstance(path, str) or path.lower() not in {"manager", _MANAGER_PATH.lower()} or "value" not in operation:
        return operation
    manager = _normalize_manager(value)
    if manager is None:
        return {"op": "remove", "path": _MANAGER_PATH}
    return {**operation, "path": _MANAGER_PATH, "value": manager}


_MANAGER_PATH: Final = f"{ENTERPRISE}:manager"


def _normalize_manager(value: Any) -> Any:
    """Return the manager as an object, or None if there is no manager. Entra ID also sends a string or a list."""
    if isinstance(value, list) and len(value) < 2:
        value = value[0] if value else None
    if isinstance(value, str):
        value = {"value": value}
    return None if isinstance(value, dict) and not value.get("value") else value


def _normalize_managers(resource: dict[str, Any]) -> dict[str, Any]:
    """Return the resource with its manager as an object or null."""
    normalized = dict(resource)
    for name, value in resource.items():
        if name.lower() == _MANAGER_PATH.lower():
            normalized[name] = _normalize_manager(value)
        elif name.lower() == ENTERPRISE.lower() and isinstance(value, dict):
            normalized[name] = {
                key: _normalize_manager(item) if key.lower() == "manager" else item for key, item in value.items()
            }
    return normalized


def _directory_attributes(person: Person) -> dict[str, Any]:
    """Return the attributes for the column `directory`. `emails` is always set, even if empty: without it,
    `to_resource` would show the sign-in address."""
    all_attributes = person.model_dump()
    attributes = {name: value for name, value in all_attributes.items() if name not in _ATTRIBUTES_OUTSIDE_DIRECTORY}
    attributes.setdefault("emails", [])
    if len(msgspec.json.encode(attributes)) > MAX_BYTES:
        raise InvalidValue("The resource is too large.")
    return attributes


def _user_name(person: Person) -> str:
    name = _checked_text(person.user_name, "userName")
    if name is None:
        raise InvalidValue("userName is required")
    return name


def _checked_text(value: str | None, attribute: str) -> str | None:
    if value is not None and (len(value) > _MAX_TEXT_CHARACTERS or not value.isprintable()):
        raise InvalidValue(f"{attribute} may have at most {_MAX_TEXT_CHARACTERS} characters, all of them printable")
    return value or None


def _sign_in_address(person: Person) -> str | None:
    """Return the sign-in address: the primary entry, else the entry of type `work`, else the first entry, else the user
    name if it is an address."""
    entries = [entry for entry in person.emails or () if entry.value]
    entries.sort(key=lambda entry: (not entry.primary, (entry.type or "").lower() != "work"))
    address = entries[0].value if entries else person.user_name
    if address is None or (not entries and "@" not in address) or address.endswith(emails.PLACEHOLDER_SUFFIX):
        return None
    try:
        return emails.normalize(address)
    except ValueError:
        if not entries:
            return None
        raise InvalidValue("emails: the address to sign in with is not a valid e-mail address") from None


async def _free_username(session: AsyncSession, name: str) -> str | None:
    """Return the name if it is a valid user name and not taken, else None."""
    if not _match_username(name) or await table.is_username_taken(session, name):
        return None
    return name


def _uniqueness_conflict(error: EmailTaken | UsernameTaken) -> UniquenessConflict:
    attribute_names = "userName" if isinstance(error, UsernameTaken) else "userName or address"
    return UniquenessConflict(f"A user of this organization has this {attribute_names}.")
