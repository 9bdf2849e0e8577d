"""Errors of legal holds."""

from gatehouse.foundation.errors import NotFound


class NoLegalHold(NotFound):
    code = "no_legal_hold"
    message = "No legal hold is set."
