"""The foundation: tenants, callers, providers, the model catalog, records, the change feed."""

from pathlib import Path

from alembic import op

from gatehouse.foundation.storage import roles

revision = "0001"
down_revision = None


def upgrade() -> None:
    cursor = op.get_bind().connection.cursor()
    # Executed without parameters, because the scripts contain percent signs and colons.
    cursor.execute(roles.CREATE_ROLES_SQL.read_text())
    cursor.execute((Path(__file__).parent / "r0001_foundation.sql").read_text())
    cursor.execute((Path(__file__).parent / "r0001_rights.sql").read_text())
