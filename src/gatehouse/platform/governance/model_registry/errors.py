"""Errors of the model registry. An invalid value is answered with 422 in variant A and 400 in B. A transition that is
not permitted is answered with 422 in both."""

from collections.abc import Iterable
from typing import Final

from gatehouse.foundation.errors import Conflict, FieldFault, NotFound, Unprocessable
from gatehouse.foundation.http.envelopes import CODED, ErrorFormat

ERROR_FORMAT: Final[ErrorFormat] = CODED.validating({"a": 422, "b": 400, "c": 422})


class RegisteredModelNotFound(NotFound):
    code = "model_not_found"
    message = "The model is not in the registry."


class ModelAlreadyExists(Conflict):
    code = "model_already_exists"

    def __init__(self, provider: str | None, model_id: str) -> None:
        """Name the model by its id, and by `provider` unless model ids are unique across providers (None)."""
        name = repr(model_id) if provider is None else f"{model_id!r} of {provider}"
        super().__init__(f"The registry already has {name}.")


class TooManyModels(Conflict):
    code = "too_many_models"
    message = "The registry has the maximum number of models. Remove some first."


class FixedField(Unprocessable):
    def __init__(self, field: str) -> None:
        super().__init__(faults=[FieldFault(field, "cannot change: make another entry")])


class TierRequired(Unprocessable):
    def __init__(self) -> None:
        super().__init__(faults=[FieldFault("risk_tier", "is required: tier_1, tier_2, tier_3 or tier_4")])


class InvalidStatusTransition(Unprocessable):
    code = "invalid_status_transition"

    def __init__(self, old: str, new: str, permitted: Iterable[str]) -> None:
        successors = ", ".join(sorted(permitted)) or "none, it is final"
        super().__init__(f"validation_status: {old} cannot become {new}; permitted: {successors}.")
