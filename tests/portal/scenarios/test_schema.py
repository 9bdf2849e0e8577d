"""The portal's schema matches the code, and no organization can see the rows of another one."""

import importlib
import pkgutil

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import create_engine, func, select, text
from tests.support.portal import Org, RunningPortal

import gatehouse.portal
from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.storage.database import sqlalchemy_url
from gatehouse.portal.keys.resealing import SEALED
from gatehouse.portal.members.table import PortalMemberRow
from gatehouse.portal.rows import OrgRow, PortalRow

for module in pkgutil.walk_packages(gatehouse.portal.__path__, "gatehouse.portal."):
    if module.name.endswith(".table"):
        importlib.import_module(module.name)

#: Tables whose rows belong to no organization: keys and the state of migrations. Sessions of routes do not read them.
NOBODYS = {"signing_keys", "authorities", "alembic_version", "schema_compatibility"}


def test_every_mapped_column_is_as_the_migrations_made_it(portal: RunningPortal) -> None:
    """Compares columns, types and nullability. The models do not describe indexes and keys."""
    engine = create_engine(sqlalchemy_url(portal.installed.owner_url))
    with engine.connect() as connection:
        connection.execute(text("SET search_path = portal"))
        connection.dialect.default_schema_name = "portal"
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        result = compare_metadata(context, PortalRow.metadata)
    engine.dispose()
    flat = [item for entry in result for item in (entry if isinstance(entry, list) else [entry])]
    reported = {"add_table", "add_column", "modify_nullable", "modify_type"}
    assert [item for item in flat if item[0] in reported] == []
    assert {"organizations", "members", "revoked_tokens"} <= set(PortalRow.metadata.tables)


def test_every_table_has_row_level_security(portal: RunningPortal) -> None:
    query = "SELECT relname FROM pg_class WHERE relnamespace = 'portal'::regnamespace AND relkind IN ('r', 'p')"
    tables = {name for (name,) in portal.sql(query)}
    secured = {name for (name,) in portal.sql(f"{query} AND relrowsecurity")}
    assert tables - secured == NOBODYS
    assert {table.name for table in OrgRow.metadata.tables.values()} <= secured


def test_row_level_security_shows_only_one_organizations_rows(portal: RunningPortal) -> None:
    own = "(org_id = (NULLIF(current_setting('gatehouse.tenant'::text, true), ''::text))::uuid)"
    policies = portal.sql(
        "SELECT tablename, qual, with_check FROM pg_policies"
        " WHERE schemaname = 'portal' AND 'gatehouse_app' = ANY (roles)"
    )
    wider = {table: set(conditions) for table, *conditions in policies if set(conditions) != {own}}
    # The organization's own row, and jobs that concern all organizations.
    assert wider == {
        "organizations": {own.replace("org_id", "id")},
        "jobs": {f"((org_id IS NULL) OR {own})"},
    }


async def test_a_session_sees_only_its_organizations_rows_even_if_a_query_has_no_condition(
    portal: RunningPortal, org: Org, other_org: Org
) -> None:
    await portal.new_member(org)
    foreign_member = await portal.new_member(other_org)
    async with portal.host.database.tenant(TenantId(org.id)) as session:
        # Test PostgreSQL alone, then the session alone.
        assert (await session.execute(text("SELECT DISTINCT org_id FROM members"))).scalars().all() == [org.id]
        assert (await session.execute(text("SELECT id FROM organizations"))).scalars().all() == [org.id]
        await session.execute(text("SELECT set_config('gatehouse.tenant', :t, true)"), {"t": str(other_org.id)})
        assert await session.scalar(select(func.count()).select_from(PortalMemberRow)) == 0
        assert await session.get(PortalMemberRow, foreign_member.id) is None


def test_every_sealed_column_can_be_sealed_again(portal: RunningPortal) -> None:
    columns = portal.sql(
        "SELECT table_name, column_name FROM information_schema.columns"
        " WHERE table_schema = 'portal' AND column_name LIKE 'sealed%'"
    )
    assert {(f"portal.{table}", column) for table, column in columns} == {(item.table, item.column) for item in SEALED}
