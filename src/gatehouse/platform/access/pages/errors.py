"""The error form that renders errors as pages."""

from typing import Final

from gatehouse.foundation.http.pages import errors
from gatehouse.foundation.http.pages.errors import BadPageRequest
from gatehouse.platform.access.pages.rendering import PAGES

__all__ = ["FORM", "BadPageRequest"]

#: The error form of every path with pages.
FORM: Final = errors.form(PAGES)
