-- Versions older than this schema that can still serve on it (see foundation/storage/migrate.py).
CREATE TABLE schema_compatibility (serves text[] NOT NULL);
INSERT INTO schema_compatibility VALUES ('{}');

-- organization ----------------------------------------------------------------------------------------------------
CREATE TABLE tenants (
    id uuid PRIMARY KEY,
    slug text NOT NULL UNIQUE,
    name text NOT NULL,
    plan text NOT NULL DEFAULT 'enterprise',
    custom_rate_limit_rpm integer,
    monthly_request_limit bigint,
    timezone text NOT NULL DEFAULT 'UTC',
    feature_flags jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    deleted_at timestamptz
);
CREATE TABLE allowed_domains (
    tenant_id uuid NOT NULL REFERENCES tenants,
    domain text NOT NULL,
    jit_provisioning boolean NOT NULL DEFAULT false,
    default_group_id uuid,
    verified_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, domain)
);
-- Only one tenant can verify a domain.
CREATE UNIQUE INDEX allowed_domains_proven ON allowed_domains (domain) WHERE verified_at IS NOT NULL;
CREATE TABLE system_config (
    tenant_id uuid NOT NULL REFERENCES tenants,
    key text NOT NULL,
    value text NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, key)
);
-- Live state of the whole platform, such as maintenance.
CREATE TABLE platform_state (
    key text PRIMARY KEY,
    value jsonb NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now()
);

-- access ----------------------------------------------------------------------------------------------------------
CREATE TABLE users (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL REFERENCES tenants,
    kind text NOT NULL DEFAULT 'user' CHECK (kind IN ('user', 'service')),
    email text NOT NULL,
    username text,
    display_name text,
    role text NOT NULL DEFAULT 'user' CHECK (role IN ('admin', 'auditor', 'user')),
    operator boolean NOT NULL DEFAULT false,
    password_hash text,
    is_active boolean NOT NULL DEFAULT true,
    email_verified boolean NOT NULL DEFAULT false,
    external_id text,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    last_login_at timestamptz
);
CREATE UNIQUE INDEX users_email ON users (tenant_id, lower(email));
CREATE UNIQUE INDEX users_username ON users (tenant_id, lower(username));
-- The sign-in looks up an address or a name across all tenants.
CREATE INDEX users_by_email ON users (lower(email));
CREATE INDEX users_by_username ON users (lower(username));
CREATE INDEX users_listing ON users (tenant_id, created_at DESC, id);

