-- usage records: whom and what a call was for ----------------------------------------------------------------------------
ALTER TABLE usage_records
    ADD COLUMN end_user text,
    -- an array of texts; null if there are none
    ADD COLUMN tags jsonb;
CREATE INDEX usage_records_end_user ON usage_records (tenant_id, end_user, timestamp) WHERE end_user IS NOT NULL;
-- Row-level security prevents the use of an index for `@>`, so there is only an index of the records that have tags.
CREATE INDEX usage_records_tagged ON usage_records (tenant_id, timestamp) WHERE tags IS NOT NULL;
