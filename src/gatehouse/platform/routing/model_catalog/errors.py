"""Errors of the catalog endpoints."""

from gatehouse.foundation.errors import Conflict, FieldFault, NotFound, Unprocessable


class ModelConfigNotFound(NotFound):
    message = "Model config not found"


class ModelExists(Conflict):
    code = "model_exists"
    message = "The catalog already has an entry with this provider and model_id."


class UnknownProvider(Unprocessable):
    """`provider` is not one of the organization's."""

    def __init__(self, provider: str) -> None:
        message = f"{provider!r} is not a provider of this organization. GET /api/admin/providers lists them."
        super().__init__(faults=[FieldFault("provider", message)])


class Contradiction(Unprocessable):
    """Two fields for the same value differ."""

    def __init__(self, field: str, other: str) -> None:
        super().__init__(faults=[FieldFault(field, f"contradicts {other}")])


class FixedModelField(Unprocessable):
    def __init__(self, field: str) -> None:
        super().__init__(faults=[FieldFault(field, "cannot be changed: create another entry")])
