-- Roles are shared by all databases of a server, and other installations may start at the same time.
DO $$
DECLARE wanted text;
BEGIN
    FOREACH wanted IN ARRAY ARRAY['gatehouse_app', 'gatehouse_service'] LOOP
        BEGIN
            EXECUTE format('CREATE ROLE %I NOLOGIN NOBYPASSRLS', wanted);
        EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
        END;
        -- Whoever migrates may act as them; a superuser may anyway.
        IF NOT pg_has_role(current_user, wanted, 'MEMBER') THEN
            EXECUTE format('GRANT %I TO %I', wanted, current_user);
        END IF;
    END LOOP;
END $$;
