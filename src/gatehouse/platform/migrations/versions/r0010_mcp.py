"""Processes and accounts of users for MCP servers, the worker of a pending message, presets of files, and the cost of
API keys by month."""

from pathlib import Path

from alembic import op

revision = "0010"
down_revision = "0009"

_FILES = (
    "r0003_tenant_table",
    "r0010_stdio",
    "r0010_connections",
    "r0010_conversations",
    "r0010_vendors",
    "r0010_spend",
)


def upgrade() -> None:
    cursor = op.get_bind().connection.cursor()
    here = Path(__file__).parent
    # An earlier migration of the same session may have created `tenant_table`.
    cursor.execute("DROP FUNCTION IF EXISTS pg_temp.tenant_table")
    for name in _FILES:
        cursor.execute((here / f"{name}.sql").read_text())
    # Every change only adds objects and columns, so processes of version 0009 can continue to serve.
    cursor.execute("UPDATE schema_compatibility SET serves = serves || '{0009}'::text[]")
