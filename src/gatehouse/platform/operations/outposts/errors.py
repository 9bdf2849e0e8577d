"""Errors of the endpoints of outposts. Each has a `code`, which an outpost evaluates."""

from typing import Final

from gatehouse.foundation.errors import Forbidden, PayloadTooLarge
from gatehouse.foundation.http.envelopes import CODED, ErrorFormat

ERROR_FORMAT: Final[ErrorFormat] = CODED


class OutpostsDisabled(Forbidden):
    code = "outposts_disabled"
    message = "The organization's feature flag outpost_enabled is off."


class TooManyRecords(PayloadTooLarge):
    code = "too_many_records"

    def __init__(self, limit: int) -> None:
        super().__init__(f"entries: one upload can have at most {limit} records.")
