-- A server that is a process: the operator's command and the names of the organization's variables, and a sealed JSON
-- object with their values. Such a server has no URL.
ALTER TABLE mcp_servers ADD COLUMN stdio jsonb;
ALTER TABLE mcp_servers ADD COLUMN sealed_environment text;
ALTER TABLE mcp_servers ALTER COLUMN url DROP NOT NULL;
ALTER TABLE mcp_servers ADD CONSTRAINT mcp_servers_one_transport CHECK ((url IS NULL) <> (stdio IS NULL));
