"""Bodies of the endpoints of single sign-on."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from gatehouse.foundation.http.bodies import Body, Id, ResponseBody
from gatehouse.portal.identity import Plan, Role


class Selection(Body):
    org_id: Id


class Acceptance(Body):
    invite_token: Annotated[str, Field(min_length=1, max_length=200, examples=["inv_..."])]


class SsoToken(ResponseBody):
    token: Annotated[str, Field(description="The organization's token: Authorization: Bearer <token>.")]
    expires_in: Annotated[int, Field(description="Lifetime in seconds.")]
    token_type: Literal["Bearer"] = "Bearer"  # noqa: S105 - the contract's word
    org_id: UUID


class SsoSession(ResponseBody):
    user_id: Annotated[UUID | None, Field(description="The member's `id`; null for a token of the admin key.")]
    email: str | None
    org_id: UUID
    role: Role
    plan: Plan
    expires_at: datetime


class SignedOut(ResponseBody):
    message: str = "You are signed out."
