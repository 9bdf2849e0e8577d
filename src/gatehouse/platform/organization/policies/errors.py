"""Errors of the policies, and their form, which is that of the organization's settings."""

from typing import Final

from gatehouse.foundation.errors import BadRequest, FieldFault, Unprocessable
from gatehouse.foundation.http.envelopes import NAMED, ErrorFormat

ERROR_FORMAT: Final[ErrorFormat] = NAMED


class CallerHasNoFactor(BadRequest):
    """The policy would lock out the caller, because reverting it would require a second factor too."""

    def __init__(self) -> None:
        super().__init__(
            "This policy would require a second factor at once, and you have none that the organization accepts."
            " Enrol a factor first (POST /api/auth/mfa/totp), or set grace_period_hours above 0.",
            code="caller_has_no_factor",
        )


class IdleLongerThanSession(Unprocessable):
    def __init__(self, session_timeout_minutes: int) -> None:
        message = f"must not be longer than the session, which ends after {session_timeout_minutes} minutes"
        super().__init__(faults=[FieldFault("idle_timeout_minutes", message)])
