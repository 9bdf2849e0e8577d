"""Errors of organizations."""

from gatehouse.foundation.errors import Conflict, FieldFault, Unprocessable


class PortalSlugTaken(Conflict):
    message = "slug: another organization uses it, or has used it."


class TenantTaken(Conflict):
    message = "tenant_id: the tenant belongs to another organization."


class AlreadyCancelled(Conflict):
    message = "The organization has already been cancelled."


class AlreadyProvisioned(Conflict):
    message = "The organization already exists on the platform."


class TenantUnknown(Unprocessable):
    def __init__(self) -> None:
        super().__init__(faults=[FieldFault("tenant_id", "is not a tenant of the platform")])
