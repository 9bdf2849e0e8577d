"""Governance: groups, DLP rules, content filters, policy rules, approvals, compliance bundles, the model registry."""

from pathlib import Path

from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    cursor = op.get_bind().connection.cursor()
    cursor.execute((Path(__file__).parent / "r0002_governance.sql").read_text())
