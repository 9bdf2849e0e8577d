"""What can go wrong with OAuth clients."""

from gatehouse.foundation.errors import Forbidden, NotFound


class OAuthClientNotFound(NotFound):
    message = "OAuth client not found"


class TenantNotFound(NotFound):
    """`tenant_id` names no organization, or one that the caller has nothing to do with."""

    message = "Organization not found"


class PlatformWideIsForOperators(Forbidden):
    message = "Only an operator makes platform-wide clients: name an organization as tenant_id."


class GrantExceeded(Forbidden):
    """A machine, or a key with scopes, hands out no more than it has itself."""

    code = "grant_exceeded"
