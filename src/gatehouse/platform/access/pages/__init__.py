"""The platform's browser pages, and the error form of their paths (a page, not JSON). Layout and content security
policy are in `foundation.http.pages`. One script handles passkeys."""

from gatehouse.platform.access.pages.errors import ERROR_FORMAT
from gatehouse.platform.access.pages.rendering import page

__all__ = ["ERROR_FORMAT", "page"]
