"""JSON-RPC messages of the Model Context Protocol, in two revisions.

In the newer revision, `MODERN`, each message states its revision and the client's capabilities in `params._meta`. In
the older one, `LEGACY`, a client begins with `initialize`, and a server may begin a session.
"""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import msgspec

from gatehouse import __version__
from gatehouse.engine.conversation.decoding.bodies import MAX_DEPTH, decode_object, deeper_than
from gatehouse.engine.mcp.errors import HeaderMismatch, InvalidMessage, InvalidParams, UnsupportedRevision
from gatehouse.engine.mcp.headers import read_value

MODERN: Final = "2026-07-28"
LEGACY: Final = "2025-11-25"
REVISIONS: Final = (MODERN, LEGACY)

_PREFIX: Final = "io.modelcontextprotocol/"
REVISION_KEY: Final = _PREFIX + "protocolVersion"
_CAPABILITIES_KEY: Final = _PREFIX + "clientCapabilities"
_CLIENT_KEY: Final = _PREFIX + "clientInfo"
_SERVER_KEY: Final = _PREFIX + "serverInfo"
#: the name and version by which the gateway identifies itself to both sides
IDENTITY: Final = {"name": "gatehouse", "version": __version__}

#: the parameter of a repeated request with the agent's answers to `input_required`
INPUT_RESPONSES: Final = "inputResponses"
#: methods for which the header `Mcp-Name` repeats the tool's name
_NAMED: Final = frozenset({"tools/call"})
_MAX_METHOD_CHARACTERS: Final = 128
_MAX_ID_CHARACTERS: Final = 256

MessageId: TypeAlias = int | str

_decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder()
encode: Final = msgspec.json.Encoder().encode


class ClientMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A request of an agent, or a notification if `id` is None. `_meta` has been removed from `params`."""

    method: str
    id: MessageId | None
    params: dict[str, Any]
    revision: str
    #: size of the body with the message
    body_bytes: int
    #: whether the client can show a URL to its user. False in the older revision, in which clients state this only once
    elicits_urls: bool = False


def id_of(body: bytes) -> MessageId | None:
    """Return the id of a request, for the response if the request is refused. None if the id cannot be read."""
    try:
        message = _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return _id(message.get("id")) if type(message) is dict else None


def decode(body: bytes, headers: Mapping[str, str]) -> ClientMessage:
    """Return the message of an agent. The names in `headers` are in lower case. Raises a subclass of `BadRequest`."""
    if body.lstrip()[:1] == b"[":
        raise InvalidMessage("The body must be one message. The protocol has no batches.")
    message = decode_object(body)
    method, params, message_id = message.get("method"), message.get("params", {}), message.get("id")
    if message.get("jsonrpc") != "2.0":
        raise InvalidMessage("`jsonrpc` must be 2.0.", param="jsonrpc")
    if type(method) is not str or not 0 < len(method) <= _MAX_METHOD_CHARACTERS:
        raise InvalidMessage(
            f"`method` must be a text of at most {_MAX_METHOD_CHARACTERS} characters. The gateway sends no requests, so"
            " it accepts no responses.",
            param="method",
        )
    if "id" in message and _id(message_id) is None:
        raise InvalidMessage(
            f"`id` must be an integer or a text of at most {_MAX_ID_CHARACTERS} characters.", param="id"
        )
    if type(params) is not dict:
        raise InvalidParams("params", "must be an object.")
    meta = params.pop("_meta", {})
    if type(meta) is not dict:
        raise InvalidParams("params._meta", "must be an object.")
    revision = _revision(method, meta, headers.get("mcp-protocol-version"), is_request=message_id is not None)
    decoded = ClientMessage(
        method=method,
        id=message_id,
        params=params,
        revision=revision,
        body_bytes=len(body),
        elicits_urls=revision == MODERN and _elicits_urls(meta.get(_CAPABILITIES_KEY)),
    )
    if revision == MODERN and message_id is not None:
        _check_headers(decoded, meta, headers)
    return decoded


def _elicits_urls(capabilities: Any) -> bool:
    elicitation = capabilities.get("elicitation") if type(capabilities) is dict else None
    return type(elicitation) is dict and type(elicitation.get("url")) is dict


def _id(value: Any) -> MessageId | None:
    if type(value) is int or (type(value) is str and len(value) <= _MAX_ID_CHARACTERS):
        return value
    return None


def _revision(method: str, meta: dict[str, Any], header: str | None, *, is_request: bool) -> str:
    """Return the revision of a message. Raises `UnsupportedRevision`, `HeaderMismatch`."""
    stated = meta.get(REVISION_KEY)
    for revision in (header, stated):
        if revision is not None and revision not in REVISIONS:
            requested = revision[:_MAX_METHOD_CHARACTERS] if isinstance(revision, str) else None
            raise UnsupportedRevision(supported=list(REVISIONS), requested=requested)
    if header is not None and stated is not None and header != stated:
        raise HeaderMismatch(f"MCP-Protocol-Version differs from `params._meta.{REVISION_KEY}`.")
    if stated == MODERN and header is None:
        raise HeaderMismatch("The header MCP-Protocol-Version is missing.")
    if header == MODERN and stated is None and is_request:
        if method == "initialize":
            raise UnsupportedRevision(f"`initialize` belongs to the revision {LEGACY}.", supported=list(REVISIONS))
        raise InvalidParams(f"params._meta.{REVISION_KEY}", "is missing.")
    return MODERN if MODERN in {header, stated} else LEGACY


def _check_headers(message: ClientMessage, meta: dict[str, Any], headers: Mapping[str, str]) -> None:
    """Raises `HeaderMismatch` if a header is missing or contradicts the body, and `InvalidParams`."""
    if type(meta.get(_CAPABILITIES_KEY)) is not dict:
        raise InvalidParams(f"params._meta.{_CAPABILITIES_KEY}", "must be an object.")
    expected: dict[str, Any] = {"Mcp-Method": message.method}
    if message.method in _NAMED:
        expected["Mcp-Name"] = message.params.get("name")
    for name, value in expected.items():
        header = headers.get(name.lower())
        if header is None:
            raise HeaderMismatch(f"The header {name} is missing.")
        if read_value(header) != value:
            raise HeaderMismatch(f"The header {name} differs from the body.")


def response(message_id: MessageId | None, result: dict[str, Any]) -> bytes:
    return encode({"jsonrpc": "2.0", "id": message_id, "result": result})


def error_response(message_id: MessageId | None, error: dict[str, Any]) -> bytes:
    # JSON-RPC: the id is null if it could not be read.
    return encode({"jsonrpc": "2.0", "id": message_id, "error": error})


def connection_request(message: str, url: str) -> dict[str, Any]:
    """Return a result that asks the agent to show a URL to its user, and then to repeat its request."""
    elicitation = {"method": "elicitation/create", "params": {"mode": "url", "message": message, "url": url}}
    return {"resultType": "input_required", "inputRequests": {"connect": elicitation}}


def complete(result: dict[str, Any], revision: str) -> dict[str, Any]:
    """Return a result with the fields that every result of the revision has."""
    if revision == LEGACY:
        return result
    return {"resultType": "complete", **result, "_meta": {_SERVER_KEY: IDENTITY}}


def request(message_id: MessageId, method: str, params: dict[str, Any], revision: str) -> bytes:
    """Return a request to a server. As a client, the gateway declares no capabilities."""
    if revision == MODERN:
        meta = {REVISION_KEY: MODERN, _CLIENT_KEY: IDENTITY, _CAPABILITIES_KEY: {}}
        params = {**params, "_meta": meta}
    return encode({"jsonrpc": "2.0", "id": message_id, "method": method, "params": params})


def notification(method: str) -> bytes:
    return encode({"jsonrpc": "2.0", "method": method})


def decode_upstream(data: bytes) -> dict[str, Any] | None:
    """Return a message of a server, or None if it is not a JSON-RPC message or is nested too deeply."""
    try:
        message = _decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if type(message) is not dict or message.get("jsonrpc") != "2.0" or deeper_than(message, MAX_DEPTH):
        return None
    return message


def server_info(result: dict[str, Any]) -> dict[str, Any]:
    """Return the name and version by which a server identifies itself, in either revision."""
    meta = result.get("_meta")
    info = meta.get(_SERVER_KEY) if type(meta) is dict else None
    info = info if type(info) is dict else result.get("serverInfo")
    if type(info) is not dict:
        return {}
    # PostgreSQL cannot store NUL characters.
    return {key: info[key][:255].replace("\0", "") for key in ("name", "version") if type(info.get(key)) is str}
