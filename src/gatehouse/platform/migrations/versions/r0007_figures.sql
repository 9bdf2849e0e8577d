-- Hourly counts of requests, for charts of a month (records/minutes). `usage_minutes` is kept for eight days.
ALTER TABLE usage_hours
    ADD COLUMN requests bigint NOT NULL DEFAULT 0,
    ADD COLUMN errors bigint NOT NULL DEFAULT 0,
    ADD COLUMN blocked bigint NOT NULL DEFAULT 0,
    ADD COLUMN dlp_triggers bigint NOT NULL DEFAULT 0,
    ADD COLUMN cost_usd numeric NOT NULL DEFAULT 0;
INSERT INTO usage_hours (tenant_id, hour, latency, requests, errors, blocked, dlp_triggers, cost_usd)
SELECT tenant_id, date_trunc('hour', minute, 'UTC'), '{}', sum(requests), sum(errors), sum(blocked), sum(dlp_triggers),
    sum(cost_usd)
FROM usage_minutes GROUP BY 1, 2
ON CONFLICT (tenant_id, hour) DO UPDATE SET requests = excluded.requests, errors = excluded.errors,
    blocked = excluded.blocked, dlp_triggers = excluded.dlp_triggers, cost_usd = excluded.cost_usd;
