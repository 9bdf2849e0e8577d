"""What people see in a browser: how pages look, and how errors on their paths look (a page, not JSON).

Rendered here, with Jinja2 and without a script: what a page does, a form does. One script serves the passkeys. A policy
lets nothing in that does not come from this package (`rendering.HEADERS`).
"""

from gatehouse.platform.access.pages.errors import FORM
from gatehouse.platform.access.pages.rendering import page

__all__ = ["FORM", "page"]
