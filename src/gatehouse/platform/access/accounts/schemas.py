"""Request and response bodies of the account endpoints."""

from typing import Annotated

from pydantic import Field, StringConstraints

from gatehouse.foundation.emails import Email
from gatehouse.foundation.http.bodies import Body, ResponseBody
from gatehouse.foundation.secrets import passwords
from gatehouse.platform.access.users.schemas import DisplayName, Password, Username


class Registration(Body):
    email: Email
    password: Password
    display_name: DisplayName | None = None
    username: Username | None = None
    invitation_token: Annotated[
        str | None,
        Field(
            max_length=255,
            description="From an administrator. It is valid only for the address that it was issued for.",
        ),
    ] = None


class RegistrationAccepted(ResponseBody):
    """The response for every address. It does not reveal whether the address has an account."""

    message: str = "If the address had no account yet, it has one now. Sign in at POST /api/auth/login."


class ConfirmationMailed(RegistrationAccepted):
    """The response for every address if mail is configured."""

    message: str = "If the address had no account yet, it has one now. Open the link in the mail that is sent to it."


class PasswordChange(Body):
    current_password: Annotated[
        str,
        StringConstraints(strip_whitespace=False, max_length=passwords.MAX_PASSWORD_CHARACTERS),
        Field(json_schema_extra={"format": "password"}),
    ]
    new_password: Password


class PasswordReset(Body):
    token: Annotated[
        str, Field(max_length=255, description="The one-time token, from an administrator or from a mail.")
    ]
    password: Password


class PasswordForgotten(Body):
    email: Email


class ResetRequested(ResponseBody):
    """The response for every address. It does not reveal whether the address has an account."""

    message: str = "If the address has an account with a password, a mail with a link is on its way."


class AddressConfirmation(Body):
    token: Annotated[str, Field(max_length=255, description="The one-time token from the mail.")]
    password: Annotated[
        str,
        StringConstraints(strip_whitespace=False, max_length=passwords.MAX_PASSWORD_CHARACTERS),
        Field(
            description="The password of the account.",
            examples=["correct horse battery staple"],
            json_schema_extra={"format": "password"},
        ),
    ]
