"""Reads from a model call which tools of registered servers the gateway is to run, and offers them as functions."""

import hashlib
import re
from typing import Any, Final

import msgspec

from gatehouse.engine.conversation.decoding.bodies import decode_object
from gatehouse.engine.conversation.decoding.optional_fields import word
from gatehouse.engine.conversation.errors import InvalidField, MalformedCall, NestedTooDeep
from gatehouse.engine.exchange import Identified
from gatehouse.engine.mcp.credentials import refusal_of_host
from gatehouse.engine.mcp.definitions import for_agents
from gatehouse.engine.mcp.listing import full_name
from gatehouse.engine.ports import Ports
from gatehouse.foundation.errors import Forbidden
from gatehouse.policy.mcp import McpServer

#: the permission by which an organization lets the gateway run tools (docs/request-fields.md)
PERMISSION: Final = "gateway.mcp"
#: bytes of every body that names such a tool
MARK: Final = b'"mcp"'
#: items that a run has added to an earlier answer
_RUN_ITEMS: Final = frozenset({"mcp_list_tools", "mcp_call"})
#: bytes of every body with a registered server, or with an item of a run
_MARKS: Final = (MARK, *(f'"{kind}"'.encode() for kind in _RUN_ITEMS))
_TOOL_TYPE: Final = "mcp"
#: maximum number of functions that OpenAI's models accept
_MAX_FUNCTIONS: Final = 128
_MAX_FUNCTION_NAME_CHARACTERS: Final = 64
_DIGEST_CHARACTERS: Final = 8
_is_function_name: Final = re.compile(rf"[A-Za-z0-9_-]{{1,{_MAX_FUNCTION_NAME_CHARACTERS}}}").fullmatch


class ToolRunNotPermitted(Forbidden):
    code = "tool_run_not_permitted"
    message = (
        "The organization does not let the gateway run tools of MCP servers in model calls. An administrator permits it"
        f" with the request field `{PERMISSION}`."
    )


