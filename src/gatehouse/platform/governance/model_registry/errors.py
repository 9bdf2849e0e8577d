"""What can go wrong with the model registry. A value that is not valid is 422 in variant A, 400 in B (reference 3,
Endpoints, Model registry); a move that is not permitted is 422 in both."""

from collections.abc import Iterable
from typing import Final

from gatehouse.foundation.errors import Conflict, FieldFault, NotFound, Unprocessable
from gatehouse.foundation.http.envelopes import CODED, ErrorForm

FORM: Final[ErrorForm] = CODED.validating({"a": 422, "b": 400, "c": 422})


class RegisteredModelNotFound(NotFound):
    code = "model_not_found"
    message = "The registry has no such model."


class ModelAlreadyExists(Conflict):
    code = "model_already_exists"

    def __init__(self, provider: str | None, model_id: str) -> None:
        """`provider` is None where it does not matter whose the other one is."""
        there = repr(model_id) if provider is None else f"{model_id!r} of {provider}"
        super().__init__(f"The registry has {there} already.")


class TooManyModels(Conflict):
    code = "too_many_models"
    message = "The registry has as many models as it may have. Remove some first."


class FixedField(Unprocessable):
    def __init__(self, field: str) -> None:
        super().__init__(faults=[FieldFault(field, "cannot change: make another entry")])


class TierRequired(Unprocessable):
    def __init__(self) -> None:
        super().__init__(faults=[FieldFault("risk_tier", "is required: tier_1, tier_2, tier_3 or tier_4")])


class InvalidStatusTransition(Unprocessable):
    code = "invalid_status_transition"

    def __init__(self, old: str, new: str, permitted: Iterable[str]) -> None:
        told = ", ".join(sorted(permitted)) or "nothing: it is the end"
        super().__init__(f"validation_status: {old} cannot become {new}; what may follow is {told}.")
