"""Answers requests of agents to an MCP server (`/mcp/{server}`), or to all servers that the caller may use (`/mcp`)."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final

import structlog

from gatehouse.engine import pipeline
from gatehouse.engine.exchange import Answer, CheckedCaller, Identified, ReadBody, Received
from gatehouse.engine.mcp import listing, messages, upstream
from gatehouse.engine.mcp.calling import ToolCalls, checked_name, in_touch
from gatehouse.engine.mcp.credentials import refusal_of_host
from gatehouse.engine.mcp.errors import (
    McpConnectionRequired,
    McpServerFailed,
    MethodNotFound,
    UnknownServer,
    UnknownSession,
    elicitation,
    rendered,
)
from gatehouse.engine.mcp.messages import IDENTITY, LEGACY, MODERN, REVISIONS, ClientMessage
from gatehouse.engine.mcp.upstream import UpstreamFailed
from gatehouse.engine.ports import Ports
from gatehouse.engine.stages.callers.maintenance import InMaintenance
from gatehouse.engine.stages.callers.scope import ScopeMissing
from gatehouse.engine.stages.calls.tool_access import McpSwitchedOff, UnknownTool
from gatehouse.engine.stages.calls.tool_rules import has_approvals
from gatehouse.foundation.errors import ClientLeft, Internal, Refusal
from gatehouse.policy.mcp import McpServer

log = structlog.get_logger(__name__)

#: the path of all servers
ALL: Final = "/mcp"
#: the beginning of a server's path, which its name follows
PREFIX: Final = ALL + "/"
#: the scope that a token needs; the scope `chat:write` includes it
SCOPE: Final = "mcp:call"
#: the beginning of the path of a protected resource's metadata (RFC 9728), which the path of the resource follows
METADATA: Final = "/.well-known/oauth-protected-resource"
_JSON: Final = {"content-type": "application/json"}
#: Agents must not cache the list, because access and kill switches change at any time.
_NOT_CACHED: Final = {"ttlMs": 0, "cacheScope": "private"}
_CAPABILITIES: Final[dict[str, Any]] = {"tools": {}}


class ToolServer:
    """Answers agents' requests to MCP servers, for one worker."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self.calls = ToolCalls(ports)

    async def answer(self, x: Received, read: ReadBody, on_admitted: Callable[[], None]) -> Answer:
        """Return the answer to a POST or DELETE request. Errors are returned as answers. Raises `ClientLeft`."""
        identified: Identified | None = None
        caller: CheckedCaller | None = None
        body, message = b"", None
        try:
            pipeline.walk_now(pipeline.ARRIVAL, x, self._ports)
            identified = pipeline.obeyed(await pipeline.IDENTIFY(x, self._ports, SCOPE))
            caller = pipeline.checked(await pipeline.walk(pipeline.TOOL_CALLER, identified, self._ports))
            server = self._server(identified)
            if x.method == "DELETE":
                on_admitted()
                answer = await self._end_session(identified, server)
            else:
                body = await read()
                pipeline.walk_now(pipeline.ARRIVAL, x, self._ports)
                on_admitted()
                message = messages.decode(body, x.headers)
                answer = await self._message(identified, server, message)
        except ClientLeft:
            raise
        except Exception as error:
            if not isinstance(error, Refusal):
                log.exception("mcp.fault", request_id=x.request_id)
                error = Internal()
            answer = _refused(error, x, body, message, self._ports.public_url)
            if identified is None:
                self._ports.meter.refused(error.code)
        if caller is not None and caller.rate is not None:
            answer.headers = {**caller.rate.headers(), **answer.headers}
        return answer

    def _server(self, x: Identified) -> McpServer | None:
        """Return the server that the path names, or None for all servers. A server without a tool for the caller is
        unknown."""
        if x.received.path == ALL:
            return None
        server = x.policy.mcp_servers.get(x.received.path.removeprefix(PREFIX))
        if server is None or not _is_usable(server, x):
            raise UnknownServer
        return server

    async def _message(self, x: Identified, server: McpServer | None, message: ClientMessage) -> Answer:
        """Answer a message to one server, or to all servers if `server` is None."""
        if message.id is None:
            # A notification has no effect: a request is cancelled by closing its connection.
            return Answer(status=202, headers={})
        result: dict[str, Any]
        headers = dict(_JSON)
        match message.method, message.revision:
            case "tools/call", _:
                result, of_call = await self._call(x, server, message)
                headers |= of_call
            case "tools/list", _:
                result = self._listed(x, server, message) | (_NOT_CACHED if message.revision == MODERN else {})
            case "server/discover", "2026-07-28":
                result = {"supportedVersions": list(REVISIONS), "capabilities": _CAPABILITIES, **_NOT_CACHED}
            case "initialize", "2025-11-25":
                result = {"protocolVersion": LEGACY, "capabilities": _CAPABILITIES, "serverInfo": IDENTITY}
                if server is not None and (public_id := await self._begin_session(x, server)) is not None:
                    headers["Mcp-Session-Id"] = public_id
            case "ping", "2025-11-25":
                result = {}
            case _:
                raise MethodNotFound
        body = messages.response(message.id, messages.complete(result, message.revision))
        return Answer(status=200, headers=headers, body=body)

    def _listed(self, x: Identified, server: McpServer | None, message: ClientMessage) -> dict[str, Any]:
        servers: Iterable[McpServer]
        if server is None:
            servers = (
                candidate for candidate in x.policy.mcp_servers.values() if self._refusal_of_host(x, candidate) is None
            )
        elif (refusal := self._refusal_of_host(x, server)) is not None:
            raise refusal
        else:
            servers = (server,)
        cursor = message.params.get("cursor")
        return listing.page(
            servers,
            x.caller,
            self._ports.switches,
            cursor,
            has_full_names=server is None,
            has_approvals=has_approvals(x.policy),
        )

    async def _call(
        self, x: Identified, server: McpServer | None, message: ClientMessage
    ) -> tuple[dict[str, Any], dict[str, str]]:
        name, session_id = message.params.get("name"), x.received.headers.get("mcp-session-id")
        if server is not None:
            return await self.calls.answer(x, server, name, message, session_id)
        if session_id is not None and message.revision == LEGACY:
            # Sessions belong to one server, so none begins at the path of all.
            raise UnknownSession
        server_name, tool_name = listing.split_name(checked_name(name))
        named = x.policy.mcp_servers.get(server_name)
        if named is None or not _is_usable(named, x) or not listing.is_offered(server_name, tool_name):
            raise UnknownTool
        return await self.calls.answer(x, named, tool_name, message, None)

    async def _begin_session(self, x: Identified, server: McpServer) -> str | None:
        """Begin a session at a server of the older revision. Return the id for the agent, or None if there is no
        session."""
        record = server.record
        if record.revision == MODERN:
            return None
        self._require_on(server)
        begin = partial(self.calls.sessions.begin, x, await self.calls.target(x, record))
        try:
            return await in_touch(self._ports.switches, begin)
        except UpstreamFailed as failed:
            raise McpServerFailed(f"The MCP server failed. {failed.sentence}", reason=failed.reason) from None

    async def _end_session(self, x: Identified, server: McpServer | None) -> Answer:
        public_id = x.received.headers.get("mcp-session-id")
        if public_id is None or server is None:
            raise UnknownSession
        record = server.record
        target = await self.calls.target(x, record)
        session_id = self.calls.sessions.read(x, target, public_id)
        if session_id is None:
            raise UnknownSession
        self._require_on(server)
        end = partial(upstream.end_session, target, session_id)
        try:
            await in_touch(self._ports.switches, end)
        except UpstreamFailed as failed:
            raise McpServerFailed(f"The MCP server failed. {failed.sentence}", reason=failed.reason) from None
        return Answer(status=200, headers={})

    def _refusal_of_host(self, x: Identified, server: McpServer) -> Refusal | None:
        return refusal_of_host(self._ports, x.policy.tenant_id, server.record)

    def _require_on(self, server: McpServer) -> None:
        if self._ports.switches.mcp_stopped(server.record.id):
            raise McpSwitchedOff


