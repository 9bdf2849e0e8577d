"""The endpoints of compliance bundles and of the reports about them (reference 3, Endpoints, Compliance bundles)."""

from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Body, Depends, Query
from fastapi.responses import HTMLResponse

from gatehouse.platform.callers import RESPONSES, Admin, AdminReader
from gatehouse.platform.governance.compliance_bundles import page, reporting, service
from gatehouse.platform.governance.compliance_bundles.errors import BundleNotFound, InvalidBundleId
from gatehouse.platform.governance.compliance_bundles.schemas import (
    MOST,
    Bundle,
    BundleStats,
    BundleUpdate,
    ExportRecord,
    ImportedBundle,
    ImportSummary,
    NewBundle,
    Report,
    Summary,
)
from gatehouse.platform.governance.compliance_bundles.table import BundleRow, all_bundles
from gatehouse.platform.organization.tenants.table import TenantRecord
from gatehouse.platform.requests import Changing, Session, loaded

router = APIRouter(tags=["Compliance"], responses=RESPONSES)

_BASE = "/api/admin/compliance-bundles"
_EXPORT = "/api/admin/compliance-bundles-export"
_FIGURES = "/api/admin/compliance"

LoadedBundle = Annotated[BundleRow, Depends(loaded(BundleRow, "bundle_id", BundleNotFound))]


async def _found(session: Session, bundle_id: str) -> BundleRow:
    """As `loaded`, but an id that is none is 400 here."""
    try:
        wanted = UUID(bundle_id)
    except ValueError:
        raise InvalidBundleId from None
    row = await session.get(BundleRow, wanted)
    if row is None:
        raise BundleNotFound
    return row


FoundBundle = Annotated[BundleRow, Depends(_found)]
Days = Annotated[int, Query(ge=1, le=365, description="Days (UTC) up to now, today included.")]
Records = Annotated[list[ImportedBundle], Body(max_length=MOST)]


@router.get(_BASE, response_model=list[Bundle])
async def list_bundles(caller: AdminReader, session: Session) -> object:
    """The organization's bundles, by name."""
    return await all_bundles(session)


@router.post(_BASE, status_code=201, response_model=Bundle)
async def create_bundle(caller: Admin, body: NewBundle, change: Changing) -> object:
    """Makes a bundle. Enabled, it is in force when the answer is there: what it names is redacted at least."""
    return await service.create(change, body)


@router.get(_BASE + "/{bundle_id}", response_model=Bundle)
async def read_bundle(caller: AdminReader, bundle: LoadedBundle) -> object:
    """One bundle."""
    return bundle


@router.put(_BASE + "/{bundle_id}", response_model=Bundle)
async def update_bundle(caller: Admin, bundle: LoadedBundle, body: BundleUpdate, change: Changing) -> object:
    """Changes what the body names. What was acknowledged is so no more once framework, version or entity types are
    others."""
    return await service.update(change, bundle, body)


@router.delete(_BASE + "/{bundle_id}", status_code=204)
async def delete_bundle(caller: Admin, bundle: LoadedBundle, change: Changing) -> None:
    """Removes a bundle. The events stay."""
    await service.delete(change, bundle)


@router.post(_BASE + "/{bundle_id}/archive", response_model=Bundle)
async def archive_bundle(caller: Admin, bundle: LoadedBundle, change: Changing) -> object:
    """Takes a bundle out of force and out of summary and report; its own stats can still be read."""
    return service.move(change, bundle, "archived")


@router.post(_BASE + "/{bundle_id}/activate", response_model=Bundle)
async def activate_bundle(caller: Admin, bundle: LoadedBundle, change: Changing) -> object:
    """Brings an archived bundle back."""
    return service.move(change, bundle, "active")


@router.post(_BASE + "/{bundle_id}/acknowledge", response_model=Bundle)
async def acknowledge_bundle(caller: Admin, bundle: LoadedBundle, change: Changing) -> object:
    """Says that you have read the bundle as it is now, and accept it."""
    return service.acknowledge(change, caller, bundle)


@router.get(_EXPORT + "/", response_model=list[ExportRecord])
async def export_bundles(caller: AdminReader, session: Session) -> object:
    """All bundles as records that another organization can import."""
    return await service.export(session)


@router.get(_EXPORT + "/{bundle_id}", response_model=ExportRecord)
async def export_bundle(caller: AdminReader, bundle: LoadedBundle) -> object:
    """One bundle as such a record."""
    return service.exported(bundle)


@router.post(_EXPORT + "/", response_model=ImportSummary)
async def import_bundles(
    caller: Admin, records: Records, change: Changing, mode: Literal["skip", "replace"] = "skip"
) -> object:
    """Imports a file, all of it or nothing. Where there is a bundle of the same name, `skip` leaves it and `replace`
    gives it the record's content. 409 for a name that stands in the file twice."""
    return await service.import_all(change, records, mode)


@router.get(_FIGURES + "/bundles/{bundle_id}/stats", response_model=BundleStats)
async def read_stats(caller: AdminReader, bundle: FoundBundle, session: Session, days: Days = 30) -> object:
    """What was found of a bundle's entity types, and what was done about it."""
    return await reporting.stats(session, bundle, days)


@router.get(_FIGURES + "/summary", response_model=Summary)
async def read_summary(caller: AdminReader, session: Session, days: Days = 30) -> object:
    """The active bundles in figures."""
    return await reporting.summary(session, days)


@router.get(
    _FIGURES + "/report",
    response_model=Report,
    responses={200: {"content": {"text/html": {"schema": {"type": "string"}}}}},
)
async def read_report(
    caller: AdminReader, session: Session, days: Days = 30, format: Literal["json", "html"] = "json"
) -> Any:
    """Summary and full stats of every active bundle; with `format=html` as a page to read and print."""
    report, bundles = await reporting.report(session, days)
    if format == "json":
        return report
    tenant = await session.get_one(TenantRecord, session.info["tenant_id"])
    return HTMLResponse(page.render(report, bundles, tenant.name), headers=page.HEADERS)
