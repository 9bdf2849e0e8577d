-- samples of requests, for trying out rules ---------------------------------------------------------------------------
-- Contains only fields that were set: `share`, `retention_days`.
ALTER TABLE tenants ADD COLUMN dlp_sampling jsonb NOT NULL DEFAULT '{}';

CREATE TABLE dlp_samples (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL REFERENCES tenants,
    request_id text NOT NULL,
    timestamp timestamptz NOT NULL,
    -- null for a request of a machine; the samples of a user are deleted with the user
    user_id uuid REFERENCES users ON DELETE CASCADE,
    requested_model text,
    -- number of texts of the request and of the answer; null if no answer is stored
    texts integer NOT NULL,
    answer_texts integer,
    -- Unicode code points of all texts
    characters integer NOT NULL,
    -- the key of `contents`, sealed under the master key
    sealed_key text NOT NULL,
    -- `engine.records.samples.Contents` as JSON, sealed; in earlier samples a list of texts
    contents text NOT NULL,
    -- by entity type, whether it is in the sample according to a reviewer; null: not reviewed
    labels jsonb,
    -- the action that policy rules should have taken according to a reviewer; null: not reviewed
    expected_action text,
    labelled_by text,
    labelled_at timestamptz
);
CREATE INDEX dlp_samples_listing ON dlp_samples (tenant_id, id);
CREATE INDEX dlp_samples_user ON dlp_samples (user_id) WHERE user_id IS NOT NULL;
CREATE INDEX dlp_samples_age ON dlp_samples (timestamp);
SELECT pg_temp.tenant_table('dlp_samples');
-- The keeper adds and deletes samples; `keys rotate-master` seals them again.
GRANT INSERT, UPDATE, DELETE ON dlp_samples TO gatehouse_service;
