"""Applications that act for people, one-time tokens that are sent by mail, access requests, and hourly counts of
requests."""

from pathlib import Path

from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    cursor = op.get_bind().connection.cursor()
    here = Path(__file__).parent
    # An earlier migration of the same session may have created `tenant_table`.
    cursor.execute("DROP FUNCTION IF EXISTS pg_temp.tenant_table")
    cursor.execute((here / "r0003_tenant_table.sql").read_text())
    for part in ("applications", "mail", "access_requests", "figures"):
        cursor.execute((here / f"r0007_{part}.sql").read_text())
    # Every change only adds objects, so processes of version 0006 can continue to serve.
    cursor.execute("UPDATE schema_compatibility SET serves = serves || '{0006}'::text[]")
