"""Access and organization: second factors, single sign-on, provisioning, settings, conversations."""

from pathlib import Path
from typing import Final

from alembic import op

revision = "0003"
down_revision = "0002"

#: Parts in the order of their dependencies: a part may reference tables of earlier parts.
_PARTS: Final = ("organization", "mfa", "sign_in", "saml", "scim", "model_access", "people", "conversations")


def upgrade() -> None:
    cursor = op.get_bind().connection.cursor()
    here = Path(__file__).parent
    cursor.execute((here / "r0003_tenant_table.sql").read_text())
    for part in _PARTS:
        cursor.execute((here / f"r0003_{part}.sql").read_text())
    # Every change only adds objects, so processes of version 0002 can continue to serve.
    cursor.execute("UPDATE schema_compatibility SET serves = serves || '{0002}'::text[]")
