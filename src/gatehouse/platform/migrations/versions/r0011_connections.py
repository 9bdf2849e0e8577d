"""Tokens of removed connections to MCP servers, until they are revoked."""

from pathlib import Path

from alembic import op

revision = "0011"
down_revision = "0010"

_FILES = ("r0003_tenant_table", "r0011_revocations")


def upgrade() -> None:
    cursor = op.get_bind().connection.cursor()
    here = Path(__file__).parent
    # An earlier migration of the same session may have created `tenant_table`.
    cursor.execute("DROP FUNCTION IF EXISTS pg_temp.tenant_table")
    for name in _FILES:
        cursor.execute((here / f"{name}.sql").read_text())
    # The change only adds objects, so processes of version 0010 can continue to serve.
    cursor.execute("UPDATE schema_compatibility SET serves = serves || '{0010}'::text[]")
