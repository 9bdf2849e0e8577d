"""Errors of model access rules."""

from gatehouse.foundation.errors import Conflict, FieldFault, NotFound, Unprocessable


class RuleNotFound(NotFound):
    message = "The group has no rule for this model"


class RuleExists(Conflict):
    code = "rule_exists"
    message = "The group has a rule for this model already. Remove it first."


class TooManyAccessRules(Conflict):
    code = "too_many_rules"
    message = "The organization has the maximum number of model access rules. Remove some first."


class UnknownCatalogModel(Unprocessable):
    """The model is not in the catalog. A rule with a misspelled name would silently have no effect."""

    def __init__(self) -> None:
        message = (
            "is not in the catalog: write provider/model-id, that is `provider` and `model_id` of an entry of"
            " GET /api/admin/models/catalog with a slash between them"
        )
        super().__init__(faults=[FieldFault("model_id", message)])
