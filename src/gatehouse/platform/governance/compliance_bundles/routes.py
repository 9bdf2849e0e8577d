"""Endpoints of compliance bundles and their reports."""

from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Body, Depends, Query, Response
from fastapi.responses import HTMLResponse

from gatehouse.foundation.http.lists import (
    OptionalWindow,
    optional_window,
    search_parameter,
    sort_parameter,
    windowed,
)
from gatehouse.platform.governance.compliance_bundles import page, reporting, service
from gatehouse.platform.governance.compliance_bundles.schemas import (
    MAX_IMPORTED_BUNDLES,
    Bundle,
    BundleStats,
    BundleUpdate,
    ExportRecord,
    Framework,
    ImportedBundle,
    ImportSummary,
    NewBundle,
    Report,
    Sort,
    State,
    Summary,
)
from gatehouse.platform.governance.compliance_bundles.service import BundleNotFound, InvalidBundleId
from gatehouse.platform.governance.compliance_bundles.table import BundleRow, list_query
from gatehouse.platform.organization.tenants.table import TenantRecord
from gatehouse.platform.request.callers import RESPONSES, Admin, AdminReader
from gatehouse.platform.request.injected import Changing, Session, loaded

router = APIRouter(tags=["Compliance"], responses=RESPONSES)

_BASE = "/api/admin/compliance-bundles"
_EXPORT = "/api/admin/compliance-bundles-export"
_FIGURES = "/api/admin/compliance"

Window = Annotated[OptionalWindow, Depends(optional_window(maximum=200))]
Search = Annotated[str | None, search_parameter("Part of the name or the description.")]
LoadedBundle = Annotated[BundleRow, Depends(loaded(BundleRow, "bundle_id", BundleNotFound))]


async def _load_bundle(session: Session, bundle_id: str) -> BundleRow:
    """Load a bundle as `loaded` does, but raise `InvalidBundleId` (400) for a malformed id."""
    try:
        parsed_id = UUID(bundle_id)
    except ValueError:
        raise InvalidBundleId from None
    row = await session.get(BundleRow, parsed_id)
    if row is None:
        raise BundleNotFound
    return row


ReportedBundle = Annotated[BundleRow, Depends(_load_bundle)]
Days = Annotated[int, Query(ge=1, le=365, description="Number of days (UTC), including today.")]
Records = Annotated[list[ImportedBundle], Body(max_length=MAX_IMPORTED_BUNDLES)]


@router.get(_BASE, response_model=list[Bundle])
async def list_bundles(
    caller: AdminReader,
    session: Session,
    window: Window,
    response: Response,
    *,
    search: Search = None,
    regulatory_framework: Annotated[Framework | None, Query(description="Only bundles of this framework.")] = None,
    state: Annotated[State | None, Query(description="Only active, or only archived ones.")] = None,
    enabled: Annotated[bool | None, Query(description="Only enabled, or only disabled ones.")] = None,
    sort: Annotated[Sort, sort_parameter()] = "name",
) -> object:
    """Lists the organization's bundles, by default all of them, sorted by name. The header `X-Total-Count` is the
    number of all matching bundles, regardless of `limit` and `offset`."""
    query = list_query(search=search, framework=regulatory_framework, state=state, enabled=enabled, sort=sort)
    return await windowed(session, query, window, response)


@router.post(_BASE, status_code=201, response_model=Bundle)
async def create_bundle(caller: Admin, body: NewBundle, change: Changing) -> object:
    """Creates a bundle. An enabled bundle is active when the response arrives: findings of its entity types are at
    least redacted."""
    return await service.create(change, body)


@router.get(_BASE + "/{bundle_id}", response_model=Bundle)
async def read_bundle(caller: AdminReader, bundle: LoadedBundle) -> object:
    """Returns one bundle."""
    return bundle


@router.put(_BASE + "/{bundle_id}", response_model=Bundle)
async def update_bundle(caller: Admin, bundle: LoadedBundle, body: BundleUpdate, change: Changing) -> object:
    """Changes the fields in the body. A change of framework, version or entity types resets the acknowledgement."""
    return await service.update(change, bundle, body)


@router.delete(_BASE + "/{bundle_id}", status_code=204)
async def delete_bundle(caller: Admin, bundle: LoadedBundle, change: Changing) -> None:
    """Removes a bundle. Its events are kept."""
    await service.delete(change, bundle)


@router.post(_BASE + "/{bundle_id}/archive", response_model=Bundle)
async def archive_bundle(caller: Admin, bundle: LoadedBundle, change: Changing) -> object:
    """Archives a bundle. It is no longer active, and no longer in summary and report. Its own statistics remain
    readable."""
    return service.move(change, bundle, "archived")


@router.post(_BASE + "/{bundle_id}/activate", response_model=Bundle)
async def activate_bundle(caller: Admin, bundle: LoadedBundle, change: Changing) -> object:
    """Activates an archived bundle."""
    return service.move(change, bundle, "active")


@router.post(_BASE + "/{bundle_id}/acknowledge", response_model=Bundle)
async def acknowledge_bundle(caller: Admin, bundle: LoadedBundle, change: Changing) -> object:
    """Records that you have read and accepted the bundle in its current form."""
    return service.acknowledge(change, caller, bundle)


@router.get(_EXPORT + "/", response_model=list[ExportRecord])
async def export_bundles(caller: AdminReader, session: Session) -> object:
    """Returns all bundles as records that another organization can import."""
    return await service.export(session)


@router.get(_EXPORT + "/{bundle_id}", response_model=ExportRecord)
async def export_bundle(caller: AdminReader, bundle: LoadedBundle) -> object:
    """Returns one bundle as a record that another organization can import."""
    return service.to_export_record(bundle)


@router.post(_EXPORT + "/", response_model=ImportSummary)
async def import_bundles(
    caller: Admin, records: Records, change: Changing, mode: Literal["skip", "replace"] = "skip"
) -> object:
    """Imports all bundles of a file, or none. If a bundle of the same name exists, `skip` keeps it and `replace`
    overwrites its content. The response is 409 if a name occurs twice in the file."""
    return await service.import_all(change, records, mode)


@router.get(_FIGURES + "/bundles/{bundle_id}/stats", response_model=BundleStats)
async def read_stats(caller: AdminReader, bundle: ReportedBundle, session: Session, days: Days = 30) -> object:
    """Returns the findings of a bundle's entity types by action, severity and day."""
    return await reporting.stats(session, bundle, days)


@router.get(_FIGURES + "/summary", response_model=Summary)
async def read_summary(caller: AdminReader, session: Session, days: Days = 30) -> object:
    """Returns the statistics of the active bundles."""
    return await reporting.summary(session, days)


@router.get(
    _FIGURES + "/report",
    response_model=Report,
    responses={200: {"content": {"text/html": {"schema": {"type": "string"}}}}},
)
async def read_report(
    caller: AdminReader, session: Session, days: Days = 30, format: Literal["json", "html"] = "json"
) -> Any:
    """Returns the summary and the statistics of every active bundle. `format=html` returns a printable page."""
    report, bundles = await reporting.report(session, days)
    if format == "json":
        return report
    tenant = await session.get_one(TenantRecord, session.info["tenant_id"])
    return HTMLResponse(page.render(report, bundles, tenant.name), headers=page.HEADERS)
