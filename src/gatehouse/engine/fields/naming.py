"""Finds what is not ordinary in a request's body."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from gatehouse.engine.fields import tables
from gatehouse.engine.fields.tables import TOOLS, Guard, Guards

#: Hosted tool types of one body that are told apart; one is enough for a refusal.
_MAX_TOOL_TYPES: Final = 32
#: How much of a name rules and refusals see.
_MAX_NAME_CHARACTERS: Final = 64
#: Stands in records for a name that is not written as a field's name is, and could be anything.
_UNPRINTABLE: Final = "?"

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.:$-]{0,63}\Z")
#: How providers mark the version of a tool's type.
_VERSION: Final = re.compile(r"(?:_preview)?(?:[_-]\d{4}[_-]?\d{2}[_-]?\d{2})?\Z")
#: All that a function may hold that does not say its type.
_UNTYPED: Final = frozenset({"function", "cache_control"})


class Field(NamedTuple):
    """`name` is the one that permissions use, `path` where it stands, `value` what it holds."""

    name: str
    path: str
    value: Any


def uncommon(dialect: str, body: Mapping[str, Any]) -> tuple[Field, ...]:
    """What of a body is in no list of ordinary fields, hosted tools included. Nearly always empty."""
    ordinary = tables.ORDINARY.get(dialect)
    if ordinary is None:
        # A text that is scanned has no dialect, and no fields.
        return ()
    tools = body.get("tools")
    hosted = tuple(_hosted(dialect, tools)) if tools else ()
    # One comparison of sets for what is nearly always so.
    if body.keys() <= ordinary:
        return hosted
    fields = (Field(name, name[:_MAX_NAME_CHARACTERS], body[name]) for name in body if name not in ordinary)
    return (*fields, *hosted)


def guard_of(name: str, guards: Guards) -> tuple[str, Guard] | None:
    """The table's name of a field, and what stands there. Some servers read `dataSources` or `Models` as the names that
    they know, so another spelling counts as the same field."""
    if name.startswith(TOOLS):
        return name, tables.TOOL
    guard = guards.get(name)
    if guard is not None:
        return name, guard
    spelled = _SPELLINGS.get(_plain(name))
    guard = guards.get(spelled) if spelled is not None else None
    return None if spelled is None or guard is None else (spelled, guard)


def all_names(dialect: str, body: Mapping[str, Any]) -> list[str]:
    """What policy rules see as `request.fields`: the body's fields, and hosted tools as `tools.<type>`."""
    names = dict.fromkeys(name[:_MAX_NAME_CHARACTERS] for name in body)
    names |= dict.fromkeys(field.name for field in _hosted(dialect, body.get("tools")))
    return list(names)


def printable(name: str) -> str:
    """A name as records have it. It is the caller's own text: what is not written as fields' names are is left out."""
    return name if _NAME.match(name) else _UNPRINTABLE


def _hosted(dialect: str, tools: Any) -> Iterator[Field]:
    """Tools that the client does not run itself, each type once."""
    plain = tables.CLIENT_TOOLS.get(dialect)
    if plain is None or type(tools) is not list:
        return
    prefixes = tables.CLIENT_TOOL_PREFIXES.get(dialect, ())
    seen: set[str] = set()
    for index, tool in enumerate(tools):
        if type(tool) is not dict:
            continue
        kind = tool.get("type")
        if type(kind) is str:
            if kind in plain or kind.startswith(prefixes):
                continue
        elif kind is not None:
            kind = ""
        elif None in plain or tool.keys() <= _UNTYPED:
            continue
        else:
            # Some servers name a tool by a key: `{"google_search": {}}`.
            kind = next(key for key in tool if key not in _UNTYPED)
        name = TOOLS + _VERSION.sub("", printable(kind))
        if name not in seen and len(seen) < _MAX_TOOL_TYPES:
            seen.add(name)
            yield Field(name, f"tools[{index}].type", tool)


def _plain(name: str) -> str:
    return name[:_MAX_NAME_CHARACTERS].casefold().translate(_JOINTS)


_JOINTS: Final = str.maketrans("", "", "_-")
_SPELLINGS: Final = {_plain(name): name for name in tables.OPENAI_CHAT}
