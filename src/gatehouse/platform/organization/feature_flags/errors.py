"""Errors of feature flags, and the form of these errors."""

from typing import Final

from gatehouse.foundation.errors import NotFound
from gatehouse.foundation.http.envelopes import NAMED, ErrorFormat

ERROR_FORMAT: Final[ErrorFormat] = NAMED


class FlagNotFound(NotFound):
    message = "There is no feature flag with this name."
