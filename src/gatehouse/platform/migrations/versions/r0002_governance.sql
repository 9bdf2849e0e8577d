-- groups ----------------------------------------------------------------------------------------------------------
CREATE TABLE groups (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL REFERENCES tenants,
    name text NOT NULL,
    description text,
    external_group_id text,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (tenant_id, name)
);
CREATE TABLE group_members (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL REFERENCES tenants,
    group_id uuid NOT NULL REFERENCES groups ON DELETE CASCADE,
    user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    joined_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (group_id, user_id)
);
CREATE INDEX group_members_user ON group_members (user_id, group_id);
CREATE TABLE group_dlp_overrides (
    tenant_id uuid NOT NULL REFERENCES tenants,
    group_id uuid NOT NULL REFERENCES groups ON DELETE CASCADE,
    entity_type text NOT NULL,
    action text NOT NULL CHECK (action IN ('ALLOW', 'BLOCK', 'REDACT')),
    PRIMARY KEY (group_id, entity_type)
);

-- data-loss prevention --------------------------------------------------------------------------------------------
CREATE TABLE dlp_rules (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL REFERENCES tenants,
    detector_name text NOT NULL,
    detector_type text NOT NULL CHECK (detector_type IN ('regex', 'ner', 'llm')),
    entity_type text NOT NULL,
    action_tier text NOT NULL CHECK (action_tier IN ('log_only', 'redact', 'prompt', 'block')),
    enabled boolean NOT NULL DEFAULT true,
    confidence_threshold double precision NOT NULL DEFAULT 0.5 CHECK (confidence_threshold BETWEEN 0 AND 1),
    config_json jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX dlp_rules_listing ON dlp_rules (tenant_id, created_at, id);
-- The version outlives its rule, because auditors need the history of deleted rules.
CREATE TABLE dlp_rule_versions (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL REFERENCES tenants,
    rule_id uuid NOT NULL,
    changed_by text,
    change_type text NOT NULL CHECK (change_type IN ('create', 'update', 'delete')),
    old_values jsonb,
    new_values jsonb,
    changed_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX dlp_rule_versions_rule ON dlp_rule_versions (tenant_id, rule_id, changed_at DESC, id DESC);
-- A built-in pattern that an organization has disabled.
CREATE TABLE dlp_suppressions (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL REFERENCES tenants,
    pattern_id text NOT NULL,
    reason text,
    created_by text,
    created_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (tenant_id, pattern_id)
);
CREATE TABLE dlp_custom_patterns (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL REFERENCES tenants,
    name text NOT NULL,
    entity_type text NOT NULL,
    pattern text NOT NULL,
    category text NOT NULL,
    action_tier text NOT NULL CHECK (action_tier IN ('log_only', 'redact', 'prompt', 'block')),
    confidence_threshold double precision NOT NULL DEFAULT 0.5 CHECK (confidence_threshold BETWEEN 0 AND 1),
    context_words jsonb NOT NULL DEFAULT '[]',
    enabled boolean NOT NULL DEFAULT true,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (tenant_id, name)
);

-- The action and its severity, stored with the event (severity: block critical, prompt high, redact medium, log_only
-- low). `source` is the owner of the rule: the platform or the organization.
ALTER TABLE dlp_events
    ADD COLUMN action text,
    ADD COLUMN severity text,
    ADD COLUMN source text;
-- Totals for compliance bundles over any number of events. The keeper adds to them when it stores events.
CREATE TABLE dlp_counts (
    tenant_id uuid NOT NULL,
    day date NOT NULL,
    entity_type text NOT NULL,
    rule_name text NOT NULL,
    action text NOT NULL,
    severity text NOT NULL,
    events bigint NOT NULL,
    PRIMARY KEY (tenant_id, day, entity_type, rule_name, action, severity)
);
-- The number of requests by the set of entity types of their findings, for entity types of the taxonomy. The empty set
-- counts requests without findings. The share of requests with any of a bundle's entity types is a sum over few rows.
CREATE TABLE dlp_request_counts (
    tenant_id uuid NOT NULL,
    day date NOT NULL,
    entity_types text[] NOT NULL,
    requests bigint NOT NULL,
    PRIMARY KEY (tenant_id, day, entity_types)
);

-- content filters, policy rules -----------------------------------------------------------------------------------
CREATE TABLE content_filters (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL REFERENCES tenants,
    name text NOT NULL,
    description text,
    filter_type text NOT NULL CHECK (filter_type IN ('keyword_block', 'topic_block', 'custom_instruction')),
    config jsonb NOT NULL,
    scope text NOT NULL CHECK (scope IN ('org', 'group')),
    group_id uuid REFERENCES groups ON DELETE CASCADE,
    enabled boolean NOT NULL DEFAULT true,
    priority integer NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    CHECK ((scope = 'group') = (group_id IS NOT NULL))
);
CREATE INDEX content_filters_order ON content_filters (tenant_id, priority, created_at, id);
CREATE TABLE policies (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL REFERENCES tenants,
    name text NOT NULL,
    description text,
    priority integer NOT NULL DEFAULT 100,
    enabled boolean NOT NULL DEFAULT true,
    condition text NOT NULL,
    action text NOT NULL CHECK (action IN ('ALLOW', 'BLOCK', 'REQUIRE_APPROVAL', 'ROUTE', 'LOG')),
    route_to text,
    terminal boolean NOT NULL DEFAULT true,
    message text,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (tenant_id, name)
);
CREATE INDEX policies_order ON policies (tenant_id, priority, created_at, id);

-- Approvals: requests that wait for a person's decision. `node` is the worker that holds the request (nodes.id). The
-- row stays when the worker is gone.
CREATE TABLE approvals (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL REFERENCES tenants,
    request_id text NOT NULL,
    user_id uuid,
    client_id uuid,
    reason text NOT NULL,
    rule_id text,
    rule_name text,
    entity_types jsonb NOT NULL DEFAULT '[]',
    direction text NOT NULL DEFAULT 'input',
    model text,
    status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'approved', 'denied', 'expired', 'cancelled')),
    node uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    decided_at timestamptz,
    decided_by text,
    decision_reason text
);
CREATE INDEX approvals_listing ON approvals (tenant_id, created_at DESC, id DESC);
CREATE INDEX approvals_by_status ON approvals (tenant_id, status, created_at DESC, id DESC);
CREATE INDEX approvals_pending ON approvals (expires_at) WHERE status = 'pending';

