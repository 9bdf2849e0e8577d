"""Bodies of the endpoints of members."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import BeforeValidator, Field

from gatehouse.foundation.emails import Email
from gatehouse.foundation.http.bodies import Body, ResponseBody, without
from gatehouse.portal.identity import Role, shown_role


class NewMember(Body):
    email: Email
    role: Annotated[Role, Field(examples=["admin"])]


@without("email")
class MemberUpdate(NewMember): ...


class Member(ResponseBody):
    id: UUID
    org_id: UUID
    email: str
    role: Annotated[Role, BeforeValidator(shown_role)]
    invited_at: datetime
    accepted_at: Annotated[datetime | None, Field(description="Null until the invitation is accepted.")]
    created_at: datetime
    updated_at: Annotated[datetime, Field(description="The version that `ETag` and `If-Match` name.")]


class MemberInvited(ResponseBody):
    member: Member
    invite_token: Annotated[
        str, Field(description="For POST /v1/auth/sso/accept-invite, within 7 days. Shown only here.")
    ]
