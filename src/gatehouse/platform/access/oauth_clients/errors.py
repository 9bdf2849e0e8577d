"""Errors of OAuth clients."""

from datetime import datetime

from gatehouse.foundation.clock import iso
from gatehouse.foundation.errors import Conflict, Forbidden, NotFound


class OAuthClientNotFound(NotFound):
    message = "OAuth client not found"


class ClientTenantNotFound(NotFound):
    """`tenant_id` names no organization, or one that the caller cannot see."""

    message = "Organization not found"


class PlatformWideIsForOperators(Forbidden):
    message = "Only an operator can create platform-wide clients: name an organization as tenant_id."


class TooManySecrets(Conflict):
    code = "too_many_secrets"
    error_format = "error_message"

    def __init__(self, maximum: int, until: datetime) -> None:
        super().__init__(
            f"{maximum} earlier secrets are still accepted, which is the maximum. Try again after {iso(until)}, or send"
            " grace_period_seconds 0, which ends them now."
        )


class GrantExceeded(Forbidden):
    """A machine, or a key with scopes, tried to grant rights that it does not have."""

    code = "grant_exceeded"
