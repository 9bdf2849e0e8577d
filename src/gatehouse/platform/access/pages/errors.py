"""The error format that renders errors as pages."""

from typing import Final

from gatehouse.foundation.http.pages import errors
from gatehouse.foundation.http.pages.errors import BadPageRequest
from gatehouse.platform.access.pages.rendering import PAGES

__all__ = ["ERROR_FORMAT", "BadPageRequest"]

#: The error format of every path with pages.
ERROR_FORMAT: Final = errors.error_format(PAGES)