CREATE TABLE one_time_tokens (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL REFERENCES tenants,
    user_id uuid REFERENCES users ON DELETE CASCADE,
    purpose text NOT NULL CHECK (purpose IN ('invitation', 'password_reset')),
    digest bytea NOT NULL UNIQUE,
    expires_at timestamptz NOT NULL,
    used_at timestamptz,
    created_by uuid,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX one_time_tokens_user ON one_time_tokens (user_id);

CREATE TABLE sessions (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL REFERENCES tenants,
    user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    created_at timestamptz NOT NULL DEFAULT now(),
    last_seen_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    revoked_at timestamptz,
    revoked_reason text,
    ip text,
    user_agent text,
    amr jsonb NOT NULL DEFAULT '[]',
    mfa_at timestamptz
);
CREATE INDEX sessions_user ON sessions (tenant_id, user_id, created_at DESC);

CREATE TABLE refresh_tokens (
    digest bytea PRIMARY KEY,
    tenant_id uuid NOT NULL REFERENCES tenants,
    session_id uuid NOT NULL REFERENCES sessions ON DELETE CASCADE,
    issued_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    used_at timestamptz
);
CREATE INDEX refresh_tokens_session ON refresh_tokens (session_id);

CREATE TABLE api_keys (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL REFERENCES tenants,
    user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    key_prefix text NOT NULL,
    digest bytea NOT NULL UNIQUE,
    description text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    last_used timestamptz,
    expires_at timestamptz,
    is_enabled boolean NOT NULL DEFAULT true,
    scopes jsonb
);
CREATE INDEX api_keys_user ON api_keys (tenant_id, user_id, created_at DESC);

-- tenant_id is null for a platform-wide client.
CREATE TABLE oauth_clients (
    id uuid PRIMARY KEY,
    client_id uuid NOT NULL UNIQUE,
    tenant_id uuid REFERENCES tenants,
    name text NOT NULL,
    scopes jsonb NOT NULL DEFAULT '[]',
    created_by uuid REFERENCES users ON DELETE SET NULL,
    enabled boolean NOT NULL DEFAULT true,
    rate_limit_tier text NOT NULL DEFAULT 'standard',
    token_lifetime_seconds integer NOT NULL DEFAULT 3600,
    secret_digest bytea NOT NULL,
    previous_secret_digest bytea,
    previous_secret_expires_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    last_used timestamptz
);
CREATE INDEX oauth_clients_listing ON oauth_clients (tenant_id, created_at DESC, id);

-- Tokens that must not be accepted although their signature is valid: tokens of ended sessions and of deleted clients.
-- `subject` is the id of a session or the public id of a client. A row can be deleted once every token that it
-- invalidates has expired.
CREATE TABLE revocations (
    subject uuid PRIMARY KEY,
    kind text NOT NULL CHECK (kind IN ('session', 'oauth_client')),
    revoked_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL
);

CREATE TABLE signing_keys (
    kid text PRIMARY KEY,
    public_jwk jsonb NOT NULL,
    sealed_private text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    -- time from which another key signs and this key is only published
    retired_at timestamptz,
    -- time from which this key is no longer published
    expires_at timestamptz
);

-- routing ---------------------------------------------------------------------------------------------------------
CREATE TABLE providers (
    tenant_id uuid NOT NULL REFERENCES tenants,
    id text NOT NULL,
    name text NOT NULL,
    kind text NOT NULL,
    enabled boolean NOT NULL DEFAULT true,
    sealed_credentials text,
    credentials_updated_at timestamptz,
    config jsonb NOT NULL DEFAULT '{}',
    health_config jsonb NOT NULL DEFAULT '{}',
    health_check_status text NOT NULL DEFAULT 'unknown',
    last_health_check timestamptz,
    health_error text,
    health_latency_ms double precision,
    unhealthy boolean NOT NULL DEFAULT false,
    consecutive_failures integer NOT NULL DEFAULT 0,
    consecutive_successes integer NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, id)
);

CREATE TABLE model_configs (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL REFERENCES tenants,
    provider text NOT NULL,
    model_id text NOT NULL,
    display_name text,
    is_active boolean NOT NULL DEFAULT true,
    is_default boolean NOT NULL DEFAULT false,
    access text NOT NULL DEFAULT 'open' CHECK (access IN ('open', 'restricted')),
    context_window integer,
    max_output_tokens integer,
    capabilities jsonb NOT NULL DEFAULT '{}',
    cost_per_input_token numeric CHECK (cost_per_input_token >= 0),
    cost_per_output_token numeric CHECK (cost_per_output_token >= 0),
    cost_per_cached_input_token numeric CHECK (cost_per_cached_input_token >= 0),
    cost_per_cache_write_token numeric CHECK (cost_per_cache_write_token >= 0),
    kill_switch_disabled_at timestamptz,
    disabled_reason text,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (tenant_id, provider, model_id)
);
CREATE INDEX model_configs_listing ON model_configs (tenant_id, created_at DESC, id);
CREATE INDEX model_configs_killed ON model_configs (tenant_id) WHERE kill_switch_disabled_at IS NOT NULL;

-- records ---------------------------------------------------------------------------------------------------------
-- The end of each tenant's audit chain. The lock on this row serializes the assignment of sequences and hashes.
CREATE TABLE audit_heads (
    tenant_id uuid PRIMARY KEY REFERENCES tenants,
    sequence bigint NOT NULL DEFAULT 0,
    hash bytea NOT NULL DEFAULT '\x'
);
CREATE TABLE audit_events (
    tenant_id uuid NOT NULL,
    sequence bigint NOT NULL,
    id uuid NOT NULL,
    timestamp timestamptz NOT NULL,
    actor_id text,
    actor_type text NOT NULL,
    action text NOT NULL,
    resource_type text,
    resource_id text,
    request_id text,
    ip text,
    outcome text NOT NULL,
    target_provider text,
    target_model text,
    reason text,
    details jsonb NOT NULL DEFAULT '{}',
    -- part of the digests of personal fields; deleted when a person is anonymised
    salt bytea,
    personal_digest bytea NOT NULL,
    prev_hash bytea NOT NULL,
    hash bytea NOT NULL,
    PRIMARY KEY (tenant_id, sequence, timestamp)
) PARTITION BY RANGE (timestamp);
-- Nearly all events come from the gateway. Queries for those read the chain itself, so only other events are indexed.
CREATE INDEX audit_events_action ON audit_events (tenant_id, action, sequence) WHERE action <> 'gateway.request';
CREATE INDEX audit_events_actor ON audit_events (tenant_id, actor_id, sequence);
CREATE INDEX audit_events_resource ON audit_events (tenant_id, resource_type, resource_id, sequence)
    WHERE resource_type IS NOT NULL;
