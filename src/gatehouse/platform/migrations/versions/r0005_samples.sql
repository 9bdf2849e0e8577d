-- samples of requests, for trying out rules ---------------------------------------------------------------------------
-- Only what was set: `share`, `retention_days`.
ALTER TABLE tenants ADD COLUMN dlp_sampling jsonb NOT NULL DEFAULT '{}';

CREATE TABLE dlp_samples (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL REFERENCES tenants,
    request_id text NOT NULL,
    timestamp timestamptz NOT NULL,
    -- of a machine's request null; what a user asked goes with the user
    user_id uuid REFERENCES users ON DELETE CASCADE,
    requested_model text,
    -- the request's, and the answer's: null where no answer is kept
    texts integer NOT NULL,
    answer_texts integer,
    -- Unicode code points of all texts
    characters integer NOT NULL,
    -- the key of `contents`, under the master key
    sealed_key text NOT NULL,
    -- `engine.samples.Contents` as JSON, sealed; of earlier samples a list of texts
    contents text NOT NULL,
    -- by entity type, whether a reviewer says that it is in the sample; null: nobody has looked
    labels jsonb,
    -- the action that policy rules should have come to, as a reviewer says; null: nobody has looked
    expected_action text,
    labelled_by text,
    labelled_at timestamptz
);
CREATE INDEX dlp_samples_listing ON dlp_samples (tenant_id, id);
CREATE INDEX dlp_samples_user ON dlp_samples (user_id) WHERE user_id IS NOT NULL;
CREATE INDEX dlp_samples_age ON dlp_samples (timestamp);
SELECT pg_temp.tenant_table('dlp_samples');
-- The keeper adds and removes them; `keys rotate-master` seals them again.
GRANT INSERT, UPDATE, DELETE ON dlp_samples TO gatehouse_service;
