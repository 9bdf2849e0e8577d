"""Applications that act for users: the scopes that a client may have for them, and revocations of single grants."""

from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.execute("ALTER TABLE oauth_clients ADD COLUMN user_scopes jsonb NOT NULL DEFAULT '[]'")
    op.execute(
        "ALTER TABLE revocations DROP CONSTRAINT revocations_kind_check,"
        " ADD CONSTRAINT revocations_kind_check CHECK (kind IN ('session', 'oauth_client', 'grant'))"
    )
    # Nothing is removed, so the processes of the versions before can go on serving.
    op.execute("UPDATE schema_compatibility SET serves = serves || '{0006}'::text[]")
