"""Converts the items of a conversation, including those of earlier answers, to messages."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from gatehouse.engine.conversation.conversion.custom_tools import arguments_of
from gatehouse.engine.conversation.conversion.documents import document_in
from gatehouse.engine.conversation.conversion.images import from_url
from gatehouse.engine.conversation.conversion.lost import unread
from gatehouse.engine.conversation.decoding.optional_fields import word
from gatehouse.engine.conversation.dialects.openai_chat.content import signature_of
from gatehouse.engine.conversation.dialects.openai_responses.reasoning import read_reasoning
from gatehouse.engine.conversation.dialects.openai_responses.references import References, kind_of
from gatehouse.engine.conversation.dialects.openai_responses.tools import OfferedTools, ToolKey
from gatehouse.engine.conversation.errors import InvalidField
from gatehouse.engine.conversation.form import Content, FormMessage, Part, Role, Text, ToolCall, ToolResult

_ROLES: Final[dict[str, Role]] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
}
#: the field that contains a part's text, by the part's type
_TEXT_FIELDS: Final = {"input_text": "text", "output_text": "text", "text": "text", "refusal": "refusal"}


#: items of earlier answers that no other provider can use
_LEFT_OUT: Final = frozenset({"web_search_call", "image_generation_call", "tool_search_call", "mcp_list_tools"})
#: fields of a message that are converted, or have no effect here
_MESSAGE_FIELDS: Final = frozenset({"type", "role", "content", "id", "status"})
#: fields of the other items that are converted, or have no effect here, by the item's type
_ITEM_FIELDS: Final = {
    "function_call": frozenset({
        "type", "id", "call_id", "name", "namespace", "arguments", "status", "extra_content",
    }),
    "custom_tool_call": frozenset({"type", "id", "call_id", "name", "namespace", "input", "status", "extra_content"}),
    "function_call_output": frozenset({"type", "id", "call_id", "output", "status"}),
    "custom_tool_call_output": frozenset({"type", "id", "call_id", "output", "status"}),
}  # fmt: skip
#: fields of parts that are converted, by the part's type
_PART_FIELDS: Final = {
    "input_text": frozenset({"type", "text"}),
    "output_text": frozenset({"type", "text"}),
    "text": frozenset({"type", "text"}),
    "refusal": frozenset({"type", "refusal"}),
    "input_image": frozenset({"type", "image_url", "detail"}),
}


def read_items(
    items: str | Sequence[Mapping[str, Any]], tools: OfferedTools, lost: dict[str, None]
) -> list[FormMessage]:
    """Return the messages. Consecutive items that are one message in other dialects are merged: an assistant's text and
    tool calls, and the results of tools. Adds the names of items and fields that are left out to `lost`."""
    if isinstance(items, str):
        return [FormMessage("user", (Text(items),) if items else ())]
    #: roles and parts of the messages
    merged: list[tuple[Role, list[Part]]] = []
    reader = _ItemReader(items, tools, lost)
    previous_can_merge = False
    for index in range(len(items)):
        message = reader.read(index)
        if message is None:
            continue
        can_merge = message.role == "assistant" or any(isinstance(part, ToolResult) for part in message.parts)
        if previous_can_merge and can_merge and merged[-1][0] == message.role:
            merged[-1][1].extend(message.parts)
        else:
            merged.append((message.role, list(message.parts)))
        previous_can_merge = can_merge
    return [FormMessage(role, tuple(parts)) for role, parts in merged]


class _ItemReader:
    __slots__ = ("_items", "_lost", "_references", "_tools")

    def __init__(self, items: Sequence[Mapping[str, Any]], tools: OfferedTools, lost: dict[str, None]) -> None:
        self._items = items
        self._tools = tools
        self._lost = lost
        self._references = References(items)

    def read(self, index: int) -> FormMessage | None:
        """Return the message of an item, or None for an item that is left out or has no content of its own."""
        item, path = self._items[index], f"input[{index}]"
        item_kind = kind_of(item)
        fields = _MESSAGE_FIELDS if item_kind == "message" else _ITEM_FIELDS.get(item_kind or "")
        if fields is not None and not item.keys() <= fields:
            self._lost |= unread(item, fields, "input.")
        match item_kind:
            case "message":
                return _read_message(item, path, self._lost)
            case "function_call":
                return FormMessage("assistant", (self._read_call(item, _required(item, "arguments", path), path),))
            case "custom_tool_call":
                arguments = arguments_of(_required(item, "input", path))
                return FormMessage("assistant", (self._read_call(item, arguments, path),))
            case "function_call_output" | "custom_tool_call_output":
                return FormMessage("user", (_read_result(item, path, self._lost),))
            case "additional_tools" | "tool_search_output":
                # Their tools are read with those of the request.
                return None
            case "item_reference":
                self._references.leave_out(index, self._lost)
                return None
            case "reasoning" if (reasoning := read_reasoning(item)) is not None:
                return FormMessage("assistant", (reasoning,))
            case kind if kind == "reasoning" or kind in _LEFT_OUT:
                self._lost[f"input.{kind}"] = None
                return None
        raise InvalidField(
            f"{path}.type",
            f"`{path}.type` must be `message`, `function_call`, `function_call_output`, `custom_tool_call`,"
            " `custom_tool_call_output`, `additional_tools` or `reasoning`: the gateway runs no tools.",
        )

    def _read_call(self, item: Mapping[str, Any], arguments: str, path: str) -> ToolCall:
        namespace = item.get("namespace")
        key = ToolKey(namespace if isinstance(namespace, str) else None, _required(item, "name", path))
        return ToolCall(
            id=_required(item, "call_id", path),
            name=self._tools.function_name(key),
            arguments=arguments,
            signature=signature_of(item),
        )


def _read_message(item: Mapping[str, Any], path: str, lost: dict[str, None]) -> FormMessage:
    role = _ROLES.get(word(item.get("role")) or "")
    if role is None:
        raise InvalidField(f"{path}.role", f"`{path}.role` must be `user`, `assistant`, `system` or `developer`.")
    return FormMessage(role, _read_content(item.get("content"), f"{path}.content", lost))


def _read_content(content: Any, path: str, lost: dict[str, None]) -> tuple[Content, ...]:
    if isinstance(content, str):
        return (Text(content),) if content else ()
    if not isinstance(content, list):
        raise InvalidField(path, f"`{path}` must be a string or a list of parts.")
    return tuple(_read_part(part, f"{path}[{index}]", lost) for index, part in enumerate(content))


def _read_part(part: Any, path: str, lost: dict[str, None]) -> Content:
    if not isinstance(part, dict):
        raise InvalidField(path, f"`{path}` must be an object.")
    kind = part.get("type")
    field = _TEXT_FIELDS.get(kind) if isinstance(kind, str) else None
    fields = _PART_FIELDS.get(kind) if isinstance(kind, str) else None
    if fields is not None and not part.keys() <= fields:
        lost |= unread(part, fields, "input.")
    if field is not None and isinstance(part.get(field), str):
        return Text(part[field], refusal=field == "refusal")
    if kind == "input_image":
        if not isinstance(part.get("image_url"), str):
            raise InvalidField(
                f"{path}.image_url", f"`{path}.image_url` is required: the gateway does not store files."
            )
        return from_url(part["image_url"], part.get("detail"))
    if kind == "input_file":
        return document_in(part, path, "input", lost)
    raise InvalidField(
        path,
        f"`{path}` must be of type `input_text`, `input_image`, `input_file`, `output_text` or `refusal`, with its"
        " text, data or URL.",
    )


def _read_result(item: Mapping[str, Any], path: str, lost: dict[str, None]) -> ToolResult:
    content = _read_content(item.get("output"), f"{path}.output", lost)
    return ToolResult(call_id=_required(item, "call_id", path), content=content)


def _required(item: Mapping[str, Any], field: str, path: str) -> str:
    value = item.get(field)
    if not isinstance(value, str):
        raise InvalidField(f"{path}.{field}", f"`{path}.{field}` must be a string.")
    return value
