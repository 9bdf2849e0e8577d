"""Converts the items of a conversation, including those of earlier answers, to messages."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from gatehouse.engine.conversation.conversion.images import from_url
from gatehouse.engine.conversation.dialects.openai_chat.content import signature_of
from gatehouse.engine.conversation.errors import InvalidField
from gatehouse.engine.conversation.form import FormMessage, Image, Part, Role, Text, ToolCall, ToolResult

_ROLES: Final[dict[str, Role]] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
}
#: the field with a part's text by the part's type
_TEXT_FIELDS: Final = {"input_text": "text", "output_text": "text", "text": "text", "refusal": "refusal"}


def read_items(items: str | Sequence[Mapping[str, Any]]) -> list[FormMessage]:
    """Return the messages. Consecutive items that are one message in other dialects are merged: an assistant's text and
    tool calls, and the results of tools."""
    if isinstance(items, str):
        return [FormMessage("user", (Text(items),) if items else ())]
    messages: list[FormMessage] = []
    joins = False
    for index, item in enumerate(items):
        message = _read_item(item, f"input[{index}]")
        if message is None:
            continue
        one_of_several = message.role == "assistant" or any(isinstance(part, ToolResult) for part in message.parts)
        if joins and one_of_several and messages[-1].role == message.role:
            message = FormMessage(message.role, messages.pop().parts + message.parts)
        messages.append(message)
        joins = one_of_several
    return messages


def _read_item(item: Mapping[str, Any], path: str) -> FormMessage | None:
    match item.get("type", "message"):
        case "message":
            return _read_message(item, path)
        case "function_call":
            return FormMessage("assistant", (_read_call(item, path),))
        case "function_call_output":
            return FormMessage("user", (_read_result(item, path),))
        case "reasoning":
            # From another provider's answer; other providers cannot use it.
            return None
    raise InvalidField(
        f"{path}.type",
        f"`{path}.type` must be `message`, `function_call`, `function_call_output` or `reasoning`: the gateway keeps"
        " nothing that could be referred to, and runs no tools.",
    )


def _read_message(item: Mapping[str, Any], path: str) -> FormMessage:
    role = item.get("role")
    if role not in _ROLES:
        raise InvalidField(f"{path}.role", f"`{path}.role` must be `user`, `assistant`, `system` or `developer`.")
    return FormMessage(_ROLES[role], _read_content(item.get("content"), f"{path}.content"))


def _read_content(content: Any, path: str) -> tuple[Text | Image, ...]:
    if isinstance(content, str):
        return (Text(content),) if content else ()
    if not isinstance(content, list):
        raise InvalidField(path, f"`{path}` must be a string or a list of parts.")
    return tuple(_read_part(part, f"{path}[{index}]") for index, part in enumerate(content))


def _read_part(part: Any, path: str) -> Text | Image:
    if not isinstance(part, dict):
        raise InvalidField(path, f"`{path}` must be an object.")
    kind = part.get("type")
    field = _TEXT_FIELDS.get(kind) if isinstance(kind, str) else None
    if field is not None and isinstance(part.get(field), str):
        return Text(part[field], refusal=field == "refusal")
    if kind == "input_image":
        if not isinstance(part.get("image_url"), str):
            raise InvalidField(f"{path}.image_url", f"`{path}.image_url` is required: the gateway keeps no files.")
        return from_url(part["image_url"], part.get("detail"))
    raise InvalidField(
        path, f"`{path}` must be of type `input_text`, `input_image`, `output_text` or `refusal`, with its text or URL."
    )


def _read_call(item: Mapping[str, Any], path: str) -> ToolCall:
    return ToolCall(
        id=_required(item, "call_id", path),
        name=_required(item, "name", path),
        arguments=_required(item, "arguments", path),
        signature=signature_of(item),
    )


def _read_result(item: Mapping[str, Any], path: str) -> ToolResult:
    content: tuple[Part, ...] = _read_content(item.get("output"), f"{path}.output")
    return ToolResult(
        call_id=_required(item, "call_id", path),
        content=tuple(part for part in content if isinstance(part, Text | Image)),
    )


def _required(item: Mapping[str, Any], field: str, path: str) -> str:
    value = item.get(field)
    if not isinstance(value, str):
        raise InvalidField(f"{path}.{field}", f"`{path}.{field}` must be a string.")
    return value
