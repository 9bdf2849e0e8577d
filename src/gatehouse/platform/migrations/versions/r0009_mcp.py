"""Approvals of tools of MCP servers."""

from pathlib import Path

from alembic import op

revision = "0009"
down_revision = "0008"

_FILES = ("r0009_mcp",)


def upgrade() -> None:
    cursor = op.get_bind().connection.cursor()
    here = Path(__file__).parent
    for name in _FILES:
        cursor.execute((here / f"{name}.sql").read_text())
    # Every change only adds columns with defaults, so processes of version 0008 can continue to serve.
    cursor.execute("UPDATE schema_compatibility SET serves = serves || '{0008}'::text[]")