-- compliance bundles, model registry ------------------------------------------------------------------------------
CREATE TABLE compliance_bundles (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL REFERENCES tenants,
    name text NOT NULL,
    description text,
    regulatory_framework text NOT NULL,
    version text NOT NULL,
    enabled boolean NOT NULL DEFAULT true,
    state text NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'archived')),
    seed_rule_mappings jsonb NOT NULL DEFAULT '[]',
    acknowledged_by text,
    acknowledged_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (tenant_id, name)
);
CREATE TABLE registered_models (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL REFERENCES tenants,
    model_id text NOT NULL,
    provider text NOT NULL,
    display_name text,
    risk_tier text NOT NULL DEFAULT 'unclassified'
        CHECK (risk_tier IN ('tier_1', 'tier_2', 'tier_3', 'tier_4', 'unclassified')),
    validation_status text NOT NULL DEFAULT 'draft' CHECK (validation_status IN
        ('draft', 'pending_validation', 'in_validation', 'needs_remediation', 'validated', 'deprecated', 'unclassified')),
    owner text,
    description text,
    -- json instead of jsonb, because a list of tags consists of this object's keys, in their original order.
    tags json NOT NULL DEFAULT '{}',
    first_seen_at timestamptz,
    last_seen_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (tenant_id, provider, model_id)
);
CREATE INDEX registered_models_listing ON registered_models (tenant_id, created_at DESC, id);

-- rights ----------------------------------------------------------------------------------------------------------
GRANT SELECT, INSERT, UPDATE, DELETE ON
    groups, group_members, group_dlp_overrides, dlp_rules, dlp_suppressions, dlp_custom_patterns, content_filters,
    policies, compliance_bundles, registered_models
    TO gatehouse_app;
-- History is only appended and never changed.
GRANT SELECT, INSERT ON dlp_rule_versions TO gatehouse_app;
GRANT SELECT, UPDATE (status, decided_at, decided_by, decision_reason) ON approvals TO gatehouse_app;
GRANT SELECT ON dlp_counts, dlp_request_counts TO gatehouse_app;

GRANT SELECT ON
    groups, group_members, group_dlp_overrides, dlp_rules, dlp_rule_versions, dlp_suppressions, dlp_custom_patterns,
    content_filters, policies, approvals, compliance_bundles, registered_models, dlp_counts, dlp_request_counts
    TO gatehouse_service;
GRANT INSERT, UPDATE ON approvals, dlp_counts, dlp_request_counts TO gatehouse_service;

DO $$
DECLARE
    name text;
    condition constant text := $q$tenant_id = NULLIF(current_setting('gatehouse.tenant', true), '')::uuid$q$;
BEGIN
    FOREACH name IN ARRAY ARRAY[
        'groups', 'group_members', 'group_dlp_overrides', 'dlp_rules', 'dlp_rule_versions', 'dlp_suppressions',
        'dlp_custom_patterns', 'content_filters', 'policies', 'approvals', 'compliance_bundles', 'registered_models',
        'dlp_counts', 'dlp_request_counts'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY tenant ON %I TO gatehouse_app USING (%s) WITH CHECK (%s)',
                       name, condition, condition);
        EXECUTE format('CREATE POLICY service ON %I TO gatehouse_service USING (true) WITH CHECK (true)', name);
    END LOOP;
END $$;

-- Every change only adds objects, so processes of the previous version of the schema can continue to serve.
UPDATE schema_compatibility SET serves = array_append(serves, '0001');
