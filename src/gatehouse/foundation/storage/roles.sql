-- Roles are shared by all databases of a server, and other installations may start at the same time.
DO $$
DECLARE wanted text;
BEGIN
    FOREACH wanted IN ARRAY ARRAY['gatehouse_app', 'gatehouse_service'] LOOP
        BEGIN
            EXECUTE format('CREATE ROLE %I NOLOGIN NOBYPASSRLS', wanted);
        EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
        END;
        -- Whoever migrates may act as them; a superuser may anyway. Since PostgreSQL 16 making a role is not enough for that.
        IF NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
            BEGIN
                EXECUTE format('GRANT %I TO %I', wanted, current_user);
            -- Somebody else made it, who alone can grant it.
            EXCEPTION WHEN insufficient_privilege THEN NULL;
            END;
        END IF;
    END LOOP;
END $$;
