"""Errors of tools of MCP servers."""

from gatehouse.foundation.errors import Conflict, NotFound


class McpToolNotFound(NotFound):
    message = "Tool not found"


class DefinitionChanged(Conflict):
    code = "definition_changed"
    message = "The definition of the tool has changed. Read it again, then decide."
