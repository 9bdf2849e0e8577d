"""Migrations of the platform's schema."""

from pathlib import Path
from typing import Final

SCRIPTS: Final = Path(__file__).parent
