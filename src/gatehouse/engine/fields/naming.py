"""Finds the fields of a request's body that are not ordinary."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from gatehouse.engine.fields import tables
from gatehouse.engine.fields.tables import TOOLS, FieldGuard, Guards

#: Further hosted tool types of a body are ignored: one is enough for a refusal.
_MAX_TOOL_TYPES: Final = 32
#: Prefix of the names of unknown fields of tools. Not `TOOLS`: these fields are no hosted tools.
_TOOL_FIELD: Final = "tool."
#: Further unknown fields of tools are ignored.
_MAX_TOOL_FIELDS: Final = 32
#: Names are cut to this length for rules and refusals.
_MAX_NAME_CHARACTERS: Final = 64
#: Replaces a name in records that does not have the form of a field name, and could be any text.
_UNPRINTABLE: Final = "?"

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.:$-]{0,63}\Z")
#: Version suffix of a tool's type.
_VERSION: Final = re.compile(r"(?:_preview)?(?:[_-]\d{4}[_-]?\d{2}[_-]?\d{2})?\Z")
#: Dialects whose input has items, which may declare tools.
WITH_ITEMS: Final = frozenset({"openai_responses", "openai_token_count", "openai_compaction"})
#: Type of an item that repeats which tools an MCP server has. Only the request's tool `mcp` offers them to the model.
_LIST_OF_TOOLS: Final = "mcp_list_tools"
#: Fields of a body with a list of messages or items.
_CONVERSATIONS: Final = ("messages", "input")
#: Key of a container's id in items and tools.
_CONTAINER_ID: Final = "container_id"
#: Keys of ids in the options of tools, and their names in permissions.
_STORED: Final = {_CONTAINER_ID: tables.CONTAINER, "file_ids": tables.FILE_ID, tables.FILE_ID: tables.FILE_ID}
#: Keys of a function tool without a type.
_UNTYPED_TOOL_KEYS: Final = frozenset({"function", "cache_control"})


class Field(NamedTuple):
    """A field of a body. `name` is its name in permissions, `path` its place in the body."""

    name: str
    path: str
    value: Any


def uncommon(dialect: str, body: Mapping[str, Any]) -> tuple[Field, ...]:
    """Return the fields of a body that are not ordinary, including hosted tools and unknown fields of tools. Usually
    empty."""
    ordinary = tables.ORDINARY.get(dialect)
    if ordinary is None:
        # A scanned text has no dialect and no fields.
        return ()
    hosted: tuple[Field, ...] = ()
    if "tools" in body or dialect in WITH_ITEMS:
        hosted = (*hosted_tools(dialect, body), *unknown_tool_fields(dialect, body))
    # One comparison of sets covers the usual case.
    if body.keys() <= ordinary:
        return hosted
    fields = (Field(name, name[:_MAX_NAME_CHARACTERS], body[name]) for name in body if name not in ordinary)
    return (*fields, *hosted)


def guard_of(name: str, guards: Guards) -> tuple[str, FieldGuard] | None:
    """Return the table's name of a field, and its guard; None if it has none. Some servers accept `dataSources` or
    `Models` as other spellings of a field, so these are treated as the same field."""
    if name.startswith(TOOLS):
        # Without guards the call is converted, and a conversion sends no hosted tool.
        return (name, tables.TOOL) if guards else None
    guard = guards.get(name)
    if guard is not None:
        return name, guard
    canonical = _CANONICAL_NAMES.get(_normalized(name))
    guard = guards.get(canonical) if canonical is not None else None
    return None if canonical is None or guard is None else (canonical, guard)


def all_names(dialect: str, body: Mapping[str, Any]) -> list[str]:
    """Return the value of `request.fields` in policy rules: the body's fields, and hosted tools as `tools.<type>`."""
    names = dict.fromkeys(name[:_MAX_NAME_CHARACTERS] for name in body)
    names |= dict.fromkeys(field.name for field in hosted_tools(dialect, body))
    names |= dict.fromkeys(field.name for field in unknown_tool_fields(dialect, body))
    names |= dict.fromkeys(field.name for field in references(dialect, body))
    names |= dict.fromkeys(field.name for field in tool_references(dialect, body))
    return list(names)


def references(dialect: str, body: Mapping[str, Any]) -> Iterator[Field]:
    """Yield the ids in messages and items that refer to content stored by a provider: the `file_id` of each part of a
    message, of a tool's result or of an item, the recording of an earlier answer, and the container of an earlier
    call."""
    for field in _CONVERSATIONS:
        for index, item in enumerate(_list(body.get(field))):
            if type(item) is not dict:
                continue
            for key in ("content", "output"):
                yield from _in_parts(item.get(key), f"{field}[{index}].{key}")
            recording = item.get("audio")
            if type(recording) is dict and "id" in recording:
                yield Field(tables.FILE_ID, f"{field}[{index}].audio.id", recording["id"])
            if _CONTAINER_ID in item and dialect in WITH_ITEMS:
                yield Field(tables.CONTAINER, f"{field}[{index}].{_CONTAINER_ID}", item[_CONTAINER_ID])


def tool_references(dialect: str, body: Mapping[str, Any], left_out: tuple[str, ...] = ()) -> Iterator[Field]:
    """Yield the ids in declarations of tools that refer to content stored by a provider: containers, files and vector
    stores. Tools whose type has a prefix in `left_out` are not sent, so they are skipped."""
    for tool, path in declared_tools(dialect, body):
        if type(tool) is not dict or str(tool.get("type")).startswith(left_out):
            continue
        if tables.VECTOR_STORE_IDS in tool:
            yield Field(tables.VECTOR_STORE_IDS, f"{path}.{tables.VECTOR_STORE_IDS}", tool[tables.VECTOR_STORE_IDS])
        if type(tool.get("container")) is str:
            yield Field(tables.CONTAINER, f"{path}.container", tool["container"])
        for key in ("container", "environment", "input_image_mask"):
            holder = tool.get(key)
            if type(holder) is not dict:
                continue
            for member, name in _STORED.items():
                if member in holder:
                    yield Field(name, f"{path}.{key}.{member}", holder[member])