class OfferedTool(msgspec.Struct, frozen=True, kw_only=True):
    """A server's tool, which the model can call by the name of a function."""

    function: str
    server: McpServer
    name: str
    #: the fields of the tool's approved definition
    definition: dict[str, Any]


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The tools that the gateway may run in a model call."""

    #: the client's body
    body: dict[str, Any]
    #: by name of the function
    offered: dict[str, OfferedTool]
    #: the names of the servers, in the order of the client's tools
    servers: tuple[str, ...]
    #: the client's own tools, without those of the servers
    other_tools: list[Any]
    #: the names of all servers of the organization
    registered: frozenset[str]

    def of_server(self, server: str) -> list[OfferedTool]:
        return [tool for tool in self.offered.values() if tool.server.record.name == server]

    @property
    def runs_tools(self) -> bool:
        """Return whether the call names a server. If not, only items of an earlier answer are converted."""
        return bool(self.servers)

    def function_of(self, server: Any, name: Any) -> str | None:
        """Return the name of the function of a server's tool, whether or not it is offered now. None if the
        organization has no such server."""
        if type(server) is not str or type(name) is not str or server not in self.registered:
            return None
        return _function_name(server, name)


def read_plan(body: bytes, x: Identified, ports: Ports) -> Plan | None:
    """Return the plan of a model call, or None if it names no registered server. A body that is not valid has no plan:
    the call's dialect refuses it. Raises `InvalidField`, `ToolRunNotPermitted`, and the refusal of
    `refusal_of_host`."""
    for mark in _MARKS:
        if mark in body:
            break
    else:
        return None
    try:
        values = decode_object(body)
    except (MalformedCall, NestedTooDeep, InvalidField):
        return None
    tools = values.get("tools")
    tools = tools if type(tools) is list else []
    servers, other_tools = _split(tools, x, ports.public_url)
    registered = frozenset(x.policy.mcp_servers)
    if not servers:
        if not _has_run_items(values.get("input"), registered):
            return None
        return Plan(body=values, offered={}, servers=(), other_tools=other_tools, registered=registered)
    if values.get("n") not in (None, 1):
        raise InvalidField("n", "Must be 1 if the gateway runs tools.")
    if PERMISSION not in x.policy.allowed_fields:
        raise ToolRunNotPermitted
    offered = _all_offered(servers, tools, _function_names(other_tools), x, ports)
    names = tuple(server.record.name for server in servers.values())
    return Plan(body=values, offered=offered, servers=names, other_tools=other_tools, registered=registered)


def _all_offered(
    servers: dict[int, McpServer], tools: list[Any], taken: set[str], x: Identified, ports: Ports
) -> dict[str, OfferedTool]:
    """Return the offered tools of all servers by the names of their functions. `servers` has the indexes of their
    tools; `taken` are the names of other functions. Raises `InvalidField`."""
    offered: dict[str, OfferedTool] = {}
    for index, server in servers.items():
        for tool in _offered(server, tools[index], f"tools[{index}]", x, ports):
            if tool.function in taken or tool.function in offered:
                raise InvalidField(f"tools[{index}]", f"Another tool has the name {tool.function}.")
            offered[tool.function] = tool
        if len(offered) > _MAX_FUNCTIONS:
            raise InvalidField(
                f"tools[{index}].allowed_tools", f"More than {_MAX_FUNCTIONS} tools. Name those that the model needs."
            )
    return offered


def _has_run_items(items: Any, registered: frozenset[str]) -> bool:
    """Return whether the items of an `input` include some that a run has added to an earlier answer."""
    return type(items) is list and any(
        type(item) is dict and word(item.get("type")) in _RUN_ITEMS and word(item.get("server_label")) in registered
        for item in items
    )


def _split(tools: list[Any], x: Identified, public_url: str | None) -> tuple[dict[int, McpServer], list[Any]]:
    """Return the registered servers that a list of tools names, by index, and the other tools. Raises
    `InvalidField`."""
    servers: dict[int, McpServer] = {}
    other_tools = []
    for index, tool in enumerate(tools):
        label = tool.get("server_label") if type(tool) is dict and tool.get("type") == _TOOL_TYPE else None
        server = x.policy.mcp_servers.get(label) if type(label) is str else None
        # A server without a tool for the caller is unknown, as at its own path.
        if (
            server is None
            or next(server.permitted(x.caller), None) is None
            or not _is_own_address(tool, server.record.name, public_url)
        ):
            other_tools.append(tool)
        elif server in servers.values():
            raise InvalidField(f"tools[{index}].server_label", "The server occurs twice in `tools`.")
        else:
            servers[index] = server
    return servers, other_tools


def _is_own_address(tool: dict[str, Any], label: str, public_url: str | None) -> bool:
    """Return whether a tool has no address, or the address of the server at this gateway."""
    if tool.get("connector_id") is not None:
        return False
    address = tool.get("server_url")
    return address is None or (public_url is not None and address == f"{public_url}/mcp/{label}")


def _offered(server: McpServer, tool: dict[str, Any], param: str, x: Identified, ports: Ports) -> list[OfferedTool]:
    """Return the tools of a server that the caller may call and that `allowed_tools` names. Raises `InvalidField`, and
    the refusal of `refusal_of_host`."""
    if tool.get("require_approval") != "never":
        raise InvalidField(
            f"{param}.require_approval",
            "Must be `never`: the gateway runs the tool itself. Approvals that the organization requires are not"
            " affected.",
        )
    if any(tool.get(field) is not None for field in ("headers", "authorization")):
        raise InvalidField(f"{param}.headers", "Credentials of the server are set by its administrator, not by a call.")
    allowed = tool.get("allowed_tools")
    if type(allowed) is dict:
        allowed = allowed.get("tool_names")
    if allowed is not None and (type(allowed) is not list or any(type(name) is not str for name in allowed)):
        raise InvalidField(f"{param}.allowed_tools", "Must be a list of names.")
    if (refusal := refusal_of_host(ports, x.policy.tenant_id, server.record)) is not None:
        raise refusal
    switches = ports.switches
    if switches.mcp_stopped(server.record.id):
        return []
    return [
        OfferedTool(
            function=_function_name(server.record.name, record.name),
            server=server,
            name=record.name,
            definition=msgspec.json.decode(for_agents(record.definition)),
        )
        for record in server.permitted(x.caller)
        if (allowed is None or record.name in allowed) and not switches.mcp_stopped(record.id)
    ]


def _function_name(server: str, tool: str) -> str:
    """Return the name of a tool's function. A name that models do not accept is changed; a digest makes it unique."""
    name = full_name(server, tool)
    if _is_function_name(name):
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGEST_CHARACTERS]
    readable = re.sub(r"[^A-Za-z0-9_-]", "_", name)[: _MAX_FUNCTION_NAME_CHARACTERS - _DIGEST_CHARACTERS - 1]
    return f"{readable}_{digest}"


def _function_names(tools: list[Any]) -> set[str]:
    names = set()
    for tool in tools:
        if type(tool) is dict:
            function = tool.get("function")
            name = function.get("name") if type(function) is dict else tool.get("name")
            if type(name) is str:
                names.add(name)
    return names
