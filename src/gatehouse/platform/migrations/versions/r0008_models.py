"""Model aliases, credentials of providers, batches, MCP servers; spend by user and API key; indexes for lists."""

from pathlib import Path

from alembic import op

revision = "0008"
down_revision = "0007"

_FILES = (
    "r0003_tenant_table",
    "r0008_requests",
    "r0008_model_aliases",
    "r0008_credentials",
    "r0008_prices",
    "r0008_batches",
    "r0008_mcp",
    # Last, because it rewrites `api_keys`, and all locks last until the end of the transaction. The indexes that it
    # builds also lock `usage_records` (records wait in the journal) and `users` (sign-ins wait).
    "r0008_lists",
)


def upgrade() -> None:
    cursor = op.get_bind().connection.cursor()
    here = Path(__file__).parent
    # An earlier migration of the same session may have created `tenant_table`.
    cursor.execute("DROP FUNCTION IF EXISTS pg_temp.tenant_table")
    for name in _FILES:
        cursor.execute((here / f"{name}.sql").read_text())
    # Every change only adds objects, so processes of version 0007 can continue to serve.
    cursor.execute("UPDATE schema_compatibility SET serves = serves || '{0007}'::text[]")
