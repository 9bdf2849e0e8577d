"""Arguments of jobs."""

from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    cursor = op.get_bind().connection.cursor()
    cursor.execute("ALTER TABLE jobs ADD COLUMN args jsonb NOT NULL DEFAULT '{}'")
    # The column has a default, so processes of version 0001 are compatible with this schema.
    cursor.execute("UPDATE schema_compatibility SET serves = serves || '{0001}'::text[]")
