"""Errors of organizations."""

from gatehouse.foundation.errors import Conflict, FieldFault, Unprocessable


class PortalSlugTaken(Conflict):
    message = "slug: another organization has it, or has had it."


class TenantTaken(Conflict):
    message = "tenant_id: it is another organization's."


class AlreadyCancelled(Conflict):
    message = "The organization is cancelled already."


class AlreadyProvisioned(Conflict):
    message = "The organization is on the platform already."


class TenantUnknown(Unprocessable):
    def __init__(self) -> None:
        super().__init__(faults=[FieldFault("tenant_id", "is not a tenant of the platform")])
