-- usage records of one API key ------------------------------------------------------------------------------------------
CREATE INDEX usage_records_api_key ON usage_records (tenant_id, api_key_id, timestamp) WHERE api_key_id IS NOT NULL;
