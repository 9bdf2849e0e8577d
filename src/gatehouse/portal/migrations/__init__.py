"""The portal's schema, revision by revision. Its tables are in the PostgreSQL schema `portal`, so that the database can
be shared."""

from pathlib import Path
from typing import Final

SCRIPTS: Final = Path(__file__).parent
SCHEMA: Final = "portal"
