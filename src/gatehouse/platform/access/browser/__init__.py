"""Sessions in a browser: a cookie instead of an access token.

    none -> open     whoever has proved who they are, by password or at an identity provider: `open_in_browser`
    open -> over     its session ends or expires, whichever way; logout clears the cookie too

The cookie holds a secret of its own; only its digest is stored, beside the session that it stands for. It is honoured
by the pages alone (sign-in, sign-out, `/oauth/authorize`, SAML), never by the API: no other site's page can call that
with a visitor's rights.
"""

from gatehouse.platform.access.browser.cookie import clear_cookie, set_cookie
from gatehouse.platform.access.browser.service import (
    current,
    held,
    leave_former,
    open_in_browser,
    open_in_browser_for,
    used,
)

__all__ = [
    "clear_cookie", "current", "held", "leave_former", "open_in_browser", "open_in_browser_for", "set_cookie", "used",
]  # fmt: skip
