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
    servers: Iterable[McpServer], caller: Caller, switches: Switches, cursor: Any, *, has_full_names: bool
) -> dict[str, Any]:
    """Return a page of the tools that `tools/call` would call now, by server and name. `servers` are in the order of
    their names. `cursor` is that of the previous page, or None. Raises `InvalidParams`."""
    definitions: list[bytes] = []
    size = 0
    last: tuple[str, str] | None = None
    for server, tool, name in _callable(servers, caller, switches, _position(cursor), has_full_names=has_full_names):
        if len(definitions) == MAX_PAGE_TOOLS or size > MAX_PAGE_BYTES:
            assert last is not None
            return {"tools": _joined(definitions), "nextCursor": _cursor(*last)}
        definition = for_agents(tool.definition)
        if has_full_names:
            definition = renamed(definition, tool.name, name)
        encoded = definition.encode()
        definitions.append(encoded)
        size += len(encoded)
        last = server, tool.name
    return {"tools": _joined(definitions)}


def _callable(
    servers: Iterable[McpServer],
    caller: Caller,
    switches: Switches,
    after: tuple[str, str],
    *,
    has_full_names: bool,
) -> Iterator[tuple[str, McpToolRecord, str]]:
    """Yield the name of the server, the tool, and the tool's name at this path."""
    for server in servers:
        server_name = server.record.name
        if server_name < after[0] or switches.mcp_stopped(server.record.id):
            continue
        prefix = full_name(server_name, "") if has_full_names else ""
        for tool in server.permitted(caller):
            if server_name == after[0] and tool.name <= after[1]:
                continue
            if has_full_names and not is_offered(server_name, tool.name):
                continue
            if not switches.mcp_stopped(tool.id):
                yield server_name, tool, prefix + tool.name


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
