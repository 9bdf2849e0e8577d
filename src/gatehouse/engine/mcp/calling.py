"""Calls a tool: access, inspection of the arguments, the call to the server, inspection of the result, record."""

import asyncio
import contextlib
import hashlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeVar
from uuid import UUID

import msgspec
import structlog

from gatehouse.engine import pipeline
from gatehouse.engine.conversation.call import ModelCall
from gatehouse.engine.exchange import CalledTool, CallRequest, Identified
from gatehouse.engine.mcp import upstream
from gatehouse.engine.mcp.credentials import UpstreamCredentials, require_connection
from gatehouse.engine.mcp.definitions import input_schema
from gatehouse.engine.mcp.errors import (
    INVALID_PARAMS,
    InvalidParams,
    McpServerFailed,
    ToolRefusedCall,
    UnknownSession,
)
from gatehouse.engine.mcp.headers import parameter_headers
from gatehouse.engine.mcp.messages import INPUT_RESPONSES, LEGACY, ClientMessage, encode
from gatehouse.engine.mcp.recording import ToolCallState, record
from gatehouse.engine.mcp.sessions import UpstreamSessions, owner
from gatehouse.engine.mcp.upstream import Result, Target, UpstreamFailed
from gatehouse.engine.ports import Ports, Switches
from gatehouse.engine.stages.calls import (
    attribution,
    content_filters,
    dlp_input,
    response_state,
    sampling,
)
from gatehouse.engine.stages.calls.tool_access import McpSwitchedOff, UnknownTool
from gatehouse.engine.stages.calls.tool_rules import ARGUMENTS
from gatehouse.engine.stages.candidates import overrides
from gatehouse.engine.stages.candidates.sending import OutOfTouch
from gatehouse.engine.verdict import ALLOW, Hold, MaybeVerdict, Refuse, Rewrite, Verdict, resolved
from gatehouse.foundation.errors import ClientLeft, Internal, Refusal
from gatehouse.policy.mcp import McpServer, McpServerRecord, McpToolRecord

T = TypeVar("T")

log = structlog.get_logger(__name__)

#: parameters of `tools/call` that require more than one message between agent and server
_UNSUPPORTED: Final = (INPUT_RESPONSES, "requestState", "task")
#: number of times that a call synchronizes the switches before it fails
_MAX_SYNCHRONIZATIONS: Final = 5
#: The check of the arguments for each step of a model call, in the order of the steps. None if the step does not apply.
_CHECKS: Final[list[pipeline.Check | None]] = pipeline.table(
    pipeline.CALL,
    {
        dlp_input.name: None,
        response_state.resolve: None,
        content_filters.check: content_filters.check,
        sampling.choose: None,
        dlp_input.inspect: dlp_input.inspect,
        attribution.note_end_user: None,
        content_filters.instruct: None,
        overrides.check: None,
    },
)


