"""Bodies of the endpoints of tools."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field

from gatehouse.foundation.http.bodies import Body, ResponseBody, partial
from gatehouse.platform.mcp.servers.schemas import McpServer
from gatehouse.platform.routing.kill_switch.schemas import PropagationStatus, Reason
from gatehouse.policy.mcp import ToolStatus


class Decision(Body):
    hash: Annotated[
        str,
        Field(
            pattern=r"^sha256:[0-9a-f]{64}$",
            description="The `hash` of the definition that was read.",
            examples=["sha256:" + "0" * 64],
        ),
    ]


class McpToolSettings(Body):
    approval_required: Annotated[
        bool,
        Field(
            description="Whether a person must approve each call. Needs the feature flag `human_in_loop`.",
            examples=[True],
        ),
    ]


@partial
class McpToolUpdate(McpToolSettings):
    """Partial: omitted fields keep their values."""


class McpToolSummary(ResponseBody):
    id: UUID
    server_id: UUID
    name: str
    status: ToolStatus
    hash: Annotated[str, Field(description="The hash of the server's present definition.")]
    approved_hash: Annotated[str | None, Field(description="The hash of the definition that was approved last.")]
    approved_at: datetime | None
    approval_required: Annotated[bool, Field(description="Whether a person must approve each call.")]
    missing_since: Annotated[
        datetime | None, Field(description="When the server stopped listing the tool; null if it lists the tool.")
    ]
    switched_off_at: Annotated[
        datetime | None, Field(description="When the kill switch was engaged; null if it is not.")
    ]
    switched_off_reason: Reason | None
    created_at: datetime
    updated_at: datetime


class Difference(ResponseBody):
    """A field that differs. Null stands for an absent field."""

    field: Annotated[str, Field(examples=["description"])]
    approved: Any
    present: Any


class McpTool(McpToolSummary):
    definition: Annotated[dict[str, Any], Field(description="The server's present definition.")]
    approved_definition: Annotated[
        dict[str, Any] | None, Field(description="The definition that was approved last. Agents receive it.")
    ]
    difference: Annotated[
        list[Difference],
        Field(description="The fields in which the two definitions differ; empty if none was approved."),
    ]


class SwitchedMcpTool(McpTool):
    propagation: PropagationStatus


class McpToolList(ResponseBody):
    mcp_tools: list[McpToolSummary]
    total: int
    limit: int
    offset: int


class McpToolOfServer(McpToolSummary):
    server_name: Annotated[str, Field(examples=["weather"])]


class McpToolOfServerList(ResponseBody):
    mcp_tools: list[McpToolOfServer]
    total: int
    limit: int
    offset: int


class Refreshed(ResponseBody):
    """The result of a refresh. The lists contain names of tools."""

    server: McpServer
    added: Annotated[list[str], Field(description="New tools, in quarantine.")]
    changed: Annotated[list[str], Field(description="Tools with another definition, in quarantine.")]
    missing: Annotated[list[str], Field(description="Tools that the server does not list any more.")]
    returned: Annotated[list[str], Field(description="Tools that were missing, with an unchanged definition.")]
    unchanged: Annotated[int, Field(description="Number of the other tools.")]
