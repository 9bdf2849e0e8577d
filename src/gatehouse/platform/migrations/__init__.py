"""The platform's schema, revision by revision."""

from pathlib import Path
from typing import Final

SCRIPTS: Final = Path(__file__).parent
