-- request fields and egress ------------------------------------------------------------------------------------------
ALTER TABLE tenants
    -- contains only fields that were set: `allowed`, the fields of model calls that the organization allows
    ADD COLUMN request_fields jsonb NOT NULL DEFAULT '{}',
    -- `public` or `listed`, which are narrower than the deployment's EGRESS_POLICY; null: the policy of the deployment
    ADD COLUMN egress_policy text CHECK (egress_policy IN ('public', 'listed'));
-- Whether `dlp_trigger` is also sent for requests in which DLP only logged, with the logged findings.
ALTER TABLE webhooks ADD COLUMN include_logged boolean NOT NULL DEFAULT false;
