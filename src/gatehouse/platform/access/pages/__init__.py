"""What people see in a browser: the platform's own pages (the look and the policy are `foundation.http.pages`), and how
errors on their paths look (a page, not JSON). One script serves the passkeys."""

from gatehouse.platform.access.pages.errors import FORM
from gatehouse.platform.access.pages.rendering import page

__all__ = ["FORM", "page"]
