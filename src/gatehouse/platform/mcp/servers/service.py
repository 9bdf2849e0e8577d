"""Lists, registers, changes and removes MCP servers."""

from collections.abc import Collection, Mapping
from typing import Any, Final

import msgspec
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.engine.mcp.errors import StdioOff
from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.egress.guard import EgressGuard, UnsafeUrl
from gatehouse.foundation.errors import Conflict, FieldFault, NotFound, Unprocessable
from gatehouse.foundation.http.lists import OffsetWindow, count_query
from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.secrets.sealing import Sealer
from gatehouse.foundation.storage.conflicts import unique
from gatehouse.foundation.storage.locks import ScopedLock, require_room
from gatehouse.platform.changes.change import Change
from gatehouse.platform.live.nodes import other_machines
from gatehouse.platform.live.ports import sealing_context
from gatehouse.platform.mcp.servers.schemas import (
    Header,
    McpServerUpdate,
    NewMcpServer,
    OAuth,
    Stdio,
    UserOAuth,
)
from gatehouse.platform.mcp.servers.table import (
    McpServerRow,
    by_name,
    count_mcp_servers,
    quarantine_tools,
    remove_connections,
    tool_ids,
)
from gatehouse.platform.request.ports import Host
from gatehouse.platform.routing.providers.service import addresses_of, origin
from gatehouse.policy.mcp import is_reserved_header, mcp_client_key, mcp_environment_key, mcp_secret_key

#: Maximum number of MCP servers of an organization.
MAX_MCP_SERVERS: Final = 200

_OTHER_HOST: Final = (
    "names another host, to which the credential would be sent: set `header`, `oauth` or `user_oauth` again, or to null"
)
_ONE_TRANSPORT: Final = "set exactly one of `url` and `stdio`"
_KEPT_TRANSPORT: Final = "cannot be set or removed for this server: register another server"
_NO_ISSUER: Final = (
    "must be set, or `authorization_url` and `token_url`: otherwise the MCP server would choose who gets the client's"
    " secret and the users' codes"
)
_SEVERAL: Final = "only one of `header`, `oauth` and `user_oauth` can be set: set the others to null"
#: the fields of a server's credentials
_CREDENTIALS: Final = ("header", "oauth", "user_oauth")


class McpServerNotFound(NotFound):
    message = "MCP server not found"


class McpServerExists(Conflict):
    code = "mcp_server_exists"
    message = "Another MCP server has this name. Choose another name."


class TooManyMcpServers(Conflict):
    code = "too_many_mcp_servers"
    message = "The organization has the maximum number of MCP servers. Remove one first."


class StdioNotPermitted(Conflict):
    code = StdioOff.code
    message = StdioOff.message


class SeveralMachines(Conflict):
    code = "mcp_stdio_several_machines"
    message = "Stdio MCP servers need an installation on one machine, but several machines serve this one."


class InvalidServerField(Unprocessable):
    def __init__(self, field: str, message: str) -> None:
        super().__init__(faults=[FieldFault(field, message)])


async def list_page(session: AsyncSession, window: OffsetWindow, search: str | None) -> dict[str, Any]:
    query = by_name(search)
    total = (await session.execute(count_query(query))).scalar_one()
    rows = (await session.scalars(window.apply(query))).all()
    return window.envelope("mcp_servers", rows, total)


async def create(change: Change, host: Host, new: NewMcpServer) -> McpServerRow:
    """Register a server. Raises `InvalidServerField`, `McpServerExists`, `TooManyMcpServers`, and the errors of
    `_checked_stdio`."""
    session = change.session
    await require_room(
        session, ScopedLock.MCP_SERVERS, count_mcp_servers, limit=MAX_MCP_SERVERS, full=TooManyMcpServers
    )
    values = new.model_dump(exclude={*_CREDENTIALS, "stdio"})
    if (new.url is None) == (new.stdio is None):
        raise InvalidServerField("url", _ONE_TRANSPORT)
    if new.url is not None:
        values["url"] = await _checked_url(change, host.receivers.guard, new.url)
    now = utc_now()
    row = McpServerRow(
        id=new_id(), tenant_id=change.tenant_id, created_at=now, updated_at=now, server_info={}, faults=[], **values
    )
    row.header_name, row.sealed_header = _sealed(host.sealer, change.tenant_id, row, new.header)
    row.oauth = row.user_oauth = row.sealed_client_secret = None
    clients = {"oauth": new.oauth, "user_oauth": new.user_oauth}
    for column, value in (await _changed_clients(change, host, row, clients)).items():
        setattr(row, column, value)
    if new.stdio is not None:
        row.stdio, row.sealed_environment = await _checked_stdio(change, host, row, new.stdio)
    _require_one_credential(row)
    session.add(row)
    await _flush(session)
    shown = {"header_name": row.header_name, "oauth": row.oauth, "user_oauth": row.user_oauth, "stdio": row.stdio}
    _record(change, "mcp_server.created", row, **{**values, **shown})
    return row


