-- records ---------------------------------------------------------------------------------------------------------
-- Finds the few requests without success.
CREATE INDEX usage_records_failed ON usage_records (tenant_id, status, timestamp) WHERE status <> 'success';
