"""How errors of the retention policy look (reference 2, Organization settings)."""

from typing import Final

from gatehouse.foundation.http.envelopes import NAMED, ErrorForm

FORM: Final[ErrorForm] = NAMED
