"""The migrated database matches the mapped tables and separates organizations."""

import importlib
import pkgutil
from typing import Any
from uuid import uuid4

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import create_engine, func, select, text, update
from tests.support.platform import RunningPlatform, Tenant

import gatehouse.platform
from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.storage import migrate
from gatehouse.foundation.storage.database import sqlalchemy_url
from gatehouse.foundation.storage.rows import Row
from gatehouse.platform.access.users.table import UserRow
from gatehouse.platform.migrations import SCRIPTS

for module in pkgutil.walk_packages(gatehouse.platform.__path__, "gatehouse.platform."):
    if module.name.endswith(".table"):
        importlib.import_module(module.name)


def test_every_mapped_column_matches_the_migrations(platform: RunningPlatform) -> None:
    """Compare columns, types and nullability. Indexes and keys are defined only in the migrations."""
    engine = create_engine(sqlalchemy_url(platform.installed.owner_url))
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        differences = [flat for difference in compare_metadata(context, Row.metadata) for flat in _flat(difference)]
    engine.dispose()
    mapped = set(Row.metadata.tables)
    ignored = {
        "remove_table",
        "remove_index",
        "add_index",
        "remove_fk",
        "add_fk",
        "remove_constraint",
        "add_constraint",
    }
    results = [
        difference
        for difference in differences
        if difference[0] not in ignored and not (difference[0] == "remove_column" and difference[2] not in mapped)
    ]
    assert results == []


def _flat(differences: Any) -> list[tuple[Any, ...]]:
    return list(differences) if isinstance(differences, list) else [differences]


def test_a_query_without_a_tenant_sees_nothing(platform: RunningPlatform, tenant: Tenant) -> None:
    """Row-level security is the second separation of organizations: without a tenant, the application's role sees no
    rows of tables with tenants."""
    tables = [
        row[0] for row in platform.sql("SELECT relname FROM pg_class WHERE relrowsecurity AND relkind IN ('r', 'p')")
    ]
    assert {"users", "api_keys", "sessions", "providers", "model_configs", "audit_events"} <= set(tables)
    with platform._owner.transaction():
        platform._owner.execute("SET LOCAL ROLE gatehouse_app")
        # State of the whole platform, such as maintenance, belongs to no organization and is readable.
        for table in set(tables) - {"platform_state"}:
            assert platform._owner.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,), table


async def test_a_session_of_one_tenant_sees_none_of_anothers_rows(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant
) -> None:
    async with platform.host.database.tenant(TenantId(tenant.id)) as session:
        tenant_ids = set((await session.execute(text("SELECT DISTINCT tenant_id FROM users"))).scalars())
        written = await session.execute(
            text("UPDATE users SET display_name = 'x' WHERE tenant_id = :t"), {"t": other_tenant.id}
        )
    assert tenant_ids == {tenant.id}
    assert written.rowcount == 0


async def test_a_session_selects_its_tenants_rows_without_row_level_security(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant
) -> None:
    """Test the first separation by disabling the second one for another tenant."""
    async with platform.host.database.tenant(TenantId(tenant.id)) as session:
        await session.execute(text("SELECT set_config('gatehouse.tenant', :t, true)"), {"t": str(other_tenant.id)})
        assert (await session.scalars(select(UserRow))).all() == []
        assert await session.get(UserRow, other_tenant.user.id) is None
        assert await session.scalar(select(func.count()).select_from(UserRow)) == 0
        changed = await session.execute(update(UserRow).values(display_name="x"))
        assert changed.rowcount == 0
    # A cached query of one tenant is not used for another.
    async with platform.host.database.tenant(TenantId(other_tenant.id)) as session:
        assert {row.tenant_id for row in await session.scalars(select(UserRow))} == {other_tenant.id}


def test_every_table_with_a_tenant_has_row_level_security(platform: RunningPlatform) -> None:
    query = (
        "SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id'"
        " WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND NOT c.relrowsecurity"
    )
    assert platform.sql(query) == []


#: Tables with wider policies. Operators change rows of all organizations in the first five tables. `changes` has rows
#: of all organizations, and each organization can read only its own rows.
WIDER = {"tenants", "oauth_clients", "platform_state", "outpost_trust", "jobs", "changes"}


def test_row_level_security_permits_only_one_tenants_rows(platform: RunningPlatform) -> None:
    """This includes tables that are empty now."""
    own = "(tenant_id = (NULLIF(current_setting('gatehouse.tenant'::text, true), ''::text))::uuid)"
    query = "SELECT tablename, qual, with_check FROM pg_policies WHERE 'gatehouse_app' = ANY (roles)"
    assert {table for table, *conditions in platform.sql(query) if conditions != [own, own]} == WIDER


def test_the_applications_roles_own_nothing_and_cannot_bypass_row_level_security(platform: RunningPlatform) -> None:
    roles = platform.sql("SELECT oid, rolsuper, rolbypassrls FROM pg_roles WHERE rolname LIKE 'gatehouse_%'")
    assert len(roles) == 2
    for oid, superuser, bypass in roles:
        assert not superuser
        assert not bypass
        assert platform.sql("SELECT count(*) FROM pg_class WHERE relowner = %s", [oid]) == [(0,)]


def test_drift_is_refused(platform: RunningPlatform) -> None:
    url = platform.installed.owner_url
    migrate.check(url, SCRIPTS)
    name = f"drift_{uuid4().hex}"
    platform._owner.execute(f"CREATE DATABASE {name}")
    url_of_other_database = url.replace("/postgres?", f"/{name}?")
    for revision in (None, "0000", "9999"):
        if revision is not None:
            engine = create_engine(sqlalchemy_url(url_of_other_database))
            with engine.begin() as connection:
                connection.exec_driver_sql("CREATE TABLE IF NOT EXISTS alembic_version (version_num text PRIMARY KEY)")
                connection.exec_driver_sql("CREATE TABLE IF NOT EXISTS schema_compatibility (serves text[])")
                connection.exec_driver_sql("DELETE FROM alembic_version")
                connection.exec_driver_sql("INSERT INTO alembic_version VALUES (%s)", (revision,))
            engine.dispose()
        try:
            migrate.check(url_of_other_database, SCRIPTS)
        except migrate.SchemaDrift:
            continue
        raise AssertionError(f"served on {revision}")
