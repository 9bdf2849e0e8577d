"""Errors of settings, and the form of errors of an organization's settings."""

from typing import Final

from gatehouse.foundation.errors import Conflict
from gatehouse.foundation.http.envelopes import NAMED, ErrorForm

FORM: Final[ErrorForm] = NAMED


class SlugOfOperators(Conflict):
    code = "slug_of_operators"
    message = "slug: the organization of the platform's operators is called default."
