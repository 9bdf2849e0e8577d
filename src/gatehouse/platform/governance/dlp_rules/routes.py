"""Endpoints of DLP rules.

Other families own the literal paths below this prefix (`test`, `suppressions` and others). Their routers are registered
first, because `{rule_id}` would match these paths.
"""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Response

from gatehouse.foundation.http.lists import (
    TOTAL_COUNT_HEADER,
    OptionalWindow,
    optional_window,
    search_parameter,
    sort_parameter,
    windowed,
)
from gatehouse.platform.governance.dlp_fields import TheRecognisers
from gatehouse.platform.governance.dlp_rules import importing, service
from gatehouse.platform.governance.dlp_rules.schemas import (
    DlpRule,
    DlpRulesExport,
    DlpRulesImport,
    DlpRulesImported,
    DlpRuleUpdate,
    DlpRuleVersion,
    NewDlpRule,
    Sort,
)
from gatehouse.platform.governance.dlp_rules.service import DlpRuleNotFound
from gatehouse.platform.governance.dlp_rules.table import DlpRuleRow, list_query
from gatehouse.platform.request.callers import RESPONSES, Admin, AdminReader
from gatehouse.platform.request.injected import Changing, Session, loaded
from gatehouse.policy.governance import DetectorType

router = APIRouter(prefix="/api/admin/dlp-rules", tags=["DLP"], responses=RESPONSES)

LoadedRule = Annotated[DlpRuleRow, Depends(loaded(DlpRuleRow, "rule_id", DlpRuleNotFound))]
Search = Annotated[str | None, search_parameter("Part of the name or the entity type.")]
Window = Annotated[OptionalWindow, Depends(optional_window(maximum=200))]


@router.post("/", status_code=201, response_model=DlpRule)
async def create_dlp_rule(caller: Admin, body: NewDlpRule, change: Changing, recognisers: TheRecognisers) -> object:
    """Adds a rule. For an invalid pattern the response is 400 with the reason and the position, and nothing is
    stored."""
    return await service.create(change, body, recognisers)


@router.get("/", response_model=list[DlpRule])
async def list_dlp_rules(
    caller: AdminReader,
    session: Session,
    window: Window,
    response: Response,
    *,
    search: Search = None,
    enabled: Annotated[bool | None, Query(description="Only enabled, or only disabled ones.")] = None,
    detector_type: Annotated[DetectorType | None, Query(description="Only rules of this detector.")] = None,
    sort: Annotated[Sort, sort_parameter()] = "created_at",
) -> object:
    """Lists the organization's own rules, by default all of them, oldest first. `available-patterns` lists the built-in
    patterns. The header `X-Total-Count` is the number of all matching rules, regardless of `limit` and `offset`."""
    query = list_query(search=search, enabled=enabled, detector_type=detector_type, sort=sort)
    return await windowed(session, query, window, response)


@router.get("/export", response_model=DlpRulesExport)
async def export_dlp_rules(caller: AdminReader, session: Session) -> DlpRulesExport:
    """Returns all rules as a file that another organization can import."""
    return await service.export(session)


@router.post(
    "/import",
    response_model=DlpRulesImported,
    responses={409: {"description": "A name occurs twice (`skip`), or the limit of rules would be exceeded."}},
)
async def import_dlp_rules(
    caller: Admin, body: DlpRulesImport, change: Changing, recognisers: TheRecognisers
) -> DlpRulesImported:
    """Imports rules. Invalid rules are not imported, but listed in `errors`."""
    return await importing.import_rules(change, body, recognisers)


@router.get("/{rule_id}", response_model=DlpRule)
async def read_dlp_rule(caller: AdminReader, rule: LoadedRule) -> object:
    """Returns one rule."""
    return rule


@router.put("/{rule_id}", response_model=DlpRule)
async def update_dlp_rule(
    caller: Admin, rule: LoadedRule, body: DlpRuleUpdate, change: Changing, recognisers: TheRecognisers
) -> object:
    """Changes the fields in the body. The change is active when the response arrives."""
    return await service.update(change, rule, body, recognisers)


@router.delete("/{rule_id}", status_code=204)
async def delete_dlp_rule(caller: Admin, rule: LoadedRule, change: Changing) -> None:
    """Removes a rule. Its versions are kept."""
    await service.delete(change, rule)


@router.get("/{rule_id}/versions", response_model=list[DlpRuleVersion])
async def list_dlp_rule_versions(
    caller: AdminReader, rule_id: UUID, session: Session, window: Window, response: Response
) -> object:
    """Lists the versions of a rule, newest first, also after its removal. The header `X-Total-Count` has the number of
    all versions."""
    rows, total = await service.versions(session, rule_id, window)
    response.headers[TOTAL_COUNT_HEADER] = str(total)
    return rows
