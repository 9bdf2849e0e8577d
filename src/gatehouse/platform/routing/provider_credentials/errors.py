"""Errors of the credentials of providers."""

from gatehouse.foundation.errors import Conflict, NotFound


class CredentialNotFound(NotFound):
    message = "Credential not found"


class CredentialExists(Conflict):
    code = "credential_exists"
    message = "The provider already has a credential with this label. Rotate it, or use another label."


class CredentialsNotUsed(Conflict):
    code = "credentials_not_used"
    message = "This provider needs no secret, so it cannot have credentials."


class LastCredential(Conflict):
    code = "last_credential"
    message = (
        "The provider has no other credential in use. Add one first. To stop all calls, disable the provider, or remove"
        " all of its credentials with DELETE /api/admin/providers/{provider_id}/credentials."
    )
