"""Bodies of the endpoints of organization tokens."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from gatehouse.foundation.http.bodies import Body, ResponseBody
from gatehouse.portal.identity import Plan
from gatehouse.portal.keys.signing import MAX_LIFETIME_SECONDS


class NewToken(Body):
    plan: Annotated[Plan | None, Field(description="The claim `plan`. By default the plan of the organization.")] = None
    expires_in: Annotated[int, Field(ge=60, le=MAX_LIFETIME_SECONDS, description="Seconds.", examples=[3600])] = 3600


class IssuedToken(ResponseBody):
    token: Annotated[str, Field(description="Shown only here.")]
    expires_in: Annotated[int, Field(description="Seconds.")]
    token_type: Literal["Bearer"] = "Bearer"  # noqa: S105 - the contract's word
    jti: str


class TokenRevocation(Body):
    reason: Annotated[str, Field(min_length=1, max_length=500, examples=["lost laptop"])]


class TokensRevoked(ResponseBody):
    org_id: UUID
    tokens_revoked_before: datetime
    message: str


class TokenRevoked(ResponseBody):
    jti: str
    org_id: UUID
    revoked_at: datetime
    reason: str
    message: str
