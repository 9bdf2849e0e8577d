"""Bodies of the endpoints of access rules of MCP servers."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import Field

from gatehouse.foundation.http.bodies import Body, Id, ResponseBody
from gatehouse.policy.mcp import SubjectType
from gatehouse.policy.model_access import AccessType


class NewAccessRule(Body):
    subject_type: Annotated[SubjectType, Field(examples=["group"])]
    subject_id: Annotated[
        Id, Field(description="The id of the group, user or API key, or the `client_id` of the OAuth client.")
    ]
    tool: Annotated[
        str | None,
        Field(
            min_length=1, max_length=128, description="The name of a tool; null for all tools.", examples=["forecast"]
        ),
    ] = None
    access_type: Annotated[AccessType, Field(examples=["ALLOW"])]


class AccessRule(ResponseBody):
    id: UUID
    server_id: UUID
    subject_type: SubjectType
    subject_id: UUID
    tool: str | None
    access_type: AccessType
    created_at: datetime


class AccessRuleList(ResponseBody):
    access_rules: list[AccessRule]
    total: int
    limit: int
    offset: int
