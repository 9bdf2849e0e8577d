"""Errors of settings, and the form of errors of the organization's settings."""

from typing import Final

from gatehouse.foundation.errors import Conflict
from gatehouse.foundation.http.envelopes import NAMED, ErrorFormat

ERROR_FORMAT: Final[ErrorFormat] = NAMED


class SlugOfOperators(Conflict):
    code = "slug_of_operators"
    message = "slug: the slug of the platform operators' organization is `default` and cannot be changed."
