-- request fields and egress ------------------------------------------------------------------------------------------
ALTER TABLE tenants
    -- only what was set: `allowed`, the fields of model calls that the organization allows
    ADD COLUMN request_fields jsonb NOT NULL DEFAULT '{}',
    -- `public` or `listed`: narrower than the deployment's EGRESS_POLICY; null: as the deployment
    ADD COLUMN egress_policy text CHECK (egress_policy IN ('public', 'listed'));
-- Whether `dlp_trigger` comes for requests in which DLP only logged, and with what it logged.
ALTER TABLE webhooks ADD COLUMN include_logged boolean NOT NULL DEFAULT false;
