"""Errors of tenants."""

from gatehouse.foundation.errors import Conflict, NotFound


class TenantNotFound(NotFound):
    message = "Tenant not found"


class IdTaken(Conflict):
    code = "tenant_exists"
    message = "id: there is or was an organization with this id."


class KeyTaken(Conflict):
    code = "key_taken"
    message = "key_sha256: it is the hash of another organization's key."


class OwnerNotAdmin(Conflict):
    code = "owner_not_admin"
    message = "email: this user of the organization is not an active administrator."


class TenantOfOperators(Conflict):
    code = "tenant_of_operators"
    message = "The platform's operators belong to the tenant `default`, so it cannot be deleted."
