-- MCP servers, their tools, and who may call them (docs/mcp.md)
CREATE TABLE mcp_servers (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL REFERENCES tenants,
    name text NOT NULL,
    description text,
    url text NOT NULL,
    enabled boolean NOT NULL,
    access text NOT NULL CHECK (access IN ('restricted', 'open')),
    timeout_ms integer NOT NULL,
    -- the header that authenticates the gateway: its name, and a sealed JSON object of name and value
    header_name text,
    sealed_header text,
    -- what the last successful refresh found: the protocol revision, the server's own name and version, the faults of
    -- definitions that cannot be offered
    revision text,
    server_info jsonb NOT NULL DEFAULT '{}',
    faults jsonb NOT NULL DEFAULT '[]',
    refreshed_at timestamptz,
    switched_off_at timestamptz,
    switched_off_reason text,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (tenant_id, name)
);
SELECT pg_temp.tenant_table('mcp_servers');

CREATE TABLE mcp_tools (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL REFERENCES tenants,
    server_id uuid NOT NULL REFERENCES mcp_servers ON DELETE CASCADE,
    name text NOT NULL,
    status text NOT NULL CHECK (status IN ('quarantined', 'approved', 'rejected')),
    -- the server's present definition as JSON text, exactly as it is hashed
    definition text NOT NULL,
    hash text NOT NULL,
    approved_definition text,
    approved_hash text,
    approved_at timestamptz,
    -- since when the server does not list the tool
    missing_since timestamptz,
    switched_off_at timestamptz,
    switched_off_reason text,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (server_id, name)
);
CREATE INDEX mcp_tools_of_tenant ON mcp_tools (tenant_id, server_id, name);
SELECT pg_temp.tenant_table('mcp_tools');

CREATE TABLE mcp_access_rules (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL REFERENCES tenants,
    server_id uuid NOT NULL REFERENCES mcp_servers ON DELETE CASCADE,
    subject_type text NOT NULL CHECK (subject_type IN ('group', 'user', 'api_key', 'oauth_client')),
    subject_id uuid NOT NULL,
    -- null for all tools
    tool text,
    access_type text NOT NULL CHECK (access_type IN ('ALLOW', 'DENY')),
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX mcp_access_rules_once
    ON mcp_access_rules (server_id, subject_type, subject_id, COALESCE(tool, ''));
CREATE INDEX mcp_access_rules_of_tenant ON mcp_access_rules (tenant_id, server_id);
SELECT pg_temp.tenant_table('mcp_access_rules');
