"""What can go wrong with providers."""

from gatehouse.foundation.errors import Conflict, FieldFault, NotFound, Unprocessable


class ProviderNotFound(NotFound):
    message = "Provider not found"


class ProviderExists(Conflict):
    code = "provider_exists"
    message = "A provider with this id exists."


def bad_field(field: str, message: str) -> Unprocessable:
    return Unprocessable(faults=[FieldFault(field, message)])
