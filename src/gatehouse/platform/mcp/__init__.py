"""MCP servers of an organization: the servers, their tools, and access (docs/mcp.md)."""
