"""Request and response bodies of the users' endpoints."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import BeforeValidator, Field, StringConstraints

from gatehouse.foundation import emails
from gatehouse.foundation.emails import Email
from gatehouse.foundation.http.bodies import Body, ResponseBody, omitted, partial, without
from gatehouse.foundation.secrets import passwords

RoleName = Literal["admin", "auditor", "user"]
Kind = Literal["user", "service"]
Sort = Literal["name", "-name", "role", "-role", "last_login_at", "-last_login_at", "created_at", "-created_at"]

#: A user name has no @ sign, so that sign-in can distinguish it from an address.
Username = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", examples=["ada"])]
DisplayName = Annotated[str, Field(min_length=1, max_length=255, examples=["Ada Lovelace"])]
#: Surrounding spaces are part of a password.
Password = Annotated[
    str,
    StringConstraints(
        strip_whitespace=False,
        min_length=passwords.MIN_PASSWORD_CHARACTERS,
        max_length=passwords.MAX_PASSWORD_CHARACTERS,
    ),
    Field(examples=["correct horse battery staple"], json_schema_extra={"format": "password"}),
]


class NewUser(Body):
    email: Email
    password: Annotated[Password | None, Field(description="If omitted, the user gets an invitation.")] = None
    username: Username | None = None
    display_name: DisplayName | None = None
    role: RoleName = "user"
    kind: Annotated[Kind, Field(description="`service` for a service account, which has no password.")] = "user"


@partial
@without("password", "kind")
class UserUpdate(NewUser):
    """A partial update. `username` and `display_name` can be set to null."""

    is_active: bool = Field(default_factory=omitted)
    operator: bool = Field(default_factory=omitted, description="Only operators can change it.")


class User(ResponseBody):
    id: UUID
    tenant_id: UUID
    kind: Kind
    email: Annotated[
        str | None,
        BeforeValidator(emails.visible_address),
        Field(examples=["ada@example.com"], description="Null if a directory created the user without an address."),
    ]
    email_verified: Annotated[bool, Field(description="Whether the organization has verified the address's domain.")]
    awaits_confirmation: Annotated[
        bool,
        Field(description="Whether the user must confirm the address by a mailed link before the first sign-in."),
    ]
    username: str | None
    display_name: str | None
    role: RoleName
    operator: bool
    is_active: bool
    created_at: datetime
    updated_at: datetime
    last_login_at: datetime | None


class UserCreated(User):
    invitation_token: Annotated[
        str | None,
        Field(
            description="For POST /api/auth/register. It is shown only once; null if a password was sent, or the"
            " invitation is sent by mail."
        ),
    ]
    invitation_expires_at: datetime | None
    invitation_sent_to: Annotated[
        str | None, Field(description="The address that the invitation is sent to by mail.", examples=[None])
    ]


class UserPage(ResponseBody):
    items: list[User]
    total: int
    page: int
    page_size: int


class PasswordResetIssued(ResponseBody):
    token: Annotated[
        str | None,
        Field(
            description="For POST /api/auth/password/reset. It is shown only once; null if the link is sent by mail."
        ),
    ]
    expires_at: datetime
    sent_to: Annotated[str | None, Field(description="The address that the link is sent to by mail.", examples=[None])]