CREATE INDEX audit_events_request ON audit_events (tenant_id, request_id);

CREATE TABLE usage_records (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    timestamp timestamptz NOT NULL,
    request_id text NOT NULL,
    user_id uuid,
    group_id uuid,
    api_key_id uuid,
    client_id uuid,
    provider text,
    model_id text,
    requested_model text,
    status text NOT NULL,
    stream boolean NOT NULL,
    input_tokens bigint,
    output_tokens bigint,
    cached_tokens bigint,
    cost_usd numeric,
    latency_ms double precision,
    time_to_first_token_ms double precision,
    provider_latency_ms double precision,
    fallbacks integer NOT NULL DEFAULT 0,
    routing_policy_id text,
    dlp_action text,
    PRIMARY KEY (tenant_id, timestamp, id)
) PARTITION BY RANGE (timestamp);
CREATE INDEX usage_records_user ON usage_records (tenant_id, user_id, timestamp DESC);

-- The number of usage records of each kind on each day (UTC), for every kind that a list can be filtered by. So totals
-- and far pages need no scan of the records. The keeper maintains the counts. A process that deletes records must
-- reduce them.
CREATE TABLE usage_counts (
    tenant_id uuid NOT NULL,
    day date NOT NULL,
    user_id uuid,
    group_id uuid,
    provider text,
    model_id text,
    records bigint NOT NULL,
    UNIQUE NULLS NOT DISTINCT (tenant_id, day, user_id, group_id, provider, model_id)
);

CREATE TABLE dlp_events (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    timestamp timestamptz NOT NULL,
    request_id text NOT NULL,
    user_id uuid,
    group_ids jsonb NOT NULL DEFAULT '[]',
    rule_id text,
    rule_name text,
    detector_type text,
    entity_type text,
    direction text NOT NULL,
    status text NOT NULL,
    score double precision,
    match_count integer,
    model text,
    PRIMARY KEY (tenant_id, timestamp, id)
) PARTITION BY RANGE (timestamp);
CREATE INDEX dlp_events_user ON dlp_events (tenant_id, user_id, timestamp DESC);

-- The number of DLP events of each kind on each day (UTC), as in usage_counts. Triggers on the events and on each of
-- their partitions maintain the counts. A process that deletes or changes events must adjust them.
CREATE TABLE dlp_event_counts (
    tenant_id uuid NOT NULL,
    day date NOT NULL,
    user_id uuid,
    entity_type text,
    direction text NOT NULL,
    status text NOT NULL,
    records bigint NOT NULL,
    UNIQUE NULLS NOT DISTINCT (tenant_id, day, user_id, entity_type, direction, status)
);
CREATE FUNCTION gatehouse_count_dlp_events() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    -- The rows are ordered, so that two statements that count the same kinds cannot deadlock.
    INSERT INTO dlp_event_counts AS held (tenant_id, day, user_id, entity_type, direction, status, records)
    SELECT tenant_id, (timestamp AT TIME ZONE 'UTC')::date, user_id, entity_type, direction, status, count(*)
    FROM added GROUP BY 1, 2, 3, 4, 5, 6 ORDER BY 1, 2, 3, 4, 5, 6
    ON CONFLICT (tenant_id, day, user_id, entity_type, direction, status)
    DO UPDATE SET records = held.records + excluded.records;
    RETURN NULL;
END $$;
CREATE TRIGGER counted AFTER INSERT ON dlp_events REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION gatehouse_count_dlp_events();

-- Creates the partitions of the given months. Past months are allowed too, because an outpost may return after weeks.
-- It runs ahead of time. Rows that went to the default partition in the meantime are moved to their month.
CREATE FUNCTION gatehouse_ensure_partitions(first date, months integer) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    parent text;
    month text;
    other text;
    begins date;
    bounds text[];
