-- scans -----------------------------------------------------------------------------------------------------------
-- Scans a minute of one caller of the organization; null: the limit for the caller's other requests.
ALTER TABLE tenants ADD COLUMN scan_rate_limit_rpm integer CHECK (scan_rate_limit_rpm >= 1);
