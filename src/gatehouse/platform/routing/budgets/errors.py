"""Errors of the budgets' endpoints."""

from gatehouse.foundation.errors import Conflict, FieldFault, NotFound, Unprocessable


class BudgetNotFound(NotFound):
    message = "Budget not found"


class BudgetExists(Conflict):
    code = "budget_exists"
    message = "A budget with this scope and period already exists. Change that budget."


class TooManyBudgets(Conflict):
    code = "too_many_budgets"
    message = "The organization has the maximum number of budgets. Remove some first."


class InvalidBudgetField(Unprocessable):
    def __init__(self, field: str, fault: str) -> None:
        super().__init__(faults=[FieldFault(field, fault)])
