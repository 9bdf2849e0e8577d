"""Errors of configuration entries."""

from gatehouse.foundation.errors import FieldFault, NotFound, Unprocessable


class EntryNotFound(NotFound):
    message = "There is no configuration entry with this key."


class NotEditable(Unprocessable):
    code = "not_editable"
    message = "This entry holds for the whole platform: it is set by its environment variable."


class BadValue(Unprocessable):
    def __init__(self, fault: str) -> None:
        super().__init__(faults=[FieldFault("value", fault)])
