"""Definitions of tools: validation, hash and differences.

A definition is stored and compared as JSON with sorted keys. Only the fields in `FIELDS` are part of it, and only these
are forwarded to agents.
"""

import hashlib
import re
from typing import Any, Final

import msgspec

from gatehouse.engine.conversation.decoding.bodies import MAX_DEPTH, deeper_than
from gatehouse.engine.mcp.headers import ANNOTATION, InvalidAnnotation, annotated_parameters, without_annotations

#: the fields that the hash covers, in the order in which `differences` returns them
FIELDS: Final = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")
MAX_DEFINITION_BYTES: Final = 64 * 1024
MAX_TOOLS: Final = 1_000

MAX_NAME_CHARACTERS: Final = 128

#: The characters that the protocol recommends. They exclude look-alike letters of other alphabets.
is_tool_name: Final = re.compile(rf"[A-Za-z0-9_.-]{{1,{MAX_NAME_CHARACTERS}}}").fullmatch

#: Decodes only the names of the fields, which is faster.
_fields: Final[msgspec.json.Decoder[dict[str, msgspec.Raw]]] = msgspec.json.Decoder(dict[str, msgspec.Raw])

#: the type of each optional field, and the name of the type for error messages
_TYPES: Final = {
    "title": (str, "a text"),
    "description": (str, "a text"),
    "inputSchema": (dict, "an object"),
    "outputSchema": (dict, "an object"),
    "annotations": (dict, "an object"),
}


class InvalidDefinition(ValueError):
    """A definition that cannot be offered to agents. The message is for administrators, and begins with the tool's
    name."""


class Definition(msgspec.Struct, frozen=True, kw_only=True):
    """A valid definition. `text` is its JSON, and `hash` the hash of `text`."""

    name: str
    text: str
    hash: str


class FieldDifference(msgspec.Struct, frozen=True, kw_only=True):
    """A field in which two definitions differ. None means that the field is absent."""

    field: str
    approved: Any
    present: Any


def read_definition(tool: Any) -> Definition:
    """Return the definition of a tool in a server's list. Raises `InvalidDefinition`."""
    name = tool.get("name") if type(tool) is dict else None
    if type(name) is not str or not is_tool_name(name):
        shown = name[:MAX_NAME_CHARACTERS] if type(name) is str else name
        raise InvalidDefinition(f"{shown!r}: a name must be 1 to {MAX_NAME_CHARACTERS} of A-Z a-z 0-9 _ . -")
    values = {field: tool[field] for field in FIELDS if tool.get(field) is not None}
    for field, (kind, type_name) in _TYPES.items():
        if field in values and type(values[field]) is not kind:
            raise InvalidDefinition(f"{name}: {field} is not {type_name}")
    if "inputSchema" not in values:
        raise InvalidDefinition(f"{name}: inputSchema is missing")
    if deeper_than(values, MAX_DEPTH):
        raise InvalidDefinition(f"{name}: it is nested more than {MAX_DEPTH} levels deep")
    try:
        annotated_parameters(values["inputSchema"])
    except InvalidAnnotation as fault:
        raise InvalidDefinition(f"{name}: {fault}") from None
    encoded = msgspec.json.encode(values, order="sorted")
    if len(encoded) > MAX_DEFINITION_BYTES:
        raise InvalidDefinition(f"{name}: the definition is over {MAX_DEFINITION_BYTES // 1024} KiB")
    if b"\\u0000" in encoded:
        raise InvalidDefinition(f"{name}: the definition contains a NUL character")
    return Definition(name=name, text=encoded.decode(), hash=f"sha256:{hashlib.sha256(encoded).hexdigest()}")


def differences(approved: str, present: str) -> list[FieldDifference]:
    """Return the fields in which two definitions differ."""
    before, after = msgspec.json.decode(approved), msgspec.json.decode(present)
    return [
        FieldDifference(field=field, approved=before.get(field), present=after.get(field))
        for field in FIELDS
        if before.get(field) != after.get(field)
    ]


def input_schema(definition: str) -> dict[str, Any]:
    """Return the input schema of a stored definition, or an empty schema if the definition annotates no parameter."""
    if ANNOTATION not in definition:
        return {}
    schema: dict[str, Any] = msgspec.json.decode(definition)["inputSchema"]
    return schema


def for_agents(definition: str) -> str:
    """Return a stored definition as agents receive it."""
    if ANNOTATION not in definition:
        return definition
    return msgspec.json.encode(without_annotations(msgspec.json.decode(definition))).decode()


def renamed(definition: str, name: str, other_name: str) -> str:
    """Return a definition with another name. Both names must be valid names of tools."""
    field = f'"name":"{name}"'
    if definition.count(field) == 1:
        # The match is the member itself, because quotes within a text are escaped. Replacing it takes a tenth of the
        # time of decoding.
        return definition.replace(field, f'"name":"{other_name}"')
    fields = _fields.decode(definition)
    fields["name"] = msgspec.Raw(msgspec.json.encode(other_name))
    return msgspec.json.encode(fields).decode()