BEGIN
    PERFORM pg_advisory_xact_lock(7411991);
    FOREACH parent IN ARRAY ARRAY['audit_events', 'usage_records', 'dlp_events'] LOOP
        other := parent || '_other';
        FOR step IN 0 .. months - 1 LOOP
            begins := (date_trunc('month', first) + make_interval(months => step))::date;
            month := parent || to_char(begins, '"_"YYYYMM');
            CONTINUE WHEN to_regclass(month) IS NOT NULL;
            bounds := ARRAY[begins::text || ' 00:00+00', (begins + interval '1 month')::date::text || ' 00:00+00'];
            EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING CONSTRAINTS)', month, parent);
            IF to_regclass(other) IS NOT NULL THEN
                EXECUTE format('LOCK TABLE %I IN ACCESS EXCLUSIVE MODE', other);
                EXECUTE format('WITH moved AS (DELETE FROM %I WHERE timestamp >= %L AND timestamp < %L RETURNING *)'
                               ' INSERT INTO %I SELECT * FROM moved', other, bounds[1], bounds[2], month);
            END IF;
            -- Rows inserted directly into a partition do not fire the triggers of its parent. The triggers are created
            -- here, so that the moved rows are counted.
            IF parent = 'dlp_events' THEN
                EXECUTE format('CREATE TRIGGER counted AFTER INSERT ON %I REFERENCING NEW TABLE AS added'
                               ' FOR EACH STATEMENT EXECUTE FUNCTION gatehouse_count_dlp_events()', month);
            END IF;
            -- The partition is attached instead of created as a partition, because a creation would block the whole
            -- table meanwhile.
            EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)',
                           parent, month, bounds[1], bounds[2]);
            -- The keeper copies directly into the partition, because PostgreSQL refuses COPY into a table with
            -- row-level security. The application's role has no rights on a partition, so its policies cannot be
            -- bypassed this way.
            EXECUTE format('GRANT SELECT, INSERT ON %I TO gatehouse_service', month);
        END LOOP;
    END LOOP;
END $$;
SELECT gatehouse_ensure_partitions((now() - interval '1 month')::date, 4);
-- Rows whose time is in no partition go to the default partition.
CREATE TABLE audit_events_other PARTITION OF audit_events DEFAULT;
CREATE TABLE usage_records_other PARTITION OF usage_records DEFAULT;
CREATE TABLE dlp_events_other PARTITION OF dlp_events DEFAULT;

-- The position of the keeper in the journal of each writer. It advances in the transaction that stores the rows.
CREATE TABLE journal_positions (
    writer_id text PRIMARY KEY,
    segment bigint NOT NULL,
    position bigint NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now()
);
-- Streams that have begun and whose end was not read yet.
CREATE TABLE open_streams (
    id uuid PRIMARY KEY,
    writer_id text NOT NULL,
    entry bytea NOT NULL
);
CREATE INDEX open_streams_writer ON open_streams (writer_id);

-- Events for webhooks and other listeners, written together with the change that caused them.
CREATE TABLE outbox (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL,
    event_type text NOT NULL,
    payload jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    dispatched_at timestamptz
);
CREATE INDEX outbox_waiting ON outbox (created_at) WHERE dispatched_at IS NULL;

-- the change feed -------------------------------------------------------------------------------------------------
-- One row. Its lock is kept until the commit, so the order of revisions is the order of commits.
CREATE TABLE revision_head (only_one boolean PRIMARY KEY DEFAULT true CHECK (only_one), revision bigint NOT NULL);
INSERT INTO revision_head (revision) VALUES (0);
CREATE TABLE changes (
    revision bigint NOT NULL,
    tenant_id uuid,
    topic text NOT NULL,
    key text NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (revision, topic, key)
);
CREATE TABLE nodes (
    id uuid PRIMARY KEY,
    name text NOT NULL,
    kind text NOT NULL DEFAULT 'gateway',
    pid integer NOT NULL,
    host text NOT NULL,
    started_at timestamptz NOT NULL DEFAULT now(),
    seen_at timestamptz NOT NULL DEFAULT now(),
    revision bigint NOT NULL DEFAULT 0,
    status jsonb NOT NULL DEFAULT '{}'
);
