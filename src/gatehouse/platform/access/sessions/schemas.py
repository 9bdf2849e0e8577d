"""Request and response bodies of the sessions' endpoints."""

from datetime import datetime
from typing import Annotated, Literal, Self
from uuid import UUID

from pydantic import Field, StringConstraints, model_validator

from gatehouse.foundation import emails
from gatehouse.foundation.http.bodies import Body, ResponseBody
from gatehouse.foundation.secrets import passwords
from gatehouse.platform.access.users.schemas import User


class Login(Body):
    """An address or a user name, and the password. `tenant` is required if the address or name has several accounts
    with this password."""

    email: Annotated[
        str | None, Field(min_length=1, max_length=emails.MAX_ADDRESS_CHARACTERS, examples=["ada@example.com"])
    ] = None
    username: Annotated[str | None, Field(min_length=1, max_length=emails.MAX_ADDRESS_CHARACTERS)] = None
    password: Annotated[
        str,
        StringConstraints(strip_whitespace=False, max_length=passwords.MAX_PASSWORD_CHARACTERS),
        Field(examples=["correct horse battery staple"], json_schema_extra={"format": "password"}),
    ]
    tenant: Annotated[str | None, Field(max_length=255, description="The organization's slug.")] = None

    @model_validator(mode="after")
    def _one_name(self) -> Self:
        if (self.email is None) == (self.username is None):
            raise ValueError("send email or username, one of them")
        return self


class Refresh(Body):
    refresh_token: Annotated[str, Field(max_length=255, examples=["rt_4fJ0..."])]


class Tokens(ResponseBody):
    access_token: Annotated[str, Field(description="A JWT, for `Authorization: Bearer`.")]
    token_type: Literal["bearer"] = "bearer"  # noqa: S105 - the scheme's name
    expires_in: Annotated[int, Field(description="Seconds.", examples=[900])]
    refresh_token: Annotated[
        str | None,
        Field(
            description="Valid once, at POST /api/auth/refresh. Null if the organization has disabled refresh tokens."
        ),
    ]
    user: User
    mfa_enrollment_deadline: Annotated[
        datetime | None,
        Field(
            description="The time from which you cannot sign in without a second factor. Null if you have one, or need"
            " none."
        ),
    ] = None


class LoginRefused(ResponseBody):
    """Either `detail` alone, or all other fields."""

    detail: str | None = None
    error: Literal["mfa_required"] | None = None
    message: str | None = None
    mfa_token: Annotated[
        str | None, Field(description="For POST /api/auth/mfa/verify, within `expires_in` seconds.")
    ] = None
    methods: Annotated[
        list[str] | None,
        Field(description="The methods that you can use; or, if you have none, may enrol.", examples=[["totp"]]),
    ] = None
    enrollment_required: Annotated[
        bool | None, Field(description="Whether you have no method, and must enrol one with this token to sign in.")
    ] = None
    expires_in: Annotated[int | None, Field(description="Seconds.", examples=[600])] = None


class Session(ResponseBody):
    id: UUID
    created_at: datetime
    last_seen_at: Annotated[datetime, Field(description="The time of the last sign-in or refresh.")]
    expires_at: datetime
    ip: str | None
    user_agent: str | None
    amr: Annotated[
        list[str], Field(description="The methods by which the user authenticated (RFC 8176).", examples=[["pwd"]])
    ]
    mfa_at: datetime | None
    current: Annotated[bool, Field(description="Whether this is the session of the request.")]
