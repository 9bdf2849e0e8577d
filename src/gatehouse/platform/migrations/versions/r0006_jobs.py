"""The table of jobs, the function that takes over jobs of the earlier version, and an index for failed requests."""

from pathlib import Path

from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    cursor = op.get_bind().connection.cursor()
    for part in ("jobs", "records"):
        cursor.execute((Path(__file__).parent / f"r0006_{part}.sql").read_text())
    # Nothing is removed, so processes of version 0005 can continue to serve.
    cursor.execute("UPDATE schema_compatibility SET serves = serves || '{0005}'::text[]")
