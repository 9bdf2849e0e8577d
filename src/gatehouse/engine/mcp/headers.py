"""HTTP headers that repeat values of a message, so that intermediaries can route it (revision 2026-07-28)."""

import binascii
import re
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from typing import Any, Final

#: annotation of a property whose value is repeated in the header `Mcp-Param-{annotation}`
ANNOTATION: Final = "x-mcp-header"

_BEGIN: Final = "=?base64?"
_END: Final = "?="
_plain: Final = re.compile(r"[!-~](?:[ -~\t]*[!-~])?").fullmatch
_token: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}").fullmatch
_PRIMITIVES: Final = frozenset({"string", "integer", "boolean"})
#: integers that JavaScript represents exactly
_MAX_INTEGER: Final = 2**53 - 1
#: maximum number of parameters of a tool that are repeated in headers
_MAX_ANNOTATIONS: Final = 32
_MAX_VALUE_CHARACTERS: Final = 4096


class InvalidAnnotation(ValueError):
    """A tool's `x-mcp-header` violates the protocol. The text is a fault for administrators."""


def read_value(header: str) -> str | None:
    """Return the value of a header, decoded if it is in base64. None if the encoding is invalid."""
    if not (header.startswith(_BEGIN) and header.endswith(_END) and len(header) >= len(_BEGIN) + len(_END)):
        return header
    try:
        return b64decode(header[len(_BEGIN) : -len(_END)], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None


def write_value(value: str) -> str:
    """Return a value in the form of a header: in base64 if it is not plain ASCII."""
    if _plain(value) and not (value.startswith(_BEGIN) and value.endswith(_END)):
        return value
    return f"{_BEGIN}{b64encode(value.encode(errors='replace')).decode()}{_END}"


def annotated_parameters(schema: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Return the paths of the annotated properties of an input schema, by the names of their headers. Raises
    `InvalidAnnotation`."""
    paths: dict[str, tuple[str, ...]] = {}
    reachable = 0
    for path, definition in _properties(schema, ()):
        if ANNOTATION not in definition:
            continue
        reachable += 1
        name, kind = definition[ANNOTATION], definition.get("type")
        if type(name) is not str or not _token(name):
            raise InvalidAnnotation(f"{ANNOTATION} of {path[-1]!r} is not the name of a header")
        if type(kind) is not str or kind not in _PRIMITIVES:
            raise InvalidAnnotation(f"{ANNOTATION} of {path[-1]!r}: its type is not string, integer or boolean")
        if name.lower() in {other.lower() for other in paths}:
            raise InvalidAnnotation(f"{ANNOTATION} {name!r} occurs twice")
        paths[name] = path
        # Checked in the loop, because the comparison of names is quadratic.
        if len(paths) > _MAX_ANNOTATIONS:
            raise InvalidAnnotation(f"more than {_MAX_ANNOTATIONS} parameters have {ANNOTATION}")
    if _count(schema) != reachable:
        raise InvalidAnnotation(f"{ANNOTATION} in a place other than a property of an object")
    return paths


def _properties(schema: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """Yield the paths and definitions of an object's properties, and of the properties of objects in it."""
    properties = schema.get("properties")
    for name, definition in properties.items() if type(properties) is dict else ():
        if type(definition) is dict:
            yield (*path, name), definition
            yield from _properties(definition, (*path, name))


def _count(value: Any) -> int:
    """Return the number of annotations anywhere in a schema. A property that is itself named `x-mcp-header` is not
    one."""
    if type(value) is list:
        return sum(map(_count, value))
    if type(value) is not dict:
        return 0
    below = sum(_count(item) for key, item in value.items() if key != "properties")
    properties = value.get("properties")
    below += sum(map(_count, properties.values())) if type(properties) is dict else _count(properties)
    return below + (ANNOTATION in value)


def without_annotations(value: Any) -> Any:
    """Return a schema without annotations. The gateway sends the headers itself."""
    if type(value) is list:
        return [without_annotations(item) for item in value]
    if type(value) is not dict:
        return value
    return {
        key: {name: without_annotations(item) for name, item in entry.items()}
        if key == "properties" and type(entry) is dict
        else without_annotations(entry)
        for key, entry in value.items()
        if key != ANNOTATION
    }


def parameter_headers(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, str]:
    """Return the `Mcp-Param-` headers of a call. A parameter without a value has no header. Raises `ValueError` for a
    value that cannot be sent as a header."""
    headers: dict[str, str] = {}
    for name, path in annotated_parameters(schema).items():
        value: Any = arguments
        for step in path:
            value = value.get(step) if type(value) is dict else None
        if value is not None:
            headers[f"Mcp-Param-{name}"] = write_value(_text(".".join(path), value))
    return headers


def _text(path: str, value: Any) -> str:
    if type(value) is bool:
        return "true" if value else "false"
    if type(value) is int and abs(value) <= _MAX_INTEGER:
        return str(value)
    if type(value) is str and len(value) <= _MAX_VALUE_CHARACTERS:
        return value
    raise ValueError(path)
