"""Errors of model aliases."""

from gatehouse.foundation.errors import Conflict, FieldFault, NotFound, Unprocessable
from gatehouse.foundation.http.envelopes import ParameterFault


class ModelAliasNotFound(NotFound):
    message = "Model alias not found"


class ModelAliasExists(Conflict):
    code = "model_alias_exists"
    message = "The organization already has a model alias with this name. Choose another name."


class TooManyModelAliases(Conflict):
    code = "too_many_model_aliases"
    message = "The organization has the maximum number of model aliases. Delete some first."


class InvalidModelAliasField(Unprocessable):
    def __init__(self, field: str, fault: str) -> None:
        super().__init__(faults=[FieldFault(field, fault)])


class InvalidPeriod(Unprocessable):
    def __init__(self, parameter: str, fault: str) -> None:
        super().__init__(faults=[ParameterFault(("query", parameter), fault)])
