"""Errors of the provider endpoints."""

from gatehouse.foundation.errors import Conflict, FieldFault, NotFound, Unprocessable


class ProviderNotFound(NotFound):
    message = "Provider not found"


class NoSuchModel(NotFound):
    message = "The provider has no active model of this name that no kill switch stops"


class ProviderExists(Conflict):
    code = "provider_exists"
    message = "A provider with this id exists."


class CredentialsNotRemovable(Conflict):
    code = "credentials_not_removable"
    message = (
        "A provider of this kind works without credentials. Disable it, or remove an endpoint of your own with"
        " DELETE /api/admin/providers/byoe/{id}."
    )


def bad_field(field: str, message: str) -> Unprocessable:
    """Return the 422 for one field."""
    return Unprocessable(faults=[FieldFault(field, message)])