class ToolCalls:
    """Makes the tool calls of one worker."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._credentials = UpstreamCredentials()
        self.sessions = UpstreamSessions(ports)

    async def target(self, x: Identified, server: McpServerRecord) -> Target:
        """Return the target for this caller's requests to the server, with the user's present connection. Raises the
        refusals of `require_connection` and of `UpstreamCredentials.target`."""
        return self._target(x, server, await self._connection_id(x, server))

    async def _connection_id(self, x: Identified, server: McpServerRecord) -> UUID | None:
        return await require_connection(self._ports, x.policy.tenant_id, x.caller.user_id, server)

    def _target(
        self, x: Identified, server: McpServerRecord, connection_id: UUID | None, state: ToolCallState | None = None
    ) -> Target:
        """Return the target for this caller's requests to the server. Its gate checks the kill switches and the
        caller's credential, then marks the call in `state` as sent."""
        ports = self._ports
        ids = (server.id,) if state is None or state.tool is None else (server.id, state.tool.id)

        def gate() -> None:
            pipeline.obey(pipeline.TOOL_SENDING(x, ids, ports))
            if state is not None:
                state.sent = True

        return self._credentials.target(
            ports, x.policy.tenant_id, server, x.caller.user_id,
            gate=gate, owner=owner(x, server), connection_id=connection_id,
        )  # fmt: skip

    async def answer(
        self, x: Identified, server: McpServer, name: Any, message: ClientMessage, public_session_id: str | None
    ) -> tuple[dict[str, Any], dict[str, str]]:
        """Return the result of `tools/call` for the server's tool `name`, and headers of the answer. The call is
        recorded in every case. Raises `Refusal`."""
        state = ToolCallState(identified=x, server=server.record)
        try:
            result = await self._call(state, server, name, message, public_session_id)
        except Refusal as error:
            is_error = error.status >= 500 and (state.sent or isinstance(error, McpServerFailed))
            state.outcome = "error" if is_error else "refused"
            state.status, state.error_code = error.status, error.code
            await record(state, self._ports)
            raise
        except (asyncio.CancelledError, ClientLeft):
            state.outcome, state.status = "cancelled", 499
            # The entry is queued at once. Its storage is not awaited, because the client has left.
            self._record_without_client(state)
            raise
        except Exception:
            log.exception("mcp.fault", request_id=x.received.request_id)
            state.outcome, state.status, state.error_code = "error", 500, Internal.code
            await record(state, self._ports)
            raise Internal from None
        await record(state, self._ports)
        inspection = None if state.call_request is None else state.call_request.inspection
        budgets = {} if state.reserved is None else state.reserved.headers()
        return result, {"X-DLP-Action": (inspection and inspection.action) or "ALLOW", **budgets}

    def _record_without_client(self, state: ToolCallState) -> None:
        try:
            written = asyncio.ensure_future(record(state, self._ports))
        except Refusal as error:
            log.warning("mcp.record_refused", request_id=state.identified.received.request_id, reason=error.code)
        else:
            # The journal logs a failure. The callback retrieves the exception, so that asyncio does not report it
            # again.
            written.add_done_callback(lambda done: done.cancelled() or done.exception())

    async def _call(
        self, state: ToolCallState, server: McpServer, name: Any, message: ClientMessage, public_session_id: str | None
    ) -> dict[str, Any]:
        x, ports = state.identified, self._ports
        arguments = _arguments(message, server.record)
        tool = server.tools.get(checked_name(name))
        if tool is None:
            raise UnknownTool
        state.tool = tool
        call = ModelCall(dialect="", model=state.target, stream=False, body={ARGUMENTS: arguments})
        called_tool = CalledTool(server.record, tool)
        state.call_request = call_request = pipeline.decoded(x, call, message.body_bytes, called_tool)
        for check in (pipeline.TOOL_ACCESS, _require_connection, *_CHECKS, pipeline.TOOL_RULES):
            if check is None:
                continue
            verdict = await resolved(check(call_request, ports))
            if isinstance(verdict, Hold):
                await self._wait_for_approval(call_request, verdict)
            else:
                pipeline.obey(verdict)
        sent_arguments = call.body[ARGUMENTS]
        headers = _headers(tool, sent_arguments)
        state.connection_id = await self._connection_id(x, state.server)
        session_id = self._session_of(state, message, public_session_id)
        state.arguments_digest = (
            f"sha256:{hashlib.sha256(msgspec.json.encode(sent_arguments, order='sorted')).hexdigest()}"
        )
        state.reserved = pipeline.obeyed(await pipeline.RESERVE_TOOL_CALL(x, ports))
        started = ports.clock.monotonic()
        try:
            # The limit covers the whole call, with the requests that begin a session.
            async with asyncio.timeout(state.server.timeout_ms / 1000):
                result = await self._send(state, {"name": tool.name, "arguments": sent_arguments}, headers, session_id)
        except TimeoutError:
            raise await self._error(UpstreamFailed("timeout"), call_request) from None
        except UpstreamFailed as failed:
            if failed.reason == "server_ended" and ports.switches.mcp_stopped(server.record.id):
                raise McpSwitchedOff from None
            raise await self._error(failed, call_request) from None
        finally:
            if state.sent:
                state.upstream_ms = round((ports.clock.monotonic() - started) * 1000, 3)
            else:
                # The digest in the record covers sent arguments only, and nothing was sent.
                state.arguments_digest = None
        state.result_bytes, state.is_error = len(encode(result)), result.get("isError", False)
        verdict = await pipeline.TOOL_RESULT(call_request, result, state.result_bytes, ports)
        if verdict is not ALLOW and not isinstance(verdict, Rewrite):
            pipeline.obey(verdict)
        return result

    async def _wait_for_approval(self, call_request: CallRequest, hold: Hold) -> None:
        """Wait for a person's decision. Raises a `Refusal` if the call is not approved, or if changed access rules no
        longer permit it. If the server was removed or disabled meanwhile, the gate refuses the call."""
        x, called = call_request.identified, call_request.called_tool
        assert called is not None
        pipeline.obey(await pipeline.AWAIT_APPROVAL(call_request, hold, self._ports))
        policy = await self._ports.policies.current(x.policy.tenant_id)
        if called.server.name in policy.mcp_servers:
            current = msgspec.structs.replace(x, policy=policy)
            pipeline.obey(pipeline.TOOL_ACCESS(msgspec.structs.replace(call_request, identified=current), self._ports))

    def _session_of(self, state: ToolCallState, message: ClientMessage, public_session_id: str | None) -> str | None:
        """Return the server's id of the session that the agent names. None if the agent specifies none, or if agent or
        server has the newer revision. Raises `UnknownSession`."""
        if public_session_id is None or message.revision != LEGACY or state.server.revision != LEGACY:
            return None
        target = self._target(state.identified, state.server, state.connection_id)
        session_id = self.sessions.read(state.identified, target, public_session_id)
        if session_id is None:
            raise UnknownSession
        return session_id

    async def _send(
        self, state: ToolCallState, params: dict[str, Any], headers: Mapping[str, str], session_id: str | None
    ) -> dict[str, Any]:
        """Send the call, and return the server's validated result. If `session_id` is None and the server has the older
        revision, the caller's kept session is used. Raises `UpstreamFailed` and `Refusal`."""
        x, server, switches = state.identified, state.server, self._ports.switches
        is_own_session = session_id is None and server.revision == LEGACY

        async def send() -> Result:
            nonlocal session_id
            if is_own_session:
                session_id = await self.sessions.kept(x, self._target(x, server, state.connection_id))
            target = self._target(x, server, state.connection_id, state)
            return await upstream.request(target, "tools/call", params, session_id=session_id, headers=headers)

        for is_repeated in (False, True):
            try:
                return _valid((await in_touch(switches, send)).value)
            except UpstreamFailed as failed:
                has_ended = failed.reason == "session_ended"
                if is_own_session and (has_ended or failed.status == 401):
                    self.sessions.forget(x, self._target(x, server, state.connection_id), session_id)
                if not has_ended or (is_own_session and is_repeated):
                    raise
                if not is_own_session:
                    raise UnknownSession from None
                # The session may have ended because the user has connected another account.
                state.connection_id = await self._connection_id(x, server)
        raise AssertionError("unreachable")

    async def _error(self, failed: UpstreamFailed, call_request: CallRequest) -> Refusal:
        """Return the error for the agent. The server's message is inspected, because it may contain any text."""
        if failed.rpc_code == INVALID_PARAMS and failed.rpc_message:
            return await pipeline.ERROR_TEXT(call_request, ToolRefusedCall(failed.rpc_message), self._ports)
        if failed.reason == "json_rpc_error" and failed.rpc_message:
            error = McpServerFailed(failed.rpc_message, reason=failed.reason)
            return await pipeline.ERROR_TEXT(call_request, error, self._ports)
        return McpServerFailed(f"The MCP server failed. {failed.sentence}", reason=failed.reason)


