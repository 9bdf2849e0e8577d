"""Lists the tools that a caller may call: those of one server, or of all servers under names with the server's name.

The name of a tool at `/mcp` is `server__tool`. The name of a server has no underscore, so the first `__` ends the name
of the server, and no two tools have the same name at `/mcp`.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from gatehouse.engine.mcp.definitions import MAX_NAME_CHARACTERS, for_agents, renamed
from gatehouse.engine.mcp.errors import InvalidParams
from gatehouse.engine.ports import Switches
from gatehouse.foundation.identity import Caller
from gatehouse.policy.mcp import McpServer, McpToolRecord

#: maximum number of tools of a page
MAX_PAGE_TOOLS: Final = 1_000
#: A page ends with the definition that exceeds this number of bytes.
MAX_PAGE_BYTES: Final = 4 * 1024 * 1024

_SEPARATOR: Final = "__"
_MAX_CURSOR_CHARACTERS: Final = 512


def full_name(server: str, tool: str) -> str:
    """Return the name of a server's tool at `/mcp`."""
    return server + _SEPARATOR + tool


def split_name(name: str) -> tuple[str, str]:
    """Return the names of the server and of the tool. They are empty if `name` has no separator."""
    server, _, tool = name.partition(_SEPARATOR)
    return (server, tool) if tool else ("", "")


def page(
    servers: Iterable[McpServer],
    caller: Caller,
    switches: Switches,
    cursor: Any,
    *,
    has_full_names: bool,
    has_approvals: bool,
) -> dict[str, Any]:
    """Return a page of the tools that `tools/call` would call now, by server and name. `servers` are in the order of
    their names. `cursor` is that of the previous page, or None. `has_approvals`: persons can approve calls. Raises
    `InvalidParams`."""
    definitions: list[bytes] = []
    size = 0
    last: tuple[str, str] | None = None
    after = _position(cursor)
    present = (server for server in servers if server.record.name >= after[0])
    for server, tool in callable_tools(present, caller, switches, has_approvals=has_approvals):
        server_name = server.record.name
        if (server_name, tool.name) <= after or (has_full_names and not is_offered(server_name, tool.name)):
            continue
        if len(definitions) == MAX_PAGE_TOOLS or size > MAX_PAGE_BYTES:
            assert last is not None
            return {"tools": _joined(definitions), "nextCursor": _cursor(*last)}
        definition = for_agents(tool.definition)
        if has_full_names:
            definition = renamed(definition, tool.name, full_name(server_name, tool.name))
        encoded = definition.encode()
        definitions.append(encoded)
        size += len(encoded)
        last = server_name, tool.name
    return {"tools": _joined(definitions)}


def callable_tools(
    servers: Iterable[McpServer], caller: Caller, switches: Switches, *, has_approvals: bool
) -> Iterator[tuple[McpServer, McpToolRecord]]:
    """Yield the tools whose calls are not refused whatever their arguments are. A server with accounts of users serves
    no caller without a user, and a tool that needs an approval cannot be called while approvals are switched off."""
    for server in servers:
        record = server.record
        if switches.mcp_stopped(record.id) or (record.user_oauth is not None and caller.user_id is None):
            continue
        for tool in server.permitted(caller):
            if not switches.mcp_stopped(tool.id) and (has_approvals or not tool.approval_required):
                yield server, tool


def is_offered(server: str, tool: str) -> bool:
    """Return whether a tool is offered at `/mcp`. A longer name would have to be shortened, and then two tools could
    have the same name."""
    return len(full_name(server, tool)) <= MAX_NAME_CHARACTERS


def _joined(definitions: list[bytes]) -> msgspec.Raw:
    """Return the list as JSON. Definitions are joined as they are stored, because an organization may have
    thousands."""
    return msgspec.Raw(b"[" + b",".join(definitions) + b"]")


def _cursor(server: str, tool: str) -> str:
    return urlsafe_b64encode(full_name(server, tool).encode()).decode()


def _position(cursor: Any) -> tuple[str, str]:
    """Return the server and the tool after which a page begins. Either may have been removed since. Raises
    `InvalidParams`."""
    if cursor is None:
        return "", ""
    if type(cursor) is str and len(cursor) <= _MAX_CURSOR_CHARACTERS:
        try:
            position = split_name(urlsafe_b64decode(cursor).decode())
        except ValueError:
            position = "", ""
        if position[0]:
            return position
    raise InvalidParams("cursor", "must be the `nextCursor` of a page.")
