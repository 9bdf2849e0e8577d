"""What can go wrong with tenants."""

from gatehouse.foundation.errors import Conflict, NotFound


class TenantNotFound(NotFound):
    message = "Tenant not found"


class IdTaken(Conflict):
    code = "tenant_exists"
    message = "id: there is or was an organization with this id."


class TenantOfOperators(Conflict):
    code = "tenant_of_operators"
    message = "The tenant `default` holds the platform's operators: it cannot be deleted."
