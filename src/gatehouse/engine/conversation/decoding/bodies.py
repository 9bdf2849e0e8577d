"""Decodes a client's body to a validated dict. Every error is a 400 that identifies the field, never a 5xx.

The dict has the whole content of the bytes, so the client's own bytes can be forwarded if no stage has changed the
body. A duplicate field is refused, because the provider might use the value that the gateway has not read.
"""

import json
import re
from collections.abc import Sequence, Set
from functools import cache
from typing import Any, Final, NoReturn, TypeVar

import msgspec

from gatehouse.engine.conversation.call import ModelCall
from gatehouse.engine.conversation.decoding.faults import invalid_field
from gatehouse.engine.conversation.errors import InvalidField, MalformedCall, NestedTooDeep

MAX_DEPTH = 100
MAX_MODEL_NAME_CHARACTERS = 256
MAX_FALLBACKS = 16
#: maximum number of top-level fields of a body; no provider defines a quarter as many fields
MAX_FIELDS = 256

#: largest body that is searched for the name of a duplicate field; a longer search would delay other requests
_MAX_SEARCHED_BYTES: Final = 64 * 1024
_SPACES: Final = b" \t\r\n"
#: Strings and the separators between them in a list, after escaped quotation marks are removed. A long list is one
#: match, which takes no memory because the regex does not backtrack.
_STRINGS: Final = re.compile(rb'(?:"[^"]*+"[, \t\r\n]*+)++')
#: a number that may have more digits than a float
_LONG_NUMBER: Final = re.compile(rb"[0-9.]{16}|[eE][+-]?[0-9]{3}")

_decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder()
#: encodes a body for a provider
encode: Final = msgspec.json.Encoder().encode
Shape = TypeVar("Shape", bound=msgspec.Struct)


class CallShape(msgspec.Struct, gc=False):
    """The fields that the gateway reads; a dialect adds its own. Other fields are not validated."""

    model: str
    stream: bool | None = None
    fallbacks: list[str] | None = None


def decode_call(dialect: str, body: bytes, shape: type[CallShape], **further_fields: Any) -> ModelCall:
    """Return the model call in a client's body, with `further_fields` of `ModelCall`. Raises `MalformedCall`,
    `NestedTooDeep` or `InvalidField`."""
    values = decode_object(body)
    read, exact = encode(values), True
    # Most clients write JSON as `encode` does, or with spaces.
    if read == body:
        read = body
    elif read.translate(None, _SPACES) != body.translate(None, _SPACES):
        exact = _is_exact(body, read)
    return call_of(dialect, values, shape, raw_body=body, unchanged_body=read, exact=exact, **further_fields)


def call_of(dialect: str, values: dict[str, Any], shape: type[CallShape], **further_fields: Any) -> ModelCall:
    """Return the model call of a decoded body, with `further_fields` of `ModelCall`. Raises `InvalidField`."""
    if len(values) > MAX_FIELDS:
        raise InvalidField("body", f"The body has more than {MAX_FIELDS} fields.")
    fields = _fields(shape)
    if not fields.issuperset(values):
        _refuse_other_case(values.keys() - fields, fields)
    checked = conform(values, shape)
    model = _model_name("model", checked.model)
    fallbacks: tuple[str, ...] = ()
    if "fallbacks" in values:
        fallbacks = _fallbacks(checked.fallbacks or ())
        del values["fallbacks"]
    return ModelCall(
        dialect=dialect,
        model=model,
        stream=checked.stream or False,
        body=values,
        fallbacks=fallbacks,
        **further_fields,
    )


def decode_object(body: bytes) -> dict[str, Any]:
    try:
        values = _decoder.decode(body)
    except RecursionError:
        raise NestedTooDeep from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise MalformedCall(_json_error_message(error)) from None
    if type(values) is not dict:
        raise MalformedCall
    # A body with few brackets cannot be deep; counting them is much cheaper than a traversal.
    if body.count(b"{") + body.count(b"[") > MAX_DEPTH and deeper_than(values, MAX_DEPTH):
        raise NestedTooDeep
    if b"\\u0000" in body:
        _refuse_nul(values, [])
    return values


_BYTE_OFFSET: Final = re.compile(r"\(byte ([0-9]+)\)")


