"""Endpoints of DLP rules.

Other families own the literal paths below this prefix (`test`, `suppressions` and others). Their routers are registered
first, because `{rule_id}` would match these paths.
"""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends

from gatehouse.platform.governance.dlp_fields import TheRecognisers
from gatehouse.platform.governance.dlp_rules import importing, service
from gatehouse.platform.governance.dlp_rules.errors import DlpRuleNotFound
from gatehouse.platform.governance.dlp_rules.schemas import (
    DlpRule,
    DlpRulesExport,
    DlpRulesImport,
    DlpRulesImported,
    DlpRuleUpdate,
    DlpRuleVersion,
    NewDlpRule,
)
from gatehouse.platform.governance.dlp_rules.table import DlpRuleRow, all_rules
from gatehouse.platform.request.callers import RESPONSES, Admin, AdminReader
from gatehouse.platform.request.injected import Changing, Session, loaded
from gatehouse.policy.governance import DetectorType

router = APIRouter(prefix="/api/admin/dlp-rules", tags=["DLP"], responses=RESPONSES)

LoadedRule = Annotated[DlpRuleRow, Depends(loaded(DlpRuleRow, "rule_id", DlpRuleNotFound))]


@router.post("/", status_code=201, response_model=DlpRule)
async def create_dlp_rule(caller: Admin, body: NewDlpRule, change: Changing, recognisers: TheRecognisers) -> object:
    """Adds a rule. For an invalid pattern the response is 400 with the reason and the position, and nothing is
    stored."""
    return await service.create(change, body, recognisers)


@router.get("/", response_model=list[DlpRule])
async def list_dlp_rules(
    caller: AdminReader, session: Session, enabled: bool | None = None, detector_type: DetectorType | None = None
) -> object:
    """Lists the organization's own rules, oldest first. `available-patterns` lists the built-in patterns."""
    return await all_rules(session, enabled=enabled, detector_type=detector_type)


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
    """Changes the fields in the body. The change is in force when the response arrives."""
    return await service.update(change, rule, body, recognisers)


@router.delete("/{rule_id}", status_code=204)
async def delete_dlp_rule(caller: Admin, rule: LoadedRule, change: Changing) -> None:
    """Removes a rule. Its versions are kept."""
    await service.delete(change, rule)


@router.get("/{rule_id}/versions", response_model=list[DlpRuleVersion])
async def list_dlp_rule_versions(caller: AdminReader, rule_id: UUID, session: Session) -> object:
    """Lists the versions of a rule, newest first, also after its removal."""
    return await service.versions(session, rule_id)
