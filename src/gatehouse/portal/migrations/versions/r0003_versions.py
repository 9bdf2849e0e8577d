"""Versions of members and outposts, which `ETag` and `If-Match` name."""

from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    cursor = op.get_bind().connection.cursor()
    for table in ("members", "outposts"):
        cursor.execute(f"ALTER TABLE {table} ADD COLUMN updated_at timestamptz NOT NULL DEFAULT now()")
    # The columns have a default, so processes of earlier versions are compatible with this schema.
    cursor.execute("UPDATE schema_compatibility SET serves = serves || '{0002}'::text[]")
