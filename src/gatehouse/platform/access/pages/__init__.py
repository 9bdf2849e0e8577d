"""The platform's browser pages, and the format of errors on their paths (HTML, not JSON). Layout and content security
policy are in `foundation.http.pages`. One script handles passkeys."""

from gatehouse.platform.access.pages.rendering import ERROR_FORMAT, page

__all__ = ["ERROR_FORMAT", "page"]
