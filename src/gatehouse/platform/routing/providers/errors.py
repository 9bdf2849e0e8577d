"""Errors of the provider endpoints."""

from gatehouse.foundation.errors import Conflict, FieldFault, NotFound, PreconditionFailed, Unprocessable


class ProviderNotFound(NotFound):
    message = "Provider not found"


class NoSuchModel(NotFound):
    message = "The provider has no active model of this name that no kill switch stops"


class ProviderExists(Conflict):
    code = "provider_exists"
    message = "A provider with this id exists."


class ProviderNotNew(PreconditionFailed):
    """A request with `If-None-Match: *` would change a provider that already exists."""

    code = ProviderExists.code
    message = "A provider with this id exists. Nothing was changed. Use another id, or replace its credentials."


class ProviderIdAmbiguous(Conflict):
    code = "provider_id_ambiguous"

    def __init__(self, provider_id: str, other: str) -> None:
        super().__init__(
            f"The id {provider_id!r} differs from {other!r} only in case or in `-` and `_`. An outpost would read the"
            " credentials of both from the same environment variables. Use another id."
        )


class TooManyProviders(Conflict):
    code = "too_many_providers"
    message = "The organization has the maximum number of providers. Remove some first."


class TooManyCredentials(Conflict):
    code = "too_many_credentials"
    message = "The provider has the maximum number of credentials. Remove one first."


class CredentialsNotRemovable(Conflict):
    code = "credentials_not_removable"
    message = (
        "A provider of this kind works without credentials. Disable it, or remove an endpoint of your own with"
        " DELETE /api/admin/providers/byoe/{id}."
    )


def bad_field(field: str, message: str) -> Unprocessable:
    """Return the 422 for one field."""
    return Unprocessable(faults=[FieldFault(field, message)])
