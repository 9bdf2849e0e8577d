"""The caller's own organization, as a route of this chapter gets it."""

from typing import Annotated

from fastapi import Depends, Request

from gatehouse.platform.organization.tenants.errors import OrganizationNotFound
from gatehouse.platform.organization.tenants.table import TenantRecord, living
from gatehouse.platform.requests import Session
from gatehouse.platform.versions import READING, TheVersions


async def _own(request: Request, session: Session, versions: TheVersions) -> TenantRecord:
    tenant_id = session.info["tenant_id"]
    reading = request.method in READING
    tenant = await session.get(TenantRecord, tenant_id) if reading else await living(session, tenant_id)
    if tenant is None:
        raise OrganizationNotFound
    versions.about(tenant)
    return tenant


#: Locked for change where the request can change it. All settings of an organization are one row, with one version:
#: its `ETag` is every answer's, and good as `If-Match` of every change.
OwnTenant = Annotated[TenantRecord, Depends(_own)]
