"""Browser sessions: a cookie instead of an access token.

    none -> open     a user authenticated by password or at an identity provider: `open_in_browser`
    open -> over     the session ends or expires; logout also clears the cookie

The cookie contains a random secret. The database stores the secret's digest with the id of the session. Only the pages
accept the cookie (sign-in, sign-out, `/oauth/authorize`, SAML). The API never does, so that a page of another site
cannot call it with a visitor's rights. The console's pages exchange it for an access token that is valid for minutes
(`routes`). Only a script of the platform's own origin can do this exchange.
"""

from gatehouse.platform.access.browser.cookie import clear_cookie, set_cookie
from gatehouse.platform.access.browser.service import (
    add_browser_session,
    cookie_digest,
    current_session,
    end_former_session,
    extend_session,
    open_in_browser,
)

__all__ = [
    "add_browser_session", "clear_cookie", "cookie_digest", "current_session", "end_former_session", "extend_session",
    "open_in_browser", "set_cookie",
]  # fmt: skip
