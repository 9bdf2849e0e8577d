"""Errors of configuration entries."""

from gatehouse.foundation.errors import FieldFault, NotFound, Unprocessable


class EntryNotFound(NotFound):
    message = "There is no configuration entry with this key."


class NotEditable(Unprocessable):
    code = "not_editable"
    message = "This entry applies to the whole platform. It can be set only with its environment variable."


class BadValue(Unprocessable):
    def __init__(self, fault: str) -> None:
        super().__init__(faults=[FieldFault("value", fault)])
