"""Errors of the exchange of the session cookie."""

from gatehouse.foundation.errors import Forbidden, Unauthenticated


class ForeignOrigin(Forbidden):
    code = "foreign_origin"
    message = "Only pages of this platform can exchange the session cookie."


class BrowserSessionMissing(Unauthenticated):
    code = "browser_session_missing"
    message = "No session is open in this browser. Sign in at /login."
