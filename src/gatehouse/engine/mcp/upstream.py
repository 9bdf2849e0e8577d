"""Requests to MCP servers over Streamable HTTP, within bounds.

A server answers with JSON or with server-sent events. Notifications and pings before the response are ignored. Any
other request of the server fails the call, because the gateway does not forward it to the agent.
"""

import asyncio
import re
from collections.abc import Callable, Mapping
from typing import Any, Final
from uuid import UUID

import msgspec

from gatehouse.engine.conversation.sse import EventTooLarge, Splitter, data_of, events
from gatehouse.engine.mcp import messages
from gatehouse.engine.mcp.headers import write_value
from gatehouse.engine.mcp.messages import MODERN
from gatehouse.engine.providers.failure import UNAUTHORIZED, ProviderFailed
from gatehouse.foundation.outbound import Outbound, OutboundFailed, OutboundReply, OutboundRequest, ReplyTooLarge
from gatehouse.policy.mcp import McpServerRecord

#: maximum size of an answer, or of all events of a stream
MAX_ANSWER_BYTES: Final = 4 * 1024 * 1024
MAX_EVENTS: Final = 1_000
#: the header with the id of a session
SESSION_ID: Final = "Mcp-Session-Id"

_MAX_CONNECT_SECONDS: Final = 5.0
#: Maximum size of an error's body. Bodies of errors are read because they show the server's revision.
_MAX_ERROR_BYTES: Final = 64 * 1024
_MAX_MESSAGE_CHARACTERS: Final = 500
_ACCEPT: Final = "application/json, text/event-stream"
#: visible ASCII (revision 2025-11-25)
_is_session_id: Final = re.compile(r"[!-~]{1,512}").fullmatch
#: A server of the older revision may send this request. The gateway ignores it, and the call continues.
_PING: Final = "ping"

_SENTENCES: Final[Mapping[str, str]] = {
    "connect_failed": "No connection could be made.",
    "no_connection_free": "This process has the maximum number of calls in progress. Try again.",
    "timeout": "It did not answer in time.",
    "connection_closed": "The connection ended before the answer was complete.",
    "address_refused": "The egress guard does not permit its address.",
    "reply_too_large": f"Its answer is over {MAX_ANSWER_BYTES // 1024**2} MiB.",
    "too_many_events": f"Its stream has more than {MAX_EVENTS:,} events.",
    "bad_reply": "Its answer is not valid.",
    "server_request": "It sent a request to the agent, which the gateway does not forward.",
    "input_required": "It asked the agent for further input, which the gateway does not forward.",
    "unauthorized": "It refused the gateway's credential.",
    "client_refused": "The token endpoint refuses the gateway's client.",
    "no_access_token": "No access token could be fetched from the token endpoint.",
    "session_ended": "It has ended the session.",
    "unsupported_revision": f"It supports none of the revisions {' and '.join(messages.REVISIONS)}.",
    "json_rpc_error": "It answered with an error.",
    "process_failed": "Its process could not be started, or ended soon after its start. Try again later.",
    "process_ended": "Its process ended before the answer was complete.",
    "not_running": "Its process was ended before the call was sent. Try again.",
    "server_ended": "An administrator has switched it off, removed it or changed it, which has ended its process.",
    "too_many_processes": "The organization or the machine has the maximum number of processes of servers.",
    "command_not_offered": "The operator no longer offers its command, or one of its variables, to the organization.",
    "owner_unavailable": "The process that runs stdio servers does not answer.",
    "too_many_tools": "Its list of tools is too long.",
    "duplicate_tool": "Its list has two tools with the same name.",
}