def _is_usable(server: McpServer, x: Identified) -> bool:
    return next(server.permitted(x.caller), None) is not None


def _challenge(error: Refusal, x: Received, public_url: str | None) -> str | None:
    """Return the header `WWW-Authenticate` of a refusal (RFC 6750, 3; RFC 9728, 5.1), or None."""
    parameters: dict[str, str] = {}
    if isinstance(error, ScopeMissing):
        parameters = {"error": "insufficient_scope", "scope": SCOPE}
    elif error.status != 401:
        return None
    elif "authorization" in x.headers:
        parameters = {"error": "invalid_token"}
    if public_url is not None:
        parameters["resource_metadata"] = public_url + METADATA + x.path
    return ("Bearer " + ", ".join(f'{name}="{value}"' for name, value in parameters.items())).rstrip()


def _refused(error: Refusal, x: Received, body: bytes, message: ClientMessage | None, public_url: str | None) -> Answer:
    """Return the answer for an error. `message` is None if the body was not decoded."""
    message_id = messages.id_of(body)
    headers = {**_JSON, **error.headers}
    if (challenge := _challenge(error, x, public_url)) is not None:
        headers["WWW-Authenticate"] = challenge
    if isinstance(error, InMaintenance):
        return Answer(status=error.status, headers=headers, body=error.body(), refusal=error)
    if isinstance(error, McpConnectionRequired) and message is not None:
        if message.elicits_urls and messages.INPUT_RESPONSES not in message.params:
            result = messages.connection_request(error.text, error.url)
            answer = messages.response(message.id, messages.complete(result, message.revision))
            return Answer(status=200, headers=headers, body=answer)
        if message.revision == LEGACY:
            return Answer(
                status=error.status, headers=headers, refusal=error,
                body=messages.error_response(message_id, elicitation(error, x.request_id)),
            )  # fmt: skip
    fields = rendered(error, x.request_id)
    return Answer(status=error.status, headers=headers, body=messages.error_response(message_id, fields), refusal=error)
