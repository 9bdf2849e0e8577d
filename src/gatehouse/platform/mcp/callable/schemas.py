"""Bodies of the responses about tools that a person may call."""

from typing import Annotated

from pydantic import Field

from gatehouse.foundation.http.bodies import ResponseBody


class CallableTool(ResponseBody):
    server: Annotated[str, Field(description="The name of the server in `/mcp/{server}`.", examples=["weather"])]
    name: Annotated[str, Field(examples=["forecast"])]
    title: str | None
    description: Annotated[str | None, Field(description="The approved description.")]


class CallableTools(ResponseBody):
    tools: list[CallableTool]
    servers: Annotated[
        list[str], Field(description="The names of all servers with a tool that the person may call, without filters.")
    ]
    total: int
    limit: int
    offset: int