async def in_touch(switches: Switches, send: Callable[[], Awaitable[T]]) -> T:
    """Synchronize the switches if necessary, then send. `send` is repeated if its gate finds the switches out of date,
    as it does after a pause of the process: nothing was sent then. Raises `OutOfTouch` if this fails repeatedly, and
    the errors of `send`."""
    for _ in range(_MAX_SYNCHRONIZATIONS):
        await switches.in_touch()
        with contextlib.suppress(OutOfTouch):
            return await send()
    raise OutOfTouch


def _require_connection(x: CallRequest, ports: Ports) -> MaybeVerdict:
    """Refuse a call without the user's consent before a person is asked to approve it."""
    assert x.called_tool is not None
    return ALLOW if x.called_tool.server.user_oauth is None else _connection(x, x.called_tool.server, ports)


async def _connection(x: CallRequest, server: McpServerRecord, ports: Ports) -> Verdict:
    try:
        await require_connection(ports, x.identified.policy.tenant_id, x.identified.caller.user_id, server)
    except Refusal as error:
        return Refuse(error)
    return ALLOW


def checked_name(name: Any) -> str:
    """Return the name of a tool in a call. Raises `InvalidParams`."""
    if type(name) is not str:
        raise InvalidParams("name", "must be the name of a tool.")
    return name


def _arguments(message: ClientMessage, server: McpServerRecord) -> dict[str, Any]:
    for param in _UNSUPPORTED:
        # After `input_required` an agent repeats its call with this parameter, whose value has no meaning.
        is_answer = param == INPUT_RESPONSES and server.user_oauth is not None
        if param in message.params and not is_answer:
            raise InvalidParams(param, "is not supported by the gateway.")
    arguments = message.params.get("arguments", {})
    if type(arguments) is not dict:
        raise InvalidParams("arguments", "must be an object.")
    return arguments


def _headers(tool: McpToolRecord, arguments: dict[str, Any]) -> dict[str, str]:
    try:
        return parameter_headers(input_schema(tool.definition), arguments)
    except ValueError as error:
        raise InvalidParams(f"arguments.{error}", "has a value that cannot be sent as a header.") from None


def _valid(value: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a result that are forwarded. Raises `UpstreamFailed`."""
    if value.get("resultType", "complete") != "complete":
        raise UpstreamFailed("input_required")
    content, is_error = value.get("content"), value.get("isError", False)
    if type(content) is not list or any(type(block) is not dict for block in content) or type(is_error) is not bool:
        raise UpstreamFailed("bad_reply")
    result: dict[str, Any] = {"content": content}
    if "structuredContent" in value:
        result["structuredContent"] = value["structuredContent"]
    if is_error:
        result["isError"] = True
    return result
