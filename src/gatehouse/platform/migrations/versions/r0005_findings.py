"""Additional columns and tables of existing families, in one file for each family."""

from pathlib import Path

from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    cursor = op.get_bind().connection.cursor()
    here = Path(__file__).parent
    # The function `tenant_table` exists if an earlier revision ran in the same session.
    cursor.execute("DROP FUNCTION IF EXISTS pg_temp.tenant_table")
    cursor.execute((here / "r0003_tenant_table.sql").read_text())
    # The files do not depend on each other.
    for part in sorted(here.glob("r0005_*.sql")):
        cursor.execute(part.read_text())
    # Every change only adds objects, so processes of version 0004 can continue to serve.
    cursor.execute("UPDATE schema_compatibility SET serves = serves || '{0004}'::text[]")
