"""Answers of the metadata endpoints (RFC 9728, 2)."""

from typing import Annotated

from pydantic import Field

from gatehouse.foundation.http.bodies import ResponseBody


class ResourceMetadata(ResponseBody):
    resource: Annotated[str, Field(examples=["https://gatehouse.example.com/mcp/weather"])]
    authorization_servers: Annotated[list[str], Field(examples=[["https://gatehouse.example.com"]])]
    scopes_supported: Annotated[list[str], Field(examples=[["openid", "mcp:call"]])]
    bearer_methods_supported: Annotated[list[str], Field(examples=[["header"]])]
    resource_name: str
