"""Calls to providers that have the Responses API: writes the body for the provider, and edits its answers."""

import hashlib
import re
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, Final, Literal, NamedTuple

import msgspec

from gatehouse.engine.conversation.call import ModelCall, NativeOptions
from gatehouse.engine.conversation.decoding.optional_fields import word
from gatehouse.engine.conversation.dialects.openai_responses.reasoning import is_converted
from gatehouse.engine.conversation.dialects.openai_responses.references import References, kind_of
from gatehouse.engine.conversation.errors import InvalidField, NotConvertible


class NativeOperation(NamedTuple):
    """An operation of the Responses API. `path` is the key of its path in a kind's `paths`. If `native_only` is true,
    the operation is available only at providers with the API."""

    path: Literal["responses", "compact", "input_tokens"]
    native_only: bool = False


#: The operations by the client's dialect.
NATIVE_OPERATIONS: Final[Mapping[str, NativeOperation]] = {
    "openai_responses": NativeOperation("responses"),
    "openai_compaction": NativeOperation("compact", native_only=True),
    "openai_token_count": NativeOperation("input_tokens"),
    "openai_kept_response": NativeOperation("responses", native_only=True),
}
#: Prefixes of the types of hosted tools that are left out if the organization does not permit them. They are not
#: refused, because agents declare them in every request.
LEFT_OUT: Final = ("web_search", "image_generation")
#: Members of a response that repeat the request's texts, and what the client receives instead. The instructions may be
#: the organization's, and repeated texts would have to be inspected again.
_REPEATED: Final[Mapping[str, bytes]] = {
    "instructions": b"null",
    "metadata": b"{}",
    "prompt": b"null",
    "text": b'{"format":{"type":"text"}}',
    "tools": b"[]",
}
#: The provider's ids that a client may send back: of responses, and of items.
_IDS: Final = re.compile(
    rb'("(?:id|item_id|previous_response_id|approval_request_id|first_id|last_id)"\s*:\s*")'
    rb"((?:resp|msg|rs|fc|fco|ctc|ctco|ws|fs|ci|ig|mcp|mcpl|mcpr|cu|cmp|lsh|sh|ts|tso|am)_[A-Za-z0-9_-]{1,200})"
    rb'(?=")'
)
_CONTAINER_KEY: Final = b'"container_id"'
_CONTAINER: Final = re.compile(rb'("container_id"\s*:\s*")([^"\\]{1,200})(?=")')
#: Maximum number of ids that are remembered for one answer. Further ids are computed each time.
_MAX_REMEMBERED_IDS: Final = 1024
_SIGNATURES: Final = "extra_content"
#: Encrypted content in an answer, which only its provider can decrypt. The client receives it with a mark before it,
#: which identifies the provider. The mark consists of base64 characters, so that DLP treats the marked content as
#: sealed. Marks of earlier answers end with a dot.
_ENCRYPTED_KEY: Final = b'"encrypted_content"'
_ENCRYPTED: Final = re.compile(_ENCRYPTED_KEY + rb'\s*:\s*"(?=[^"])')
_MARK: Final = re.compile(r"(gw-[A-Za-z0-9_-]{11})[_.]")
_MAX_CACHED_MARKS: Final = 1024

_members: msgspec.json.Decoder[dict[str, msgspec.Raw]] = msgspec.json.Decoder(dict[str, msgspec.Raw])
_encode: Final = msgspec.json.Encoder().encode
_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


@lru_cache(_MAX_CACHED_MARKS)
def mark_of(provider: str) -> str:
    """Return the mark of the content that a provider encrypts."""
    digest = hashlib.blake2b(provider.encode(errors="surrogatepass"), digest_size=8).digest()
    return f"gw-{urlsafe_b64encode(digest).decode().rstrip('=')}_"


def left_out_tool(tool: Any, left_out: Sequence[str]) -> str | None:
    """Return the prefix in `left_out` with which the type of a tool begins, or None."""
    kind = word(tool.get("type")) if isinstance(tool, dict) else None
    return next((prefix for prefix in left_out if kind is not None and kind.startswith(prefix)), None)


def forwarded(call: ModelCall, model: str, provider: str) -> tuple[dict[str, Any], dict[str, None]]:
    """Return the body for the provider, and the names of tools and items that are left out. Raises `InvalidField` for
    a reference or for encrypted content that cannot be left out."""
    options = call.options
    lost: dict[str, None] = {}
    body = {**call.body, "model": model}
    if not options.keeps and NATIVE_OPERATIONS[call.dialect].path == "responses":
        # The default of the API is true.
        body["store"] = False
    if options.left_out and isinstance(body.get("tools"), list):
        body["tools"] = _remaining(body["tools"], options, lost)
    items = body.get("input")
    if isinstance(items, list):
        body["input"] = _forwarded_items(items, options, provider, lost)
    return body, lost


