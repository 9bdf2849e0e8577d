"""Response body of the exchange of the session cookie."""

from typing import Annotated, Literal

from pydantic import Field

from gatehouse.foundation.http.bodies import ResponseBody
from gatehouse.platform.access.users.schemas import User


class SignedInOrganization(ResponseBody):
    slug: Annotated[str, Field(examples=["acme"])]
    name: Annotated[str, Field(examples=["Acme Ltd"])]


class SessionToken(ResponseBody):
    access_token: Annotated[str, Field(description="A JWT, for `Authorization: Bearer`.")]
    token_type: Literal["bearer"] = "bearer"  # noqa: S105 - the scheme's name
    expires_in: Annotated[int, Field(description="Seconds; 300 at most.", examples=[300])]
    user: User
    organization: SignedInOrganization
    has_password: Annotated[bool, Field(description="False for users who sign in by single sign-on only.")]
