"""Reads the tools of a server, and compares their definitions with the stored ones."""

from typing import Any, Final
from uuid import UUID

from gatehouse.engine.mcp.credentials import UpstreamCredentials
from gatehouse.engine.mcp.definitions import Definition
from gatehouse.engine.mcp.discovery import Discovered, discover
from gatehouse.engine.mcp.upstream import UpstreamFailed
from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.errors import BadGateway, Conflict
from gatehouse.foundation.ids import new_id
from gatehouse.platform.changes.change import Change
from gatehouse.platform.mcp.servers.schemas import McpServer
from gatehouse.platform.mcp.servers.service import McpServerNotFound
from gatehouse.platform.mcp.servers.table import McpServerRow
from gatehouse.platform.mcp.tools.schemas import Refreshed
from gatehouse.platform.mcp.tools.table import McpToolRow, find_server, locked_tools
from gatehouse.platform.request.injected import SplitTransactions
from gatehouse.platform.request.ports import Host

#: Maximum number of names of tools of each kind in an audit event. Their full number is always recorded.
_MAX_RECORDED: Final = 100


class McpServerChanged(Conflict):
    code = "mcp_server_changed"
    message = "The server was changed while its tools were read. Refresh it again."


class McpRefreshFailed(BadGateway):
    code = "mcp_refresh_failed"
    message = "The tools of the server could not be read."


async def refresh(transactions: SplitTransactions, host: Host, server_id: UUID | None) -> Refreshed:
    """Read the tools of a server, and put new and changed tools into quarantine. Raises `McpServerNotFound`,
    `McpRefreshFailed`, `McpServerChanged`."""
    async with transactions.reading() as session:
        server = await find_server(session, server_id)
        if server is None:
            raise McpServerNotFound
        record = server.record
    # A server with users' accounts shows its tools to the administrator's own account.
    user_id = transactions.caller.user_id
    target = UpstreamCredentials().target(host.ports, transactions.tenant_id, record, user_id)
    try:
        discovered = await discover(target)
    except UpstreamFailed as failed:
        raise McpRefreshFailed(f"The tools of the server could not be read. {failed.sentence}") from None
    async with transactions.changing() as change:
        server = await find_server(change.session, server_id, lock=True)
        if server is None:
            raise McpServerNotFound
        if server.record != record:
            raise McpServerChanged
        return await store_discovered(change, server, discovered)


async def store_discovered(change: Change, server: McpServerRow, discovered: Discovered) -> Refreshed:
    """Store the tools of a server, and put new and changed tools into quarantine. `server` is locked. If nothing has
    changed and the change has no caller, only the time is stored, and there is no audit event."""
    names: dict[str, list[str]] = {"added": [], "changed": [], "missing": [], "returned": []}
    definitions, unchanged, now = dict(discovered.definitions), 0, utc_now()
    for row in await locked_tools(change.session, server.id):
        present = definitions.pop(row.name, None)
        if present is None and _is_undecided(row):
            # Undecided tools are deleted and not kept as missing. Otherwise a server could add new rows at each
            # refresh.
            names["missing"].append(row.name)
            await change.session.delete(row)
            change.touch("mcp_switch", row.id)
            continue
        kind, values = _compared(row, present)
        if kind is None:
            unchanged += 1
            continue
        names[kind].append(row.name)
        row.assign(values)
        change.touch("mcp_switch", row.id)
    for definition in definitions.values():
        names["added"].append(definition.name)
        row = McpToolRow(
            id=new_id(), tenant_id=change.tenant_id, server_id=server.id, name=definition.name, status="quarantined",
            definition=definition.text, hash=definition.hash, approval_required=False, created_at=now, updated_at=now,
        )  # fmt: skip
        change.session.add(row)
        change.touch("mcp_switch", row.id)
    values = {"revision": discovered.revision, "server_info": discovered.server_info, "faults": discovered.faults}
    server.refreshed_at = now
    if change.caller is None and not any(names.values()) and not server.differing(values):
        await change.session.flush()
        return Refreshed(server=McpServer.model_validate(server), unchanged=unchanged, **names)
    server.assign(values)
    recorded = {kind: tools[:_MAX_RECORDED] for kind, tools in names.items() if tools}
    counts = {kind: len(tools) for kind, tools in names.items()}
    change.record(
        "mcp_server.refreshed", "mcp_server", server.id,
        name=server.name, revision=discovered.revision, counts=counts, tools=recorded,
    )  # fmt: skip
    change.touch("policy", change.tenant_id, urgent=True)
    await change.session.flush()
    return Refreshed(server=McpServer.model_validate(server), unchanged=unchanged, **names)


def _is_undecided(row: McpToolRow) -> bool:
    """Return whether nobody has decided anything about a tool."""
    is_new = row.approved_hash is None and row.status == "quarantined"
    return is_new and row.switched_off_at is None and not row.approval_required


def _compared(row: McpToolRow, present: Definition | None) -> tuple[str | None, dict[str, Any]]:
    """Return how a tool has changed (None if it has not), and the new values of its row."""
    if present is None:
        return (None, {}) if row.missing_since is not None else ("missing", {"missing_since": utc_now()})
    if present.hash != row.hash:
        values = {"definition": present.text, "hash": present.hash, "status": "quarantined", "missing_since": None}
        return "changed", values
    return (None, {}) if row.missing_since is None else ("returned", {"missing_since": None})
