"""Errors of feature flags, and their form."""

from typing import Final

from gatehouse.foundation.errors import NotFound
from gatehouse.foundation.http.envelopes import NAMED, ErrorForm

FORM: Final[ErrorForm] = NAMED


class FlagNotFound(NotFound):
    message = "There is no feature flag of this name."
