"""The portal's schema, revision by revision. Its tables are in a schema of that name: the database may be shared."""

from pathlib import Path
from typing import Final

SCRIPTS: Final = Path(__file__).parent
SCHEMA: Final = "portal"
