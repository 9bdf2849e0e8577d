"""Request and response bodies of the SCIM tokens' endpoints."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import AliasChoices, AwareDatetime, Field

from gatehouse.foundation.http.bodies import Body, ResponseBody


class NewScimToken(Body):
    description: Annotated[str, Field(min_length=1, max_length=255, examples=["Entra ID"])]
    expires_at: Annotated[
        AwareDatetime | None,
        Field(
            strict=False,
            description="A time with its offset from UTC. If null or omitted, the token never expires.",
            examples=[None],
        ),
    ] = None


class ScimToken(ResponseBody):
    token_id: Annotated[UUID, Field(validation_alias=AliasChoices("token_id", "id"))]
    description: str
    created_at: datetime
    last_used_at: Annotated[datetime | None, Field(description="The last use, to the minute.")]
    expires_at: Annotated[datetime | None, Field(description="Null if the token never expires.")]


class ScimTokenList(ResponseBody):
    tokens: list[ScimToken]


class ScimTokenCreated(ScimToken):
    token: Annotated[str, Field(description="The token itself. It is shown only once.")]
    note: Annotated[str, Field(examples=["Keep this token: it is not shown again."])]
