"""Converts the tools of a request to functions, and the names of called functions back to tools.

A custom tool becomes a function with one string parameter. The tools of a namespace become functions whose names begin
with the namespace. Tools that OpenAI runs cannot be offered. If clients declare such a tool by default, it is left out.
A request with any other such tool is refused.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from gatehouse.engine.conversation.conversion import custom_tools
from gatehouse.engine.conversation.decoding.optional_fields import boolean, text, word
from gatehouse.engine.conversation.errors import InvalidField
from gatehouse.engine.conversation.form import Tool, ToolChoice

#: Prefixes of the types of tools that are left out. A model answers without them, and agents declare them in every
#: request.
_LEFT_OUT: Final = ("web_search", "tool_search", "image_generation")
#: items of the input that declare tools
DECLARING_ITEMS: Final = frozenset({"additional_tools", "tool_search_output"})
#: fields of a tool that are converted, or have no effect here
_TOOL_FIELDS: Final = frozenset(
    {"type", "name", "description", "parameters", "strict", "format", "defer_loading", "allowed_callers"}
)
_SEPARATOR: Final = "__"
#: names of functions that all providers accept
_FUNCTION_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_DIGEST_CHARACTERS: Final = 16
#: the vendor's limit for a name
MAX_NAME_CHARACTERS: Final = 128
#: maximum number of tools of a request, including namespaces and their tools; the vendor's limit is 128
MAX_TOOLS: Final = 1024
_TYPE_NAME: Final = re.compile(r"[a-z_0-9]{1,64}")


class ToolKey(NamedTuple):
    """The name of a tool. `namespace` is None for a tool outside of namespaces."""

    namespace: str | None
    name: str


class DeclaredTool(NamedTuple):
    """A tool of the request. `function` is the function that stands for it."""

    key: ToolKey
    function: Tool
    is_custom: bool


class OfferedTools:
    """The tools of a request."""

    __slots__ = ("_accepts_hosted", "_count", "_names", "_taken", "by_function", "lost")

    def __init__(self, *, accepts_hosted: bool = False) -> None:
        self._accepts_hosted = accepts_hosted
        #: by the function's name
        self.by_function: dict[str, DeclaredTool] = {}
        self._names: dict[ToolKey, str] = {}
        self._taken: set[str] = set()
        self._count = 0
        #: names of tools and fields of tools that are left out
        self.lost: dict[str, None] = {}

    def add(self, tool: Mapping[str, Any], path: str, namespace: str | None = None, introduction: str = "") -> None:
        """Adds a tool. `introduction` precedes its description. Raises `InvalidField` for a tool that can be neither
        converted nor left out."""
        self._count += 1
        if self._count > MAX_TOOLS:
            raise InvalidField("tools", f"A request declares at most {MAX_TOOLS} tools, with those of its namespaces.")
        kind = word(tool.get("type"))
        if kind == "namespace" and namespace is None:
            name, introduction = _name(tool, path), word(tool.get("description")) or ""
            members = tool.get("tools")
            if not isinstance(members, list):
                raise InvalidField(f"{path}.tools", f"`{path}.tools` must be a list of tools.")
            for index, member in enumerate(members):
                member_path = f"{path}.tools[{index}]"
                if not isinstance(member, dict):
                    raise InvalidField(member_path, f"`{member_path}` must be an object.")
                self.add(member, member_path, name, introduction)
                if member.get("type") in ("function", "custom"):
                    # Only the first tool gets the description of the namespace. Copies for all could fill the memory.
                    introduction = ""
        elif kind in {"function", "custom"}:
            self._declare(tool, path, namespace, introduction)
        elif kind is not None and kind.startswith(_LEFT_OUT):
            self.lost["tools." + next(prefix for prefix in _LEFT_OUT if kind.startswith(prefix))] = None
        elif kind is None or not self._accepts_hosted:
            raise _not_offered(kind, f"{path}.type")

    def function_name(self, key: ToolKey) -> str:
        """Return the name of the function that stands for a tool, whether the request declares it or not."""
        name = self._names.get(key)
        if name is None:
            name = self._names[key] = self._new_name(key)
            self._taken.add(name)
        return name

    def _declare(self, tool: Mapping[str, Any], path: str, namespace: str | None, introduction: str) -> None:
        key = ToolKey(namespace, _name(tool, path))
        description = text(tool, "description")
        if introduction:
            description = "\n\n".join(filter(None, (introduction, description)))
        name, is_custom = self.function_name(key), tool["type"] == "custom"
        if is_custom:
            input_format = tool.get("format")
            function = custom_tools.function_of(
                name, description, input_format if isinstance(input_format, dict) else None
            )
        else:
            parameters = tool.get("parameters")
            if parameters is not None and not isinstance(parameters, dict):
                raise InvalidField(f"{path}.parameters", f"`{path}.parameters` must be an object.")
            function = Tool(name=name, description=description, parameters=parameters, strict=boolean(tool, "strict"))
        self.by_function[name] = DeclaredTool(key, function, is_custom)
        for field in tool.keys() - _TOOL_FIELDS:
            self.lost[f"tools.{field}"] = None

    def _new_name(self, key: ToolKey) -> str:
        if key.namespace is None:
            return key.name
        name = f"{key.namespace}{_SEPARATOR}{key.name}"
        if name not in self._taken and _FUNCTION_NAME.fullmatch(name):
            return name
        digest = hashlib.sha256(f"{key.namespace}\0{key.name}".encode(errors="surrogatepass")).hexdigest()
        return f"tool_{digest[:_DIGEST_CHARACTERS]}"


def read_tools(body: Mapping[str, Any], *, accepts_hosted: bool = False) -> OfferedTools:
    """Return the tools of a request: those in `tools`, and those that its items add. Raises `InvalidField`.
    If `accepts_hosted` is true, tools that OpenAI runs are left out of the result. Otherwise they are refused."""
    declared = list(_declarations(body))
    tools = OfferedTools(accepts_hosted=accepts_hosted)
    # Names without a namespace remain unchanged, so they are reserved first.
    for tool, _ in declared:
        if word(tool.get("type")) in {"function", "custom"} and isinstance(tool.get("name"), str):
            tools.function_name(ToolKey(None, tool["name"]))
    for tool, path in declared:
        tools.add(tool, path)
    return tools


def count_functions(body: Mapping[str, Any]) -> int:
    """Return an upper bound of the number of functions to which the tools of a decoded request are converted."""
    return sum(
        len(tool["tools"]) if tool.get("type") == "namespace" else 1
        for tool, _ in _declarations(body)
        if not tool["type"].startswith(_LEFT_OUT)
    )


def read_choice(choice: Any, tools: OfferedTools) -> tuple[ToolChoice | None, tuple[Tool, ...]]:
    """Return the choice and the functions that are offered. Raises `InvalidField` if the choice needs a tool that is
    not offered."""
    functions = tuple(tool.function for tool in tools.by_function.values())
    if choice is None or choice in ("auto", "none"):
        return (None if choice is None else ToolChoice(choice)), functions
    if isinstance(choice, dict) and choice.get("type") == "allowed_tools":
        return _read_allowed(choice, tools)
    if choice == "required":
        if not functions and tools.lost:
            raise InvalidField("tool_choice", "`tool_choice` is `required`, but the gateway offers none of the tools.")
        return ToolChoice("required"), functions
    if isinstance(choice, dict):
        kind = word(choice.get("type"))
        if kind in {"function", "custom"} and isinstance(choice.get("name"), str):
            return ToolChoice("named", tools.function_name(_key_of(choice))), functions
        if kind is not None and kind not in {"function", "custom"}:
            raise _not_offered(kind, "tool_choice.type")
    raise InvalidField("tool_choice", "`tool_choice` must be `auto`, `none`, `required` or name a tool.")


def _read_allowed(choice: Mapping[str, Any], tools: OfferedTools) -> tuple[ToolChoice, tuple[Tool, ...]]:
    mode, listed = choice.get("mode", "auto"), choice.get("tools")
    if mode not in ("auto", "required") or not isinstance(listed, list):
        raise InvalidField("tool_choice", "`tool_choice` must have a `mode` (`auto` or `required`) and `tools`.")
    names = {
        tools.function_name(_key_of(tool))
        for tool in listed
        if isinstance(tool, dict) and isinstance(tool.get("name"), str)
    }
    allowed = tuple(tool.function for name, tool in tools.by_function.items() if name in names)
    if not allowed:
        raise InvalidField("tool_choice.tools", "`tool_choice.tools` names none of the functions and custom tools.")
    return ToolChoice(mode), allowed


def _key_of(named: Mapping[str, Any]) -> ToolKey:
    namespace = named.get("namespace")
    return ToolKey(namespace if isinstance(namespace, str) else None, named["name"])


def _declarations(body: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yields each tool and its path."""
    for index, tool in enumerate(body.get("tools") or ()):
        yield tool, f"tools[{index}]"
    items: Sequence[Any] | str = body.get("input") or ()
    for number, item in enumerate(() if isinstance(items, str) else items):
        kind = item.get("type")
        if type(kind) is not str or kind not in DECLARING_ITEMS:
            continue
        path, added = f"input[{number}].tools", item.get("tools")
        if not isinstance(added, list) or not all(isinstance(tool, dict) for tool in added):
            raise InvalidField(path, f"`{path}` must be a list of tools.")
        for index, tool in enumerate(added):
            yield tool, f"{path}[{index}]"


def _name(tool: Mapping[str, Any], path: str) -> str:
    name = tool.get("name")
    if not isinstance(name, str) or not name:
        raise InvalidField(f"{path}.name", f"`{path}.name` is required.")
    if len(name) > MAX_NAME_CHARACTERS:
        raise InvalidField(f"{path}.name", f"`{path}.name` has more than {MAX_NAME_CHARACTERS} characters.")
    return name


def _not_offered(kind: str | None, path: str) -> InvalidField:
    # Any other value may be an arbitrary text, so it is not repeated.
    shown = f"of the type `{kind}`" if kind is not None and _TYPE_NAME.fullmatch(kind) else "of this type"
    return InvalidField(
        path,
        f"`{path}`: the gateway offers no tool {shown}. It converts tools of the types `function`, `custom` and"
        " `namespace`, which the client runs.",
    )
