-- Tools of MCP servers whose calls a person must approve (docs/mcp.md)
ALTER TABLE mcp_tools ADD COLUMN approval_required boolean NOT NULL DEFAULT false;