async def update(change: Change, host: Host, row: McpServerRow, body: McpServerUpdate) -> McpServerRow:
    """Change the fields that differ. If none differs, there is no audit event and no new version. A new URL or command
    puts all tools into quarantine, and the server must be refreshed. A new URL, and other settings of
    `user_oauth`, remove the tokens of all users. Raises `InvalidServerField`, `McpServerExists`, and the errors of
    `_checked_stdio`."""
    sent = body.sent()
    for field, is_kept in (("url", row.stdio is None), ("stdio", row.stdio is not None)):
        if field in sent and (sent[field] is not None) != is_kept:
            raise InvalidServerField(field, _KEPT_TRANSPORT)
    stdio = sent.pop("stdio", None)
    credentials: dict[str, Any] = {name: sent.pop(name) for name in _CREDENTIALS if name in sent}
    if sent.get("url") is not None:
        sent["url"] = await _checked_url(change, host.receivers.guard, sent["url"])
    changes = row.differing(sent)
    if "url" in changes and _would_send_credential(row, changes["url"], credentials):
        raise InvalidServerField("url", _OTHER_HOST)
    changes |= await _changed_credentials(change, host, row, credentials)
    command = None if row.stdio is None else row.stdio["command"]
    if stdio is not None:
        changes["stdio"], changes["sealed_environment"] = await _checked_stdio(change, host, row, stdio)
    if not changes:
        return row
    ends_connections = "url" in changes or "user_oauth" in changes
    # The users have consented to another address or client. Their tokens are revoked by the present client.
    removed = await remove_connections(change.session, row.id) if ends_connections else 0
    row.assign(changes)
    _require_one_credential(row)
    if "url" in changes or (stdio is not None and stdio.command != command):
        row.revision, row.refreshed_at, row.server_info, row.faults = None, None, {}, []
        for tool_id in await quarantine_tools(change.session, row.id):
            change.touch("mcp_switch", tool_id)
    await _flush(change.session)
    recorded = {name: value for name, value in changes.items() if not name.startswith("sealed_")}
    if ends_connections:
        recorded["removed_connections"] = removed
        change.touch("mcp_connection", row.id, urgent=True)
    _record(change, "mcp_server.updated", row, **recorded)
    return row


def _would_send_credential(row: McpServerRow, url: str, replaced: Collection[str]) -> bool:
    """Return whether a credential that is not replaced would be sent to another host."""
    present = {"header": row.sealed_header, "oauth": row.oauth, "user_oauth": row.user_oauth}
    is_kept = any(value is not None and name not in replaced for name, value in present.items())
    return is_kept and row.url is not None and origin(row.url) != origin(url)


