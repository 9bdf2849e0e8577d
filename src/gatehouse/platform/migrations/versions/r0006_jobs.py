"""The table of jobs, and the function that takes over jobs of the earlier version."""

from pathlib import Path

from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    cursor = op.get_bind().connection.cursor()
    cursor.execute((Path(__file__).parent / "r0006_jobs.sql").read_text())
    # Nothing is removed, so the processes of version 0005 can go on serving.
    cursor.execute("UPDATE schema_compatibility SET serves = serves || '{0005}'::text[]")