def _forwarded_items(
    items: Sequence[Any], options: NativeOptions, provider: str, lost: dict[str, None]
) -> Sequence[Any]:
    """Return the items for the provider. Adds the names of items that are left out to `lost`."""
    references: References | None = None
    remaining: list[Any] = []
    changed = False
    for index, item in enumerate(items):
        kind = kind_of(item)
        if kind == "item_reference" and word(item.get("id")) not in options.references:
            references = references or References(items)
            references.leave_out(index, lost)
            changed = True
            continue
        if kind == "reasoning" and is_converted(item):
            lost["input.reasoning"] = None
            changed = True
            continue
        forwarded_item = _unmarked(item, f"input[{index}]", kind, provider)
        if forwarded_item is None:
            lost["input.reasoning"] = None
            changed = True
            continue
        if _SIGNATURES in item:
            # The field belongs to another provider. This provider would refuse an unknown field.
            forwarded_item = {name: value for name, value in forwarded_item.items() if name != _SIGNATURES}
        if options.left_out and isinstance(item.get("tools"), list):
            forwarded_item = {**forwarded_item, "tools": _remaining(item["tools"], options, lost)}
        changed = changed or forwarded_item is not item
        remaining.append(forwarded_item)
    return remaining if changed else items


def _unmarked(item: dict[str, Any], path: str, kind: str | None, provider: str) -> dict[str, Any] | None:
    """Return an item without the mark of its encrypted content; None for reasoning that another provider encrypted.
    Raises `InvalidField` for other items that another provider encrypted, because the conversation needs them."""
    encrypted = item.get("encrypted_content")
    mark = _MARK.match(encrypted) if isinstance(encrypted, str) else None
    if mark is None or encrypted is None:
        return item
    if f"{mark[1]}_" == mark_of(provider):
        return {**item, "encrypted_content": encrypted[mark.end() :]}
    if kind == "reasoning":
        return None
    field = f"{path}.encrypted_content"
    raise InvalidField(
        field, f"`{field}`: another provider encrypted this item, and this one cannot read it. Use the same model."
    )


def _remaining(tools: Sequence[Any], options: NativeOptions, lost: dict[str, None]) -> list[Any]:
    """Return the tools, including those in namespaces, except the hosted tools that are left out. Adds the names of
    these tools to `lost`."""
    remaining = []
    for tool in tools:
        prefix = left_out_tool(tool, options.left_out)
        if prefix is not None:
            lost[f"tools.{prefix}"] = None
        elif isinstance(tool, dict) and tool.get("type") == "namespace" and isinstance(tool.get("tools"), list):
            remaining.append({**tool, "tools": _remaining(tool["tools"], options, lost)})
        else:
            remaining.append(tool)
    return remaining


class ResponseEditor:
    """Rewrites the responses of one call for the client. It inserts the requested model name, the provider's mark in
    encrypted content and, if the provider keeps the response, ids that are bound to the caller. It removes repetitions
    of the request's texts."""

    __slots__ = ("_mark", "_model", "_public", "_public_container", "_public_id")

    def __init__(self, call: ModelCall, provider: str, model: str) -> None:
        self._model = msgspec.Raw(_encode(call.model))
        self._mark = mark_of(provider).encode()
        options = call.options
        self._public_id: Callable[[str], str] | None = None
        self._public_container: Callable[[str], str] | None = None
        if options.keeps and options.public_id is not None:
            self._public_id = partial(options.public_id, provider, model)
        if options.public_container is not None:
            self._public_container = partial(options.public_container, provider, model)
        #: public ids, by the provider's ids; kept because later events repeat the ids
        self._public: dict[bytes, bytes] = {}

    def body(self, body: bytes) -> bytes:
        """Return a complete answer for the client. Raises `NotConvertible`."""
        return self.edited(self.response(body))

    def response(self, data: bytes) -> bytes:
        """Return a rewritten response object, which still has the provider's ids. Raises `NotConvertible` if `data` is
        not an object."""
        try:
            members = _members.decode(data)
        except _UNREADABLE:
            raise NotConvertible("the response is not an object") from None
        if "model" in members:
            members["model"] = self._model
        for name, replacement in _REPEATED.items():
            if name in members:
                members[name] = msgspec.Raw(replacement)
        return _encode(members)

    def edited(self, data: bytes) -> bytes:
        """Return the data with the client's ids and with marks. No text is changed, because quotes are escaped within
        JSON strings."""
        if _ENCRYPTED_KEY in data:
            data = _ENCRYPTED.sub(rb"\g<0>" + self._mark, data)
        if self._public_container is not None and _CONTAINER_KEY in data:
            data = _CONTAINER.sub(partial(self._replaced, self._public_container), data)
        return data if self._public_id is None else _IDS.sub(partial(self._replaced, self._public_id), data)

    def _replaced(self, public_id: Callable[[str], str], match: re.Match[bytes]) -> bytes:
        upstream = match[2]
        public = self._public.get(upstream)
        if public is None:
            public = public_id(upstream.decode()).encode()
            if len(self._public) < _MAX_REMEMBERED_IDS:
                self._public[upstream] = public
        return match[1] + public
