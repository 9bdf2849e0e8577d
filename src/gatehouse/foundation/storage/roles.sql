-- Roles are shared by all databases of a server, and other installations may start at the same time.
DO $$
DECLARE role_name text;
BEGIN
    FOREACH role_name IN ARRAY ARRAY['gatehouse_app', 'gatehouse_service'] LOOP
        BEGIN
            EXECUTE format('CREATE ROLE %I NOLOGIN NOBYPASSRLS', role_name);
        EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
        END;
        -- The login that migrates must be able to act as both roles. A superuser can. Since PostgreSQL 16 the creator of
        -- a role needs this grant.
        IF NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
            BEGIN
                EXECUTE format('GRANT %I TO %I', role_name, current_user);
            -- Another login created the role, and only that login can grant it.
            EXCEPTION WHEN insufficient_privilege THEN NULL;
            END;
        END IF;
    END LOOP;
END $$;
