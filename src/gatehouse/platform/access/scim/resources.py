"""What a directory can say of a user and of a group: the published schemas, and what bodies are checked against.

Attributes of RFC 7643 that are not here are ignored when they come (`POLICY`): passwords, because signing in is the
identity provider's affair; roles and entitlements, because a directory grants no rights here.
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

from gatehouse.platform.access.scim.urns import ENTERPRISE, GROUP, USER

#: What directories really send: Entra ID adds a value to an entry that is not there yet, and names what to remove in
#: `value`.
POLICY: Final = ScimPolicy(
    unknown=ScimPolicy.Unknown.ignore,
    remove_value_as_filter=ScimPolicy.RemoveValue.apply,
    unmatched_path_filter=ScimPolicy.UnmatchedPathFilter.create,
)

_REF: Final[Any] = Field(None, serialization_alias="$ref", validation_alias="$ref")


class Email(ComplexAttribute):
    """As text, whatever it is: an entry that is nobody's sign-in address need not be one."""

    value: str | None = None
    display: str | None = None
    type: str | None = Field(None, examples=["work", "home", "other"])
    primary: bool | None = None


class GroupOfUser(ComplexAttribute):
    value: Annotated[str | None, Mutability.read_only, CaseExact.true] = None
    ref: Annotated[Reference["Group"] | None, Mutability.read_only] = _REF
    display: Annotated[str | None, Mutability.read_only] = None


class Manager(ComplexAttribute):
    """Kept as the directory says it. Nothing here follows from it, so it need not be a user's id."""

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
    ref: Annotated[Reference["User"] | None, Mutability.immutable] = _REF  # type: ignore[type-arg]
    type: Annotated[str | None, Mutability.immutable] = Field(None, examples=["User"])
    display: Annotated[str | None, Mutability.immutable] = None


class Group(Resource[Any]):
    __schema__ = URN(GROUP)

    display_name: Annotated[str | None, Uniqueness.server, Required.true] = None
    members: list[Member] | None = None


Person = User[EnterpriseUser]
