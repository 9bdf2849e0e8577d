"""Endpoints of access rules of MCP servers."""

from typing import Annotated, Any, Final
from uuid import UUID

from fastapi import APIRouter, Depends, Path, Query
from sqlalchemy import select

from gatehouse.administration.etags import TheVersions
from gatehouse.foundation.http.bodies import PathId
from gatehouse.foundation.http.lists import OffsetWindow, offset_window, search_parameter
from gatehouse.platform.mcp.access import matrix, service
from gatehouse.platform.mcp.access.schemas import (
    AccessMatrix,
    AccessRule,
    AccessRuleList,
    AccessRuleUpdate,
    NewAccessRule,
)
from gatehouse.platform.mcp.access.service import AccessRuleNotFound, InvalidAccessField
from gatehouse.platform.mcp.access.table import AccessRuleRow, subject_exists
from gatehouse.platform.mcp.servers.routes import LoadedMcpServer
from gatehouse.platform.request.callers import RESPONSES, AdminReader, AdminStepUp
from gatehouse.platform.request.injected import Changing, Session
from gatehouse.policy.mcp import SubjectType

router = APIRouter(prefix="/api/v1/admin/mcp/servers/{server_id}/access", tags=["MCP servers"], responses=RESPONSES)

Window = Annotated[OffsetWindow, Depends(offset_window(default=50, maximum=200))]
_CONFLICT: Final[dict[int | str, dict[str, Any]]] = {
    409: {"description": "The server has a rule for this subject and tool, or there are too many rules."}
}


async def _loaded(
    server: LoadedMcpServer, session: Session, versions: TheVersions, access_rule_id: Annotated[PathId, Path()]
) -> AccessRuleRow:
    if access_rule_id is None:
        raise AccessRuleNotFound
    query = select(AccessRuleRow).where(AccessRuleRow.id == access_rule_id, AccessRuleRow.server_id == server.id)
    row = (await session.scalars(query.with_for_update())).one_or_none()
    if row is None:
        raise AccessRuleNotFound
    versions.about(row, "access_rule_id")
    return row


#: The rule that the path names. `If-Match` concerns the rule, not the server.
LoadedAccessRule = Annotated[AccessRuleRow, Depends(_loaded)]


@router.get("", response_model=AccessRuleList)
async def list_mcp_access(caller: AdminReader, server: LoadedMcpServer, session: Session, window: Window) -> object:
    """Lists the access rules of a server, oldest first."""
    return await service.list_page(session, server.id, window)


@router.get("/matrix", response_model=AccessMatrix)
async def read_mcp_access_matrix(
    caller: AdminReader,
    server: LoadedMcpServer,
    session: Session,
    window: Window,
    *,
    search: Annotated[str | None, search_parameter("Only tools whose name contains this text.")] = None,
    subject_type: Annotated[SubjectType | None, Query(description="Only subjects of this type.")] = None,
    subjects_offset: Annotated[int, Query(ge=0, le=20_000, description="Subjects to skip.")] = 0,
    caller_type: Annotated[
        SubjectType | None, Query(description="The type of the caller whose permitted tools are marked.")
    ] = None,
    caller_id: Annotated[
        UUID | None, Query(description="The id of this caller, or the `client_id` of the OAuth client.")
    ] = None,
) -> AccessMatrix:
    """Returns the tools of a server and the subjects of its access rules as a table. With `caller_type` and
    `caller_id`, each tool says whether this caller can call it. The rules of the groups of a user, and of the owner of
    an API key, are included."""
    marked = None
    if caller_type is not None and caller_id is not None:
        if not await subject_exists(session, caller_type, caller_id):
            raise InvalidAccessField("caller_id", f"is not the id of a subject of the type {caller_type}")
        marked = caller_type, caller_id
    return await matrix.read(
        session, server, window, search=search, subject_type=subject_type, subjects_offset=subjects_offset,
        caller=marked,
    )  # fmt: skip


@router.post("", status_code=201, response_model=AccessRule, responses=_CONFLICT)
async def create_mcp_access(
    caller: AdminStepUp, server: LoadedMcpServer, body: NewAccessRule, change: Changing
) -> object:
    """Allows or denies a subject to call one tool or all tools of a server. The rule is active when the response is
    sent."""
    return await service.create(change, server, body)


@router.patch("/{access_rule_id}", response_model=AccessRule)
async def update_mcp_access(
    caller: AdminStepUp, server: LoadedMcpServer, rule: LoadedAccessRule, body: AccessRuleUpdate, change: Changing
) -> object:
    """Changes an ALLOW to a DENY or the reverse. The change is active when the response is sent."""
    return service.update(change, server, rule, body)


@router.delete("/{access_rule_id}", status_code=204)
async def delete_mcp_access(
    caller: AdminStepUp, server: LoadedMcpServer, rule: LoadedAccessRule, change: Changing
) -> None:
    """Deletes an access rule. The change is active when the response is sent."""
    await service.delete(change, server, rule)
