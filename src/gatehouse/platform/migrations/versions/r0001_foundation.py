"""Everything that the first gateway needs: tenants, callers, providers, the catalog, records, the change feed."""

from pathlib import Path

from alembic import op
from procrastinate.schema import SchemaManager

from gatehouse.foundation.storage import roles

revision = "0001"
down_revision = None


def upgrade() -> None:
    cursor = op.get_bind().connection.cursor()
    # Plain scripts without parameters: their percent signs and colons are PostgreSQL's own.
    cursor.execute(roles.CREATE_ROLES_SQL.read_text())
    cursor.execute((Path(__file__).parent / "r0001_foundation.sql").read_text())
    cursor.execute(SchemaManager.get_schema())
    cursor.execute((Path(__file__).parent / "r0001_rights.sql").read_text())
