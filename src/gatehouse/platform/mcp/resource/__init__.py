"""The paths of MCP servers as OAuth 2.1 protected resources: their metadata (RFC 9728; docs/mcp.md)."""