class UpstreamFailed(Exception):
    """A request failed. `reason` is a key of `_SENTENCES`, or `http_<status>`. `error` is the server's JSON-RPC
    error, or None. `status` is the HTTP status, or None."""

    def __init__(self, reason: str, *, status: int | None = None, error: dict[str, Any] | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.status = status
        self.error = error

    @property
    def sentence(self) -> str:
        """Return a sentence that describes the reason. It contains no text of the server."""
        return _SENTENCES.get(self.reason, f"It answered with HTTP status {self.status}.")

    @property
    def rpc_code(self) -> int | None:
        code = None if self.error is None else self.error.get("code")
        return code if type(code) is int else None

    @property
    def rpc_message(self) -> str:
        message = None if self.error is None else self.error.get("message")
        return message[:_MAX_MESSAGE_CHARACTERS] if type(message) is str else ""


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """A server, and how it is called. The gateway authenticates with `header`, or `outbound` adds an access token.
    `outbound` raises `ProviderFailed` if it has no token."""

    record: McpServerRecord
    revision: str
    header: Mapping[str, str]
    outbound: Outbound
    #: Is called right before the first byte of each request. If it raises an exception, nothing is sent.
    gate: Callable[[], None] | None = None
    #: the user's connection to which sessions at the server belong; None if it needs no account of the user
    connection_id: UUID | None = None


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a request. `session_id` is the session that the server begins with it, or None."""

    value: dict[str, Any]
    session_id: str | None
    #: bytes of the answer
    size: int


async def request(
    target: Target,
    method: str,
    params: dict[str, Any],
    *,
    session_id: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Result:
    """Send a request, and return its result. Raises `UpstreamFailed`, and the errors of the gate."""
    modern = {}
    if target.revision == MODERN:
        modern = {"Mcp-Method": method}
        if method == "tools/call":
            modern["Mcp-Name"] = write_value(params["name"])
    body = messages.request(1, method, params, target.revision)
    sent = _outbound_request(
        target, "POST", body, session_id, {**modern, **(headers or {})}, version=method != "initialize"
    )
    try:
        async with asyncio.timeout(target.record.timeout_ms / 1000):
            reply = await target.outbound.send(sent)
            try:
                return await _read(reply, session_id)
            finally:
                await reply.close()
    except TimeoutError:
        raise UpstreamFailed("timeout") from None
    except OutboundFailed as failed:
        raise UpstreamFailed(failed.reason) from None
    except ProviderFailed as failed:
        raise _without_token(failed) from None


def _without_token(failed: ProviderFailed) -> UpstreamFailed:
    return UpstreamFailed("client_refused" if failed.reason == UNAUTHORIZED else "no_access_token")


async def notify(target: Target, method: str, *, session_id: str | None) -> None:
    """Send a notification. Raises `UpstreamFailed`, and the errors of the gate."""
    await _without_answer(target, "POST", messages.notification(method), session_id)


async def end_session(target: Target, session_id: str) -> None:
    """End a session. A server may refuse this. Raises `UpstreamFailed` if no answer arrives, and the errors of the
    gate."""
    try:
        await _without_answer(target, "DELETE", b"", session_id)
    except UpstreamFailed as failed:
        if failed.status is None:
            raise


async def _without_answer(target: Target, http_method: str, body: bytes, session_id: str | None) -> None:
    try:
        async with asyncio.timeout(target.record.timeout_ms / 1000):
            reply = await target.outbound.send(_outbound_request(target, http_method, body, session_id, {}))
            await reply.close()
    except TimeoutError:
        raise UpstreamFailed("timeout") from None
    except OutboundFailed as failed:
        raise UpstreamFailed(failed.reason) from None
    except ProviderFailed as failed:
        raise _without_token(failed) from None
    if not 200 <= reply.status < 300:
        raise _of_status(reply.status, session_id)


def _outbound_request(
    target: Target,
    http_method: str,
    body: bytes,
    session_id: str | None,
    headers: Mapping[str, str],
    *,
    version: bool = True,
) -> OutboundRequest:
    seconds = target.record.timeout_ms / 1000
    own = {"Accept": _ACCEPT, "Content-Type": "application/json"}
    if version:
        own["MCP-Protocol-Version"] = target.revision
    if session_id is not None:
        own[SESSION_ID] = session_id
    return OutboundRequest(
        method=http_method,
        url=target.record.url,
        # `is_reserved_header` reserves the protocol's names, so the configured header replaces none.
        headers={**target.header, **headers, **own},
        body=body,
        connect_timeout=min(seconds, _MAX_CONNECT_SECONDS),
        first_byte_timeout=seconds,
        idle_timeout=seconds,
        total_timeout=seconds,
        before_first_byte=target.gate,
        egress=target.record.egress_policy or "private",
    )


async def _read(reply: OutboundReply, session_id: str | None) -> Result:
    media_type = reply.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not 200 <= reply.status < 300:
        raise await _failure(reply, media_type, session_id)
    if media_type == "text/event-stream":
        message, size = await _response_in_stream(reply)
    elif media_type == "application/json":
        body = await reply.read(MAX_ANSWER_BYTES)
        size, message = len(body), _response_in(body)
    else:
        raise UpstreamFailed("bad_reply", status=reply.status)
    if message is None:
        raise UpstreamFailed("bad_reply", status=reply.status)
    if type(error := message.get("error")) is dict:
        raise UpstreamFailed("json_rpc_error", status=reply.status, error=error)
    value, begun = message.get("result"), reply.headers.get("mcp-session-id")
    if type(value) is not dict or (begun is not None and not _is_session_id(begun)):
        raise UpstreamFailed("bad_reply", status=reply.status)
    return Result(value=value, session_id=begun, size=size)


async def _failure(reply: OutboundReply, media_type: str, session_id: str | None) -> UpstreamFailed:
    """Return the failure that an HTTP status reports. A server of the newer revision adds a JSON-RPC error."""
    if media_type == "application/json":
        try:
            body = await reply.read(_MAX_ERROR_BYTES)
        except ReplyTooLarge:
            return _of_status(reply.status, session_id)
        message = messages.decode_upstream(body)
        error = None if message is None else message.get("error")
        if type(error) is dict and reply.status not in {401, 403} and not (reply.status == 404 and session_id):
            return UpstreamFailed("json_rpc_error", status=reply.status, error=error)
    return _of_status(reply.status, session_id)


def _of_status(status: int, session_id: str | None) -> UpstreamFailed:
    if status in {401, 403}:
        return UpstreamFailed("unauthorized", status=status)
    if status == 404 and session_id is not None:
        return UpstreamFailed("session_ended", status=status)
    return UpstreamFailed(f"http_{status}", status=status)


async def _response_in_stream(reply: OutboundReply) -> tuple[dict[str, Any] | None, int]:
    """Return the response in a stream, and the number of bytes read. Nothing after the response is read."""
    splitter, size, count = Splitter(), 0, 0
    async for chunk in reply.chunks():
        size += len(chunk)
        if size > MAX_ANSWER_BYTES:
            raise UpstreamFailed("reply_too_large")
        try:
            block = splitter.push(chunk)
        except EventTooLarge:
            raise UpstreamFailed("reply_too_large") from None
        for event in events(block):
            count += 1
            if count > MAX_EVENTS:
                raise UpstreamFailed("too_many_events")
            if (response := _response_in(data_of(event))) is not None:
                return response, size
    return _response_in(data_of(splitter.take_rest())), size


def _response_in(data: bytes) -> dict[str, Any] | None:
    """Return the message if it is the response to the request. Return None for other messages and for empty data.
    Raises `UpstreamFailed` for a request of the server other than a ping, and for invalid data."""
    if not data:
        return None
    message = messages.decode_upstream(data)
    if message is None:
        raise UpstreamFailed("bad_reply")
    if "method" in message:
        if "id" in message and message["method"] != _PING:
            raise UpstreamFailed("server_request")
        return None
    # A response without an id reports that the server could not read the request.
    return message if message.get("id") in (1, None) and ("result" in message or "error" in message) else None
