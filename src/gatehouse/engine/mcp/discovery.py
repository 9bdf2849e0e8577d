"""Reads the revision and the tools of an MCP server."""

import asyncio
from contextlib import suppress
from typing import Any, Final

import msgspec

from gatehouse.engine.mcp import messages, upstream
from gatehouse.engine.mcp.definitions import MAX_TOOLS, Definition, InvalidDefinition, read_definition
from gatehouse.engine.mcp.errors import MODERN_ERRORS, UNSUPPORTED_REVISION
from gatehouse.engine.mcp.messages import LEGACY, MODERN
from gatehouse.engine.mcp.sessions import initialize
from gatehouse.engine.mcp.upstream import Target, UpstreamFailed

_MAX_PAGES: Final = 100
_MAX_LIST_BYTES: Final = 16 * 1024 * 1024
_MAX_SECONDS: Final = 60.0
#: maximum number of faults that are reported
_MAX_FAULTS: Final = 100
_MAX_FAULT_CHARACTERS: Final = 500
#: the longest wait for the answer of a process that may not know the newer revision
_PROBE_MS: Final = 10_000
#: the longest wait for the end of a session
_MAX_END_SECONDS: Final = 5.0
_MAX_CURSOR_CHARACTERS: Final = 4096


class Discovered(msgspec.Struct, frozen=True, kw_only=True):
    """A server's revision, its own name and version, its tools by name, and the faults of definitions that cannot be
    offered."""

    revision: str
    server_info: dict[str, Any]
    definitions: dict[str, Definition]
    faults: list[str]


async def discover(target: Target) -> Discovered:
    """Read the server's revision and tools. The revision in `target` is ignored. Raises `UpstreamFailed`."""
    try:
        async with asyncio.timeout(_MAX_SECONDS):
            return await _discover(target)
    except TimeoutError:
        raise UpstreamFailed("timeout") from None


async def _discover(target: Target) -> Discovered:
    modern = msgspec.structs.replace(target, revision=MODERN)
    info = await _modern_info(modern)
    if info is None:
        try:
            return await _discover_legacy(msgspec.structs.replace(target, revision=LEGACY))
        except UpstreamFailed as failed:
            if not (target.record.stdio is not None and failed.rpc_code == UNSUPPORTED_REVISION):
                raise
        # A process that starts slowly reads the request after its timeout, and then keeps to the newer revision.
        info = await _modern_info(modern)
        if info is None:
            raise UpstreamFailed("unsupported_revision")
    definitions, faults = await _tools(modern, None)
    return Discovered(revision=MODERN, server_info=info, definitions=definitions, faults=faults)


async def _discover_legacy(legacy: Target) -> Discovered:
    begun = await initialize(legacy)
    try:
        definitions, faults = await _tools(legacy, begun.session_id)
    finally:
        if begun.session_id is not None:
            # A failure is ignored: the server ends unused sessions by itself.
            with suppress(UpstreamFailed, TimeoutError):
                async with asyncio.timeout(_MAX_END_SECONDS):
                    await upstream.end_session(legacy, begun.session_id)
    info = messages.server_info(begun.value)
    return Discovered(revision=LEGACY, server_info=info, definitions=definitions, faults=faults)


async def _modern_info(target: Target) -> dict[str, Any] | None:
    """Return the server's name and version, or None if it does not have the newer revision."""
    record, is_process = target.record, target.record.stdio is not None
    if is_process:
        probed = msgspec.structs.replace(record, timeout_ms=min(record.timeout_ms, _PROBE_MS))
        target = msgspec.structs.replace(target, record=probed)
    try:
        answer = (await upstream.request(target, "server/discover", {})).value
    except UpstreamFailed as failed:
        if is_process and failed.reason in {"timeout", "process_ended"}:
            # A process of the older revision may ignore the request, or end.
            return None
        if failed.rpc_code == UNSUPPORTED_REVISION:
            _require_legacy(failed.error)
        elif failed.status is None or failed.reason == "unauthorized" or failed.rpc_code in MODERN_ERRORS:
            raise
        return None
    supported = answer.get("supportedVersions")
    if type(supported) is not list:
        return None
    if MODERN not in supported:
        _require_legacy({"data": {"supported": supported}})
        return None
    return messages.server_info(answer)


def _require_legacy(error: dict[str, Any] | None) -> None:
    """Raises `UpstreamFailed` if the server states its revisions, and the older one is not among them."""
    data = None if error is None else error.get("data")
    supported = data.get("supported") if type(data) is dict else None
    if type(supported) is list and LEGACY not in supported:
        raise UpstreamFailed("unsupported_revision")


async def _tools(target: Target, session_id: str | None) -> tuple[dict[str, Definition], list[str]]:
    definitions: dict[str, Definition] = {}
    faults: list[str] = []
    cursor: str | None = None
    count = size = 0
    for _ in range(_MAX_PAGES):
        params = {} if cursor is None else {"cursor": cursor}
        page = await upstream.request(target, "tools/list", params, session_id=session_id)
        tools, cursor, size = page.value.get("tools"), page.value.get("nextCursor"), size + page.size
        if type(tools) is not list or (cursor is not None and type(cursor) is not str):
            raise UpstreamFailed("bad_reply")
        count += len(tools)
        if count > MAX_TOOLS or size > _MAX_LIST_BYTES or len(cursor or "") > _MAX_CURSOR_CHARACTERS:
            raise UpstreamFailed("too_many_tools")
        for tool in tools:
            try:
                definition = read_definition(tool)
            except InvalidDefinition as fault:
                faults.append(str(fault)[:_MAX_FAULT_CHARACTERS])
                continue
            if definition.name in definitions:
                raise UpstreamFailed("duplicate_tool")
            definitions[definition.name] = definition
        if not cursor:
            return definitions, faults[:_MAX_FAULTS]
    raise UpstreamFailed("too_many_tools")
