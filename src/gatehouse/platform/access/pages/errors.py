"""Errors as pages."""

from typing import Final

from gatehouse.foundation.http.pages import errors
from gatehouse.foundation.http.pages.errors import BadPageRequest
from gatehouse.platform.access.pages.rendering import PAGES

__all__ = ["FORM", "BadPageRequest"]

#: The form of every path under which people find pages.
FORM: Final = errors.form(PAGES)
