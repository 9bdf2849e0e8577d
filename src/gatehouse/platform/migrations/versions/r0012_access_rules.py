"""The version of access rules of MCP servers, and the mark of connections that another one has replaced."""

from pathlib import Path

from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    cursor = op.get_bind().connection.cursor()
    cursor.execute((Path(__file__).parent / "r0012_mcp.sql").read_text())
    # The change only adds columns with defaults, so processes of version 0011 can continue to serve.
    cursor.execute("UPDATE schema_compatibility SET serves = serves || '{0011}'::text[]")
