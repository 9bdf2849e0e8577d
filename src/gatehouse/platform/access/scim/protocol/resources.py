"""Schemas of users and groups. They are published, and validate request bodies.

Attributes of RFC 7643 that are missing here are ignored in requests (`POLICY`): passwords, because users sign in at the
identity provider; roles and entitlements, because a directory cannot grant rights.
"""

from typing import Annotated, Any, Final

from pydantic import Field
from scim2_models import (
    URN,
    AnyExtension,
    CaseExact,
    ComplexAttribute,
    Extension,
    External,
    Mutability,
    Reference,
    Required,
    Resource,
    ScimPolicy,
    Uniqueness,
)
from scim2_models.resources.user import Address, Name, PhoneNumber

from gatehouse.platform.access.scim.protocol.urns import ENTERPRISE, GROUP, USER

#: Accepts two deviations of Entra ID: it sets values of entries that do not exist, and sends the members to remove in
#: `value`.
POLICY: Final = ScimPolicy(
    unknown=ScimPolicy.Unknown.ignore,
    remove_value_as_filter=ScimPolicy.RemoveValue.apply,
    unmatched_path_filter=ScimPolicy.UnmatchedPathFilter.create,
)

_REF_FIELD: Final[Any] = Field(None, serialization_alias="$ref", validation_alias="$ref")


class Email(ComplexAttribute):
    """An e-mail entry. `value` may be any text, because only the sign-in address must be a valid address."""

    value: str | None = None
    display: str | None = None
    type: str | None = Field(None, examples=["work", "home", "other"])
    primary: bool | None = None


class GroupOfUser(ComplexAttribute):
    value: Annotated[str | None, Mutability.read_only, CaseExact.true] = None
    ref: Annotated[Reference["Group"] | None, Mutability.read_only] = _REF_FIELD
    display: Annotated[str | None, Mutability.read_only] = None


class Manager(ComplexAttribute):
    """The manager as the directory sends it. It has no effect on this platform, so `value` need not be a user's id."""

    value: Annotated[str | None, CaseExact.true] = None


class EnterpriseUser(Extension):
    __schema__ = URN(ENTERPRISE)

    employee_number: str | None = None
    cost_center: str | None = None
    organization: str | None = None
    division: str | None = None
    department: str | None = None
    manager: Manager | None = None


class User(Resource[AnyExtension]):
    __schema__ = URN(USER)

    user_name: Annotated[str | None, Uniqueness.server, Required.true] = None
    name: Name | None = None
    display_name: str | None = None
    nick_name: str | None = None
    profile_url: Reference[External] | None = None
    title: str | None = None
    user_type: str | None = None
    preferred_language: str | None = None
    locale: str | None = None
    timezone: str | None = None
    active: Annotated[bool | None, Required.true] = None
    emails: list[Email] | None = None
    phone_numbers: list[PhoneNumber] | None = None
    addresses: list[Address] | None = None
    groups: Annotated[list[GroupOfUser] | None, Mutability.read_only] = None


class Member(ComplexAttribute):
    value: Annotated[str | None, Mutability.immutable, CaseExact.true] = None
    ref: Annotated[Reference["User"] | None, Mutability.immutable] = _REF_FIELD  # type: ignore[type-arg]
    type: Annotated[str | None, Mutability.immutable] = Field(None, examples=["User"])
    display: Annotated[str | None, Mutability.immutable] = None


class Group(Resource[Any]):
    __schema__ = URN(GROUP)

    display_name: Annotated[str | None, Uniqueness.server, Required.true] = None
    members: list[Member] | None = None


Person = User[EnterpriseUser]
