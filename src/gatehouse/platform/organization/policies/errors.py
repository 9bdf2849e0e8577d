"""What can go wrong with the policies, and how it looks beside the organization's settings (reference 2)."""

from typing import Final

from gatehouse.foundation.errors import FieldFault, Unprocessable
from gatehouse.foundation.http.envelopes import NAMED, ErrorForm

FORM: Final[ErrorForm] = NAMED


class IdleLongerThanSession(Unprocessable):
    def __init__(self, session_timeout_minutes: int) -> None:
        told = f"must not be longer than the session, which ends after {session_timeout_minutes} minutes"
        super().__init__(faults=[FieldFault("idle_timeout_minutes", told)])
