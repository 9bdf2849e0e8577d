-- Batches of model calls, and the files of their inputs and results (docs/batches.md). A file or a batch belongs to a user
-- or to an OAuth client.
CREATE TABLE batches (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL REFERENCES tenants,
    user_id uuid REFERENCES users ON DELETE CASCADE,
    client_id uuid,
    -- the API that created the batch, and that shows it
    api text NOT NULL CHECK (api IN ('openai', 'anthropic')),
    -- the path of the model calls
    endpoint text NOT NULL,
    status text NOT NULL CHECK (status IN (
        'validating', 'in_progress', 'finalizing', 'completed', 'failed', 'expired', 'cancelling', 'cancelled')),
    -- why a failed batch was stopped
    error_code text,
    error_message text,
    -- the caller's own annotations
    metadata jsonb,
    -- the caller without their secret, the headers of the request, and the address of the client, for the calls
    caller jsonb NOT NULL,
    headers jsonb NOT NULL,
    ip text NOT NULL,
    -- the key that seals requests and results; only this key is sealed under the master key
    sealed_key text NOT NULL,
    input_file_id uuid,
    output_file_id uuid,
    error_file_id uuid,
    output_seconds integer NOT NULL,
    -- the process that runs the lines now, changed by each process that takes over
    runner uuid,
    total integer NOT NULL,
    succeeded integer NOT NULL DEFAULT 0,
    errored integer NOT NULL DEFAULT 0,
    cancelled integer NOT NULL DEFAULT 0,
    expired integer NOT NULL DEFAULT 0,
    -- bytes of requests and results before encryption
    stored_bytes bigint NOT NULL CHECK (stored_bytes >= 0),
    input_tokens bigint NOT NULL DEFAULT 0,
    cached_tokens bigint NOT NULL DEFAULT 0,
    output_tokens bigint NOT NULL DEFAULT 0,
    cost_usd numeric NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    in_progress_at timestamptz,
    finalizing_at timestamptz,
    cancelling_at timestamptz,
    ended_at timestamptz,
    -- the time at which the batch and its results are deleted
    delete_at timestamptz NOT NULL
);
CREATE INDEX batches_listing ON batches (tenant_id, id);
CREATE INDEX batches_deletion ON batches (delete_at);
CREATE INDEX batches_of_user ON batches (user_id) WHERE user_id IS NOT NULL;
SELECT pg_temp.tenant_table('batches');
GRANT DELETE ON batches TO gatehouse_service;

CREATE TABLE batch_lines (
    tenant_id uuid NOT NULL REFERENCES tenants,
    batch_id uuid NOT NULL REFERENCES batches ON DELETE CASCADE,
    -- the place in the input, from 1
    number integer NOT NULL,
    custom_id text NOT NULL,
    status text NOT NULL CHECK (status IN ('pending', 'running', 'succeeded', 'errored', 'cancelled', 'expired')),
    -- the sealed body of the call, and the sealed line of the results
    request text,
    result text,
    -- bytes of the request before encryption, and of the result with its line break
    request_bytes integer NOT NULL,
    result_bytes integer NOT NULL DEFAULT 0,
    -- the amounts that the call will probably use
    estimated_nano_usd bigint NOT NULL,
    estimated_tokens bigint NOT NULL,
    PRIMARY KEY (batch_id, number)
);
CREATE INDEX batch_lines_open ON batch_lines (batch_id, number) WHERE status IN ('pending', 'running');
SELECT pg_temp.tenant_table('batch_lines');
GRANT DELETE ON batch_lines TO gatehouse_service;

CREATE TABLE files (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL REFERENCES tenants,
    user_id uuid REFERENCES users ON DELETE CASCADE,
    client_id uuid,
    purpose text NOT NULL CHECK (purpose IN ('batch', 'batch_output')),
    filename text NOT NULL,
    bytes bigint NOT NULL,
    -- the key that seals the content of an uploaded file
    sealed_key text,
    -- the batch whose results are the content
    batch_id uuid REFERENCES batches ON DELETE CASCADE,
    -- whether the content are the results of the lines that failed
    of_errors boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL
);
CREATE INDEX files_listing ON files (tenant_id, id);
CREATE INDEX files_expiry ON files (expires_at);
CREATE INDEX files_of_batch ON files (batch_id) WHERE batch_id IS NOT NULL;
CREATE INDEX files_of_user ON files (user_id) WHERE user_id IS NOT NULL;
SELECT pg_temp.tenant_table('files');
GRANT DELETE ON files TO gatehouse_service;

CREATE TABLE file_chunks (
    tenant_id uuid NOT NULL REFERENCES tenants,
    file_id uuid NOT NULL REFERENCES files ON DELETE CASCADE,
    number integer NOT NULL,
    content text NOT NULL,
    PRIMARY KEY (file_id, number)
);
SELECT pg_temp.tenant_table('file_chunks');
