"""Usage by model alias and deployment, versions of API keys, approvals of tools and OAuth for MCP servers."""

from pathlib import Path

from alembic import op

revision = "0009"
down_revision = "0008"

_FILES = (
    "r0003_tenant_table",
    "r0009_aliases",
    "r0009_mcp",
    # Last, because it changes `api_keys`, which then stays locked until the end of the migration.
    "r0009_keys",
)


def upgrade() -> None:
    cursor = op.get_bind().connection.cursor()
    here = Path(__file__).parent
    # An earlier migration of the same session may have created `tenant_table`.
    cursor.execute("DROP FUNCTION IF EXISTS pg_temp.tenant_table")
    for name in _FILES:
        cursor.execute((here / f"{name}.sql").read_text())
    # Every change only adds objects and columns with defaults, so processes of version 0008 can continue to serve.
    cursor.execute("UPDATE schema_compatibility SET serves = serves || '{0008}'::text[]")
