"""The table of a server's tools and the subjects of its access rules, with the tools that one caller can call."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

import msgspec
from sqlalchemy import or_, select, text, tuple_
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.http.lists import OffsetWindow, containing, count_query
from gatehouse.foundation.identity import Caller, CallerKind
from gatehouse.platform.mcp.access.schemas import AccessMatrix, AccessRule, AccessSubject, MatrixTool, Obstacle
from gatehouse.platform.mcp.access.table import AccessRuleRow
from gatehouse.platform.mcp.servers.table import McpServerRow
from gatehouse.platform.mcp.tools.table import McpToolRow, by_name
from gatehouse.policy.mcp import McpAccessRecord, Subject, SubjectType, compile_mcp_servers, subjects_of

#: Maximum number of subjects of an answer.
MAX_SUBJECTS: Final = 20

#: The subjects of a server's rules with their names. A subject that was removed has none.
_SUBJECTS: Final = """
SELECT s.subject_type, s.subject_id,
  COALESCE(g.name, u.display_name, u.email, u.username, k.description, c.name) AS name
FROM (SELECT DISTINCT subject_type, subject_id FROM mcp_access_rules WHERE server_id = :server) s
LEFT JOIN groups g ON s.subject_type = 'group' AND g.id = s.subject_id
LEFT JOIN users u ON s.subject_type = 'user' AND u.id = s.subject_id
LEFT JOIN api_keys k ON s.subject_type = 'api_key' AND k.id = s.subject_id
LEFT JOIN oauth_clients c ON s.subject_type = 'oauth_client' AND c.client_id = s.subject_id
WHERE :type = '' OR s.subject_type = :type
"""
_COUNT_SUBJECTS: Final = text(f"SELECT count(*) FROM ({_SUBJECTS}) AS subjects")  # noqa: S608
_PAGE_OF_SUBJECTS: Final = text(
    f"SELECT * FROM ({_SUBJECTS}) AS subjects"  # noqa: S608
    " ORDER BY array_position(ARRAY['group', 'user', 'api_key', 'oauth_client'], subject_type), lower(name), subject_id"
    " LIMIT :limit OFFSET :offset"
)
#: For each type of caller except groups: whether its calls are accepted.
_ENABLED: Final = {
    "user": text("SELECT is_active FROM users WHERE id = :id"),
    "api_key": text(
        "SELECT k.is_enabled AND u.is_active AND (k.expires_at IS NULL OR k.expires_at > now())"
        " FROM api_keys k JOIN users u ON u.id = k.user_id WHERE k.id = :id"
    ),
    "oauth_client": text("SELECT enabled FROM oauth_clients WHERE client_id = :id"),
}
_OWNER: Final = text("SELECT user_id FROM api_keys WHERE id = :id")
_GROUPS: Final = text("SELECT group_id FROM group_members WHERE user_id = :id")


async def read(
    session: AsyncSession,
    server: McpServerRow,
    window: OffsetWindow,
    *,
    search: str | None,
    subject_type: SubjectType | None,
    subjects_offset: int,
    caller: Subject | None,
) -> AccessMatrix:
    """Return a page of the server's tools, a page of the subjects of its rules, and the rules of these subjects for
    these tools and for all tools. `caller` is the subject whose permitted tools are marked."""
    query = containing(by_name(server.id, None), search, McpToolRow.name)
    total = (await session.execute(count_query(query))).scalar_one()
    tools = (await session.scalars(window.apply(query))).all()
    names = [tool.name for tool in tools]
    filters = {"server": server.id, "type": subject_type or ""}
    total_subjects = (await session.execute(_COUNT_SUBJECTS, filters)).scalar_one()
    page = {**filters, "limit": MAX_SUBJECTS, "offset": subjects_offset}
    subjects = [
        AccessSubject.model_validate(row) for row in (await session.execute(_PAGE_OF_SUBJECTS, page)).mappings()
    ]
    shown: list[Subject] = [(subject.subject_type, subject.subject_id) for subject in subjects]
    obstacles = {} if caller is None else await _obstacles(session, server, tools, caller)
    return AccessMatrix(
        subjects=subjects,
        total_subjects=total_subjects,
        rules=[AccessRule.model_validate(rule) for rule in await _rules(session, server.id, shown, names)],
        tools=[
            MatrixTool(
                name=tool.name,
                status=tool.status,
                missing_since=tool.missing_since,
                switched_off_at=tool.switched_off_at,
                can_call=None if caller is None else obstacles[tool.name] is None,
                obstacle=obstacles.get(tool.name),
            )
            for tool in tools
        ],
        total=total,
        limit=window.limit,
        offset=window.offset,
    )


async def _rules(
    session: AsyncSession, server_id: UUID, subjects: Sequence[Subject], tools: Sequence[str]
) -> Sequence[AccessRuleRow]:
    """Return the rules of these subjects for these tools and for all tools."""
    query = select(AccessRuleRow).where(
        AccessRuleRow.server_id == server_id,
        tuple_(AccessRuleRow.subject_type, AccessRuleRow.subject_id).in_(list(subjects)),
        or_(AccessRuleRow.tool.is_(None), AccessRuleRow.tool.in_(list(tools))),
    )
    return (await session.scalars(query.order_by(AccessRuleRow.created_at, AccessRuleRow.id))).all()


async def _obstacles(
    session: AsyncSession, server: McpServerRow, tools: Sequence[McpToolRow], subject: Subject
) -> dict[str, Obstacle | None]:
    """Return for each tool why the caller cannot call it, or None if the caller can."""
    caller = await _caller(session, server, subject)
    rules = await _rules(session, server.id, list(subjects_of(caller)), [tool.name for tool in tools])
    records = tuple(McpAccessRecord(**{name: getattr(rule, name) for name in _RULE_FIELDS}) for rule in rules)
    compiled = compile_mcp_servers([msgspec.structs.replace(server.record, rules=records)])[server.name]
    of_all = await _obstacle_of_all(session, server, subject)
    obstacles: dict[str, Obstacle | None] = {}
    for tool in tools:
        obstacle = of_all or _obstacle_of(tool)
        if obstacle is None and not compiled.permits(caller, tool.name):
            is_denied = any(rule.access_type == "DENY" and rule.tool in {None, tool.name} for rule in rules)
            obstacle = "denied" if is_denied else "not_allowed"
        obstacles[tool.name] = obstacle
    return obstacles


def _obstacle_of(tool: McpToolRow) -> Obstacle | None:
    """Return why nobody can call the tool; None if it can be called."""
    if tool.status != "approved" or tool.missing_since is not None:
        return "not_approved"
    return "switched_off" if tool.switched_off_at is not None else None


async def _obstacle_of_all(session: AsyncSession, server: McpServerRow, subject: Subject) -> Obstacle | None:
    """Return why the caller can call no tool of the server, apart from rules; None if there is no such obstacle."""
    kind, subject_id = subject
    if kind != "group" and not await session.scalar(_ENABLED[kind], {"id": subject_id}):
        return "caller_disabled"
    if not server.enabled or server.revision is None or server.switched_off_at is not None:
        return "server_off"
    return "needs_user" if kind == "oauth_client" and server.user_oauth is not None else None


_RULE_FIELDS: Final = McpAccessRecord.__struct_fields__


async def _caller(session: AsyncSession, server: McpServerRow, subject: Subject) -> Caller:
    """Return the subject as a caller. For an API key, the caller is its owner with this key. For a group, it is a user
    who is a member of this group only."""
    kind, subject_id = subject
    if kind == "group":
        return Caller(kind=CallerKind.USER, tenant_id=server.tenant_id, groups=(subject_id,))
    if kind == "oauth_client":
        return Caller(kind=CallerKind.OAUTH_CLIENT, tenant_id=server.tenant_id, client_id=subject_id)
    user_id: UUID | None = subject_id
    if kind == "api_key":
        user_id = (await session.execute(_OWNER, {"id": subject_id})).scalar_one_or_none()
    groups = tuple((await session.execute(_GROUPS, {"id": user_id})).scalars())
    return Caller(
        kind=CallerKind.USER if kind == "user" else CallerKind.API_KEY,
        tenant_id=server.tenant_id,
        user_id=user_id,
        api_key_id=subject_id if kind == "api_key" else None,
        groups=groups,
    )
