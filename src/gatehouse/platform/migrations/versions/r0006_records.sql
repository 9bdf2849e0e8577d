-- records ---------------------------------------------------------------------------------------------------------
-- Few requests do not succeed, and those are looked for.
CREATE INDEX usage_records_failed ON usage_records (tenant_id, status, timestamp) WHERE status <> 'success';
