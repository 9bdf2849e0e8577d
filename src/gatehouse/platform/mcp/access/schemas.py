"""Bodies of the endpoints of access rules of MCP servers."""

from datetime import datetime
from typing import Annotated, Literal, TypeAlias
from uuid import UUID

from pydantic import Field

from gatehouse.foundation.http.bodies import Body, Id, ResponseBody
from gatehouse.policy.mcp import SubjectType, ToolStatus
from gatehouse.policy.model_access import AccessType


class AccessRuleUpdate(Body):
    access_type: Annotated[AccessType, Field(examples=["ALLOW"])]


class NewAccessRule(AccessRuleUpdate):
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


class AccessRule(ResponseBody):
    id: UUID
    server_id: UUID
    subject_type: SubjectType
    subject_id: UUID
    tool: str | None
    access_type: AccessType
    created_at: datetime
    updated_at: Annotated[datetime, Field(description="The version of the rule for `If-Match`.")]


class AccessRuleList(ResponseBody):
    access_rules: list[AccessRule]
    total: int
    limit: int
    offset: int


Obstacle: TypeAlias = Literal[
    "caller_disabled", "server_off", "needs_user", "not_approved", "switched_off", "denied", "not_allowed"
]


class AccessSubject(ResponseBody):
    subject_type: SubjectType
    subject_id: UUID
    name: Annotated[str | None, Field(description="Null if the subject was removed.", examples=["Engineering"])]


class MatrixTool(ResponseBody):
    name: Annotated[str, Field(examples=["forecast"])]
    status: ToolStatus
    missing_since: datetime | None
    switched_off_at: datetime | None
    can_call: Annotated[
        bool | None, Field(description="Whether the caller in the query can call the tool; null without a caller.")
    ]
    obstacle: Annotated[
        Obstacle | None,
        Field(
            description="Why the caller cannot call the tool. `caller_disabled`: the user is inactive, the OAuth client"
            " is disabled, or the API key is disabled or expired or its owner inactive. `server_off`: the server is"
            " disabled, switched off or was never refreshed. `needs_user`: the server needs a user's account, which an"
            " OAuth client does not have. `not_approved`: the tool is not approved or missing. `switched_off`: its kill"
            " switch is engaged. `denied`: by a DENY. `not_allowed`: the server is restricted, and no rule allows the"
            " tool."
        ),
    ]


class AccessMatrix(ResponseBody):
    subjects: Annotated[
        list[AccessSubject], Field(description="At most 20 of the subjects with a rule, by type and name.")
    ]
    total_subjects: int
    tools: list[MatrixTool]
    rules: Annotated[
        list[AccessRule], Field(description="The rules of these subjects for these tools and for all tools.")
    ]
    total: Annotated[int, Field(description="Number of all matching tools.")]
    limit: int
    offset: int
