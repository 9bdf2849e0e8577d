-- presets and models of files -----------------------------------------------------------------------------------------
-- Data of vendors from files of `gatehouse prices update -f`.
CREATE TABLE vendors (
    tenant_id uuid NOT NULL REFERENCES tenants,
    id text NOT NULL,
    preset jsonb,
    -- by model id
    models jsonb NOT NULL,
    PRIMARY KEY (tenant_id, id)
);

SELECT pg_temp.tenant_table('vendors');
