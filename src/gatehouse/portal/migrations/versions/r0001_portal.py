"""The first schema of the portal, with one file for the tables of each family."""

from pathlib import Path
from typing import Final

from alembic import op

from gatehouse.foundation.storage import roles

revision = "0001"
down_revision = None

#: The order matters, because a table may reference tables of earlier parts.
_PARTS: Final[tuple[str, ...]] = ("organizations", "members", "tokens", "jobs", "audit", "outposts", "notifications")


def upgrade() -> None:
    cursor = op.get_bind().connection.cursor()
    # Executed without parameters, so that percent signs and colons need no escaping.
    here = Path(__file__).parent
    cursor.execute(roles.CREATE_ROLES_SQL.read_text())
    cursor.execute((here / "r0001_foundation.sql").read_text())
    for part in _PARTS:
        cursor.execute((here / f"r0001_{part}.sql").read_text())
