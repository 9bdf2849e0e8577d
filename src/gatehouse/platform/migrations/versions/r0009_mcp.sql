-- Tools of MCP servers whose calls a person must approve (docs/mcp.md)
ALTER TABLE mcp_tools ADD COLUMN approval_required boolean NOT NULL DEFAULT false;
-- The gateway as an OAuth client of a server: its settings, and a sealed JSON object with its secret
ALTER TABLE mcp_servers ADD COLUMN oauth jsonb;
ALTER TABLE mcp_servers ADD COLUMN sealed_client_secret text;
