"""The revisions of the portal's schema. Its tables are in the PostgreSQL schema `portal`, so that the database can be
shared with the platform."""

from pathlib import Path
from typing import Final

SCRIPTS: Final = Path(__file__).parent
SCHEMA: Final = "portal"
