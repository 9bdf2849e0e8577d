"""The organization of the caller, as a dependency of routes."""

from typing import Annotated

from fastapi import Depends, Request

from gatehouse.administration.etags import READ_METHODS, TheVersions
from gatehouse.foundation.errors import NotFound
from gatehouse.platform.organization.tenants.table import TenantRecord, lock_tenant
from gatehouse.platform.request.injected import Session


class OrganizationNotFound(NotFound):
    message = "The organization was deleted."


async def _own_tenant(request: Request, session: Session, versions: TheVersions) -> TenantRecord:
    tenant_id = session.info["tenant_id"]
    reading = request.method in READ_METHODS
    tenant = await session.get(TenantRecord, tenant_id) if reading else await lock_tenant(session, tenant_id)
    if tenant is None:
        raise OrganizationNotFound
    versions.about(tenant)
    return tenant


#: The row of the caller's tenant, locked if the request can change it. All settings of an organization share one row
#: and one version. Every response has the `ETag` of this version, which is valid as `If-Match` of every change.
OwnTenant = Annotated[TenantRecord, Depends(_own_tenant)]