def _in_parts(parts: Any, path: str) -> Iterator[Field]:
    if type(parts) is dict:
        yield from _in_part(parts, path)
    for index, part in enumerate(_list(parts)):
        if type(part) is dict:
            here = f"{path}[{index}]"
            yield from _in_part(part, here)
            for inner, block in enumerate(_list(part.get("content"))):
                if type(block) is dict:
                    yield from _in_part(block, f"{here}.content[{inner}]")


def _in_part(part: Mapping[str, Any], path: str) -> Iterator[Field]:
    for holder, suffix in ((part, ""), (part.get("file"), ".file"), (part.get("source"), ".source")):
        if type(holder) is dict and tables.FILE_ID in holder:
            yield Field(tables.FILE_ID, f"{path}{suffix}.{tables.FILE_ID}", holder[tables.FILE_ID])


def _list(value: Any) -> list[Any]:
    return value if type(value) is list else []


def printable(name: str) -> str:
    """Return a name for records. It is the caller's text, so a name that does not have the form of a field name is
    replaced."""
    return name if _NAME.match(name) else _UNPRINTABLE


def hosted_tools(dialect: str, body: Mapping[str, Any]) -> Iterator[Field]:
    """Yield the tools that the client does not run itself, each type once."""
    client_tools = tables.CLIENT_TOOLS.get(dialect)
    if client_tools is None:
        return
    prefixes = tables.CLIENT_TOOL_PREFIXES.get(dialect, ())
    names: set[str] = set()
    for tool, path in declared_tools(dialect, body):
        if type(tool) is not dict:
            continue
        tool_type = tool.get("type")
        if type(tool_type) is str:
            if tool_type in client_tools or tool_type.startswith(prefixes):
                continue
        elif tool_type is not None:
            tool_type = ""
        else:
            tool_type = _key_as_name(dialect, tool)
            if tool_type is None:
                continue
        name = TOOLS + _VERSION.sub("", printable(tool_type))
        if name not in names and len(names) < _MAX_TOOL_TYPES:
            names.add(name)
            yield Field(name, f"{path}.type", tool)


def unknown_tool_fields(dialect: str, body: Mapping[str, Any]) -> Iterator[Field]:
    """Yield the fields of functions and custom tools that no dialect defines, each name once."""
    known = tables.TOOL_FIELDS.get(dialect)
    if known is None:
        return
    names: set[str] = set()
    for tool, path in declared_tools(dialect, body):
        if type(tool) is not dict or not _is_described(tool):
            continue
        key_as_name = _key_as_name(dialect, tool)
        described = [(tool, path, known if key_as_name is None else known | {key_as_name})]
        if dialect == "openai_chat":
            inner = ((tool.get(holder), f"{path}.{holder}") for holder in ("function", "custom"))
            described += [(value, place, tables.FUNCTION_FIELDS) for value, place in inner if type(value) is dict]
        for holder, place, fields in described:
            # One comparison of sets covers the usual case.
            if holder.keys() <= fields:
                continue
            for key in holder.keys() - fields:
                name = f"{_TOOL_FIELD}{key[:_MAX_NAME_CHARACTERS]}"
                if name not in names and len(names) < _MAX_TOOL_FIELDS:
                    names.add(name)
                    yield Field(name, f"{place}.{key[:_MAX_NAME_CHARACTERS]}", holder[key])


def _key_as_name(dialect: str, tool: Mapping[str, Any]) -> str | None:
    """Return the key that names a hosted tool without a type, as in `{"google_search": {}}`. None for other tools."""
    if tool.get("type") is not None or None in tables.CLIENT_TOOLS.get(dialect, ()):
        return None
    return next((key for key in tool if key not in _UNTYPED_TOOL_KEYS), None)


def _is_described(tool: Mapping[str, Any]) -> bool:
    tool_type = tool.get("type")
    return (tool_type is None or type(tool_type) is str) and tool_type in tables.DESCRIBED_TOOLS


def declared_tools(dialect: str, body: Mapping[str, Any]) -> Iterator[tuple[Any, str]]:
    """Yield each tool that a body declares, and its path."""
    yield from _listed(body.get("tools"), "tools")
    items = body.get("input")
    if dialect in WITH_ITEMS and type(items) is list:
        for index, item in enumerate(items):
            if type(item) is dict and "tools" in item and item.get("type") != _LIST_OF_TOOLS:
                yield from _listed(item["tools"], f"input[{index}].tools")


def _listed(tools: Any, path: str) -> Iterator[tuple[Any, str]]:
    for index, tool in enumerate(tools if type(tools) is list else ()):
        here = f"{path}[{index}]"
        yield tool, here
        if type(tool) is dict and tool.get("type") == "namespace":
            yield from _listed(tool.get("tools"), f"{here}.tools")


def _normalized(name: str) -> str:
    return name[:_MAX_NAME_CHARACTERS].casefold().translate(_WITHOUT_SEPARATORS)


_WITHOUT_SEPARATORS: Final = str.maketrans("", "", "_-")
_CANONICAL_NAMES: Final = {_normalized(name): name for name in tables.OPENAI_CHAT}
