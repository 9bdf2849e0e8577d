"""The columns of one-time tokens that are sent by mail, and of users who must confirm their address."""

from pathlib import Path

from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    cursor = op.get_bind().connection.cursor()
    cursor.execute((Path(__file__).parent / "r0007_mail.sql").read_text())
    # Everything is only added, so the processes of version 0006 can go on serving.
    cursor.execute("UPDATE schema_compatibility SET serves = serves || '{0006}'::text[]")