async def _changed_credentials(
    change: Change, host: Host, row: McpServerRow, sent: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the new values of the columns of the credentials in `sent`. Raises `InvalidServerField`."""
    changes: dict[str, Any] = {}
    if "header" in sent:
        name, sealed = _sealed(host.sealer, change.tenant_id, row, sent["header"])
        if sealed is not None or row.sealed_header is not None:
            changes |= {"header_name": name, "sealed_header": sealed}
    clients = {name: sent[name] for name in ("oauth", "user_oauth") if name in sent}
    return changes | await _changed_clients(change, host, row, clients)


async def _changed_clients(
    change: Change, host: Host, row: McpServerRow, sent: Mapping[str, OAuth | UserOAuth | None]
) -> dict[str, Any]:
    """Return the new values of the columns of the OAuth clients in `sent`. Raises `InvalidServerField`."""
    changes: dict[str, Any] = {}
    if "user_oauth" in sent and sent["user_oauth"] is not None and host.settings.public_url is None:
        raise InvalidServerField("user_oauth", "needs the setting PUBLIC_URL, which is the address of the redirect URI")
    if sum(client is not None for client in sent.values()) > 1:
        raise InvalidServerField("user_oauth", _SEVERAL)
    # Removing a client clears the sealed secret, so the removed client comes before a client with a secret.
    for name, client in sorted(sent.items(), key=lambda item: item[1] is not None):
        former = getattr(row, name)
        if client is None and former is None:
            continue
        settings, sealed = await _sealed_client(change, host, row, name, client)
        if settings != former:
            changes[name] = settings
        if sealed is not None or row.sealed_client_secret is not None:
            changes["sealed_client_secret"] = sealed
    return changes


async def delete(change: Change, row: McpServerRow) -> None:
    for tool_id in await tool_ids(change.session, row.id):
        change.touch("mcp_switch", tool_id)
    # Before the server, because their tokens are revoked by its client.
    removed = await remove_connections(change.session, row.id)
    await change.session.delete(row)
    _record(change, "mcp_server.deleted", row, removed_connections=removed)


async def _flush(session: AsyncSession) -> None:
    with unique(McpServerExists):
        await session.flush()


async def _checked_url(change: Change, guard: EgressGuard, url: str, field: str = "url") -> str:
    addresses = await addresses_of(change, guard)
    try:
        safe = str(guard.provider_url(url, addresses.egress))
    except UnsafeUrl as error:
        raise InvalidServerField(field, error.reason) from None
    if "#" in url:
        raise InvalidServerField(field, "must have no fragment")
    return safe


def _sealed(
    sealer: Sealer, tenant_id: TenantId, row: McpServerRow, header: Header | None
) -> tuple[str | None, str | None]:
    """Return the name of the header, and the sealed header. Raises `InvalidServerField`."""
    if header is None:
        return None, None
    if is_reserved_header(header.name):
        raise InvalidServerField("header.name", "is a header that the gateway or the protocol sets")
    context = sealing_context(tenant_id, mcp_secret_key(row.id))
    return header.name, sealer.seal(msgspec.json.encode({header.name: header.value}), context=context)


async def _sealed_client(
    change: Change, host: Host, row: McpServerRow, name: str, oauth: OAuth | UserOAuth | None
) -> tuple[dict[str, Any] | None, str | None]:
    """Return the settings of the OAuth client in the field `name`, and its sealed secret; None for a public client.
    Raises `InvalidServerField`."""
    if oauth is None:
        return None, None
    settings = oauth.model_dump(exclude={"client_secret"})
    if (settings.get("authorization_url") is None) != (settings["token_url"] is None) and name == "user_oauth":
        raise InvalidServerField(f"{name}.token_url", "must be set together with `authorization_url`")
    if name == "user_oauth" and settings["issuer"] is None and settings["token_url"] is None:
        raise InvalidServerField(f"{name}.issuer", _NO_ISSUER)
    for url in ("token_url", "authorization_url", "revocation_url", "issuer"):
        if settings.get(url) is not None:
            checked = await _checked_url(change, host.receivers.guard, settings[url], f"{name}.{url}")
            # An issuer is compared character by character.
            settings[url] = settings[url] if url == "issuer" else checked
    if oauth.client_secret is None:
        return settings, None
    context = sealing_context(change.tenant_id, mcp_client_key(row.id))
    return settings, host.sealer.seal(msgspec.json.encode({"client_secret": oauth.client_secret}), context=context)


async def _checked_stdio(change: Change, host: Host, row: McpServerRow, stdio: Stdio) -> tuple[dict[str, Any], str]:
    """Return the command with the names of variables, and the sealed values. Raises `StdioNotPermitted`,
    `SeveralMachines`, `InvalidServerField`."""
    if host.stdio is None:
        raise StdioNotPermitted
    if await other_machines(change.session, host.node.host):
        raise SeveralMachines
    command = host.stdio.commands.offered(stdio.command, str(change.tenant_id))
    if command is None:
        raise InvalidServerField("stdio.command", "is not a command that the operator offers to this organization")
    if unknown := sorted(stdio.environment.keys() - set(command.environment)):
        raise InvalidServerField(
            "stdio.environment", f"must not contain {unknown[0]}: the operator does not permit this variable"
        )
    context = sealing_context(change.tenant_id, mcp_environment_key(row.id))
    sealed = host.sealer.seal(msgspec.json.encode(stdio.environment), context=context)
    return {"command": stdio.command, "environment": sorted(stdio.environment)}, sealed


def _require_one_credential(row: McpServerRow) -> None:
    credentials = {"header": row.sealed_header, "oauth": row.oauth, "user_oauth": row.user_oauth}
    present = [field for field, value in credentials.items() if value is not None]
    if present and row.stdio is not None:
        raise InvalidServerField(present[0], "cannot be set beside `stdio`, because a process receives no headers")
    if len(present) > 1:
        raise InvalidServerField(present[-1], _SEVERAL)


def _record(change: Change, action: str, row: McpServerRow, **details: Any) -> None:
    """Record the change, and make workers compile the organization's policy again."""
    change.record(action, "mcp_server", row.id, **{"name": row.name, **details})
    change.touch("mcp_switch", row.id)
    change.touch("policy", change.tenant_id, urgent=True)