def _json_error_message(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "The body is not valid JSON: it is not encoded as UTF-8."
    if "truncated" in str(error):
        return "The body is not valid JSON: it ends too early."
    offset = _BYTE_OFFSET.search(str(error))
    return "The body is not valid JSON." if offset is None else f"The body is not valid JSON: see its byte {offset[1]}."


def _is_exact(body: bytes, read: bytes) -> bool:
    """Return whether decoding kept all digits of all numbers. Raises `InvalidField` for a duplicate field. Decoding
    keeps only one value of such a field, so the re-encoded body has fewer colons."""
    original, reencoded = _outside_strings(body), _outside_strings(read)
    if original.count(b":") != reencoded.count(b":"):
        _refuse_duplicate(body)
    return original == reencoded or _LONG_NUMBER.search(original) is None


def _outside_strings(body: bytes) -> bytes:
    """Return valid JSON without its strings and spaces."""
    return _STRINGS.sub(b"", body.replace(rb"\\", b"").replace(rb"\"", b"")).translate(None, _SPACES)


def _refuse_duplicate(body: bytes) -> NoReturn:
    def check_names(members: list[tuple[str, Any]]) -> None:
        names: set[str] = set()
        for name, _ in members:
            if name in names:
                raise InvalidField(name, f"`{name}` occurs twice in one object.")
            names.add(name)

    if len(body) <= _MAX_SEARCHED_BYTES:
        try:
            json.loads(body, object_pairs_hook=check_names, parse_int=str, parse_float=str)
        except RecursionError:
            # The nesting is in the dropped duplicate, which `decode_object` did not see.
            raise NestedTooDeep from None
    raise InvalidField("body", "A field occurs twice in one object.")


@cache
def _fields(shape: type[CallShape]) -> frozenset[str]:
    return frozenset(shape.__struct_fields__)


def _refuse_other_case(others: Set[str], fields: frozenset[str]) -> None:
    """Refuses names that differ from known fields only in case: servers in Go read `Model` as `model`."""
    if not fields.isdisjoint(map(str.casefold, others)):
        name = next(name for name in others if name.casefold() in fields)
        raise InvalidField(name, f"`{name}` must be written `{name.casefold()}`.")


def conform(values: dict[str, Any], shape: type[Shape]) -> Shape:
    try:
        return msgspec.convert(values, shape)
    except msgspec.ValidationError as error:
        raise invalid_field(str(error)) from None


def _model_name(field: str, name: str) -> str:
    if not name or len(name) > MAX_MODEL_NAME_CHARACTERS or not name.isprintable():
        raise InvalidField(field, f"`{field}` must be 1 to {MAX_MODEL_NAME_CHARACTERS} printable characters.")
    return name


def _fallbacks(names: Sequence[str]) -> tuple[str, ...]:
    if len(names) > MAX_FALLBACKS:
        raise InvalidField("fallbacks", f"`fallbacks` holds at most {MAX_FALLBACKS} models.")
    return tuple(_model_name(f"fallbacks[{index}]", name) for index, name in enumerate(names))


def deeper_than(value: Any, limit: int) -> bool:
    """Return whether a decoded value, an object or a list, is nested more deeply than `limit`."""
    level = [value]
    for _ in range(limit):
        children: list[Any] = []
        for container in level:
            inner = container.values() if type(container) is dict else container
            children.extend(item for item in inner if type(item) is dict or type(item) is list)
        if not children:
            return False
        level = children
    return True


def _refuse_nul(value: Any, path: list[str | int]) -> None:
    """Refuses NUL characters. `path` has the field names and list indexes of the value; it is formatted only for an
    error."""
    if type(value) is str:
        if "\0" in value:
            raise InvalidField(_format_path(path), f"`{_format_path(path)}` contains a NUL character.")
    elif type(value) is list:
        path.append(0)
        for index, item in enumerate(value):
            path[-1] = index
            _refuse_nul(item, path)
        path.pop()
    elif type(value) is dict:
        path.append("")
        for key, item in value.items():
            if "\0" in key:
                raise InvalidField(_format_path(path[:-1]) or "body", "A field's name contains a NUL character.")
            path[-1] = key
            _refuse_nul(item, path)
        path.pop()


def _format_path(path: Sequence[str | int]) -> str:
    return "".join(f"[{step}]" if type(step) is int else f".{step}" for step in path).removeprefix(".")
