"""Errors of feature flags, and the form of these errors."""

from typing import Final

from gatehouse.foundation.errors import NotFound
from gatehouse.foundation.http.envelopes import NAMED, ErrorForm

FORM: Final[ErrorForm] = NAMED


class FlagNotFound(NotFound):
    message = "There is no feature flag with this name."
