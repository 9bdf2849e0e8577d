"""Request and response bodies of the groups' endpoints."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import BeforeValidator, Field

from gatehouse.detection.taxonomy import ENTITY_TYPE_PATTERN
from gatehouse.foundation import emails
from gatehouse.foundation.http.bodies import Body, Id, ResponseBody, partial

Name = Annotated[str, Field(min_length=1, max_length=255, pattern=r"^[^\x00-\x1f\x7f]+$", examples=["Payments"])]
Description = Annotated[str, Field(max_length=2_000)]
ExternalId = Annotated[
    str, Field(min_length=1, max_length=255, description="The directory's id of this group.", examples=["g-4711"])
]
OverrideAction = Literal["ALLOW", "BLOCK", "REDACT"]
MemberSort = Literal["user_email", "-user_email", "joined_at", "-joined_at"]
Sort = Literal["name", "-name", "member_count", "-member_count", "created_at", "-created_at"]


class NewGroup(Body):
    name: Name
    description: Description | None = None
    external_group_id: ExternalId | None = None


@partial
class GroupUpdate(NewGroup):
    """A partial update: fields that are left out keep their values; null clears a nullable field."""


class Group(ResponseBody):
    id: UUID
    name: str
    description: str | None
    external_group_id: str | None
    tenant_id: UUID
    member_count: int
    created_at: datetime
    updated_at: datetime


class GroupList(ResponseBody):
    groups: list[Group]
    total: Annotated[int, Field(description="All matching groups, regardless of `limit` and `offset`.")]


class NewMember(Body):
    user_id: Annotated[Id, Field(examples=["0192f3c4-5d6e-7f80-9123-456789abcdef"])]


class Member(ResponseBody):
    id: UUID
    user_id: UUID
    group_id: UUID
    user_email: Annotated[str | None, BeforeValidator(emails.visible_address)]
    joined_at: datetime


class NewOverride(Body):
    entity_type: Annotated[
        str,
        Field(
            pattern=ENTITY_TYPE_PATTERN,
            description="The type of a finding. A type that no rule detects has no effect.",
            examples=["credit_card"],
        ),
    ]
    action: Annotated[OverrideAction, Field(examples=["BLOCK"])]


class Override(ResponseBody):
    entity_type: str
    action: OverrideAction
