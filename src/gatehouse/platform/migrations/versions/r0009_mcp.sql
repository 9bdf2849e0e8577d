-- Tools of MCP servers whose calls a person must approve (docs/mcp.md)
ALTER TABLE mcp_tools ADD COLUMN approval_required boolean NOT NULL DEFAULT false;
-- The gateway as an OAuth client of a server: its settings, and a sealed JSON object with its secret
ALTER TABLE mcp_servers ADD COLUMN oauth jsonb;
ALTER TABLE mcp_servers ADD COLUMN sealed_client_secret text;
-- A server that is a process: the operator's command and the names of the organization's variables, and a sealed JSON
-- object with their values. Such a server has no URL.
ALTER TABLE mcp_servers ADD COLUMN stdio jsonb;
ALTER TABLE mcp_servers ADD COLUMN sealed_environment text;
ALTER TABLE mcp_servers ALTER COLUMN url DROP NOT NULL;
ALTER TABLE mcp_servers ADD CONSTRAINT mcp_servers_one_transport CHECK ((url IS NULL) <> (stdio IS NULL));
