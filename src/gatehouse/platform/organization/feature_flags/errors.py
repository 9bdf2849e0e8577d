"""What can go wrong with feature flags, and how it looks (reference 2, Organization settings)."""

from typing import Final

from gatehouse.foundation.errors import NotFound
from gatehouse.foundation.http.envelopes import NAMED, ErrorForm

FORM: Final[ErrorForm] = NAMED


class FlagNotFound(NotFound):
    message = "There is no feature flag of that name."
