"""The table of access requests."""

from pathlib import Path

from alembic import op

revision = "0008"
down_revision = "0006"


def upgrade() -> None:
    cursor = op.get_bind().connection.cursor()
    here = Path(__file__).parent
    # An earlier migration of the same session may have created `tenant_table`.
    cursor.execute("DROP FUNCTION IF EXISTS pg_temp.tenant_table")
    cursor.execute((here / "r0003_tenant_table.sql").read_text())
    cursor.execute((here / "r0008_access_requests.sql").read_text())
    # The migration only adds a table, so processes of version 0006 can continue to serve.
    cursor.execute("UPDATE schema_compatibility SET serves = serves || '{0006}'::text[]")
