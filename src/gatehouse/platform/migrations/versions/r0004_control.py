"""Spending, routing and notifications: budgets, cost routing, alerts, webhooks, SIEM forwarding, retention."""

from pathlib import Path
from typing import Final

from alembic import op

revision = "0004"
down_revision = "0003"

#: Parts in the order of their dependencies: a part may reference tables of earlier parts.
_PARTS: Final[tuple[str, ...]] = (
    "people", "saml", "scim", "budgets", "registry", "figures", "lists", "cost_routing", "alerts", "webhooks",
    "archive", "siem", "outposts", "cache", "sign_in", "portal_notices",
)  # fmt: skip


def upgrade() -> None:
    cursor = op.get_bind().connection.cursor()
    here = Path(__file__).parent
    # The function exists if revision 0003 ran in the same session.
    cursor.execute("DROP FUNCTION IF EXISTS pg_temp.tenant_table")
    cursor.execute((here / "r0003_tenant_table.sql").read_text())
    for part in _PARTS:
        cursor.execute((here / f"r0004_{part}.sql").read_text())
    # Every change only adds objects, so processes of version 0003 can continue to serve.
    cursor.execute("UPDATE schema_compatibility SET serves = serves || '{0003}'::text[]")
