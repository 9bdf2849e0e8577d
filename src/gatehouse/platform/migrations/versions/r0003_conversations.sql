-- conversations ---------------------------------------------------------------------------------------------------
CREATE TABLE conversations (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL REFERENCES tenants,
    user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    -- the key that seals the texts (title, summary, messages); only this key is sealed under the master key
    sealed_key text NOT NULL,
    title text,
    -- `provider/model-id`, or `auto`
    model text NOT NULL,
    -- a copy of the catalog entry from the time when the model was chosen
    model_snapshot jsonb,
    summary text,
    summarized_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX conversations_listing ON conversations (user_id, updated_at DESC, id);
SELECT pg_temp.tenant_table('conversations');

CREATE TABLE conversation_messages (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL REFERENCES tenants,
    conversation_id uuid NOT NULL REFERENCES conversations ON DELETE CASCADE,
    sequence integer NOT NULL,
    role text NOT NULL CHECK (role IN ('user', 'assistant')),
    -- pending: a row that is reserved while the model answers
    status text NOT NULL CHECK (status IN ('pending', 'complete', 'incomplete')),
    content text,
    model text,
    finish_reason text,
    request_id text,
    created_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (conversation_id, sequence)
);
SELECT pg_temp.tenant_table('conversation_messages');

CREATE TABLE share_links (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL REFERENCES tenants,
    conversation_id uuid NOT NULL REFERENCES conversations ON DELETE CASCADE,
    -- stored sealed, because the owner can list it; looked up by its digest
    sealed_token text NOT NULL,
    digest bytea NOT NULL UNIQUE,
    revoked boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX share_links_listing ON share_links (conversation_id, created_at);
SELECT pg_temp.tenant_table('share_links');
