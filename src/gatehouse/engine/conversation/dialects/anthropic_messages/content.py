"""Converts messages and their blocks to and from the internal form."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from gatehouse.engine.conversation.conversion.arguments import arguments_object
from gatehouse.engine.conversation.conversion.call_ids import accepted_id
from gatehouse.engine.conversation.conversion.lost import unread
from gatehouse.engine.conversation.decoding.optional_fields import word
from gatehouse.engine.conversation.errors import InvalidField
from gatehouse.engine.conversation.form import FormMessage, Image, Part, Text, ToolCall, ToolResult

#: types of blocks of earlier answers that are dropped, because other providers cannot use them
_DROPPED_TYPES = frozenset({"thinking", "redacted_thinking"})
_ID = re.compile("[a-zA-Z0-9_-]{1,64}")


#: fields of a block that are converted, by the block's type
_FIELDS: Final = {
    "text": frozenset({"type", "text"}),
    "image": frozenset({"type", "source"}),
    "tool_use": frozenset({"type", "id", "name", "input"}),
    "tool_result": frozenset({"type", "tool_use_id", "content", "is_error"}),
}


def read_message(message: Mapping[str, Any], path: str, lost: dict[str, None]) -> FormMessage:
    """Return a message. Adds the names of what is left out to `lost`."""
    return FormMessage(message["role"], read_content(message["content"], f"{path}.content", lost))


def read_content(content: Any, path: str, lost: dict[str, None]) -> tuple[Part, ...]:
    if isinstance(content, str):
        return (Text(content),) if content else ()
    parts = (_read_block(block, f"{path}[{index}]", lost) for index, block in enumerate(content or ()))
    return tuple(part for part in parts if part is not None)


def write_messages(messages: Sequence[FormMessage]) -> list[dict[str, Any]]:
    """Return the messages without system messages. Consecutive messages of one role are merged, because roles alternate
    in this dialect."""
    written: list[dict[str, Any]] = []
    for message in messages:
        blocks = [_write_block(part) for part in message.parts if not (isinstance(part, Text) and not part.text)]
        if message.role == "system" or not blocks:
            continue
        if written and written[-1]["role"] == message.role:
            written[-1]["content"].extend(blocks)
        else:
            written.append({"role": message.role, "content": blocks})
    return written


def _read_block(block: Any, path: str, lost: dict[str, None]) -> Part | None:
    if not isinstance(block, dict):
        raise InvalidField(path, f"`{path}` must be an object.")
    kind = word(block.get("type"))
    fields = None if kind is None else _FIELDS.get(kind)
    if fields is not None and not block.keys() <= fields:
        lost |= unread(block, fields, "system." if path.startswith("system") else "messages.")
    if kind == "text" and isinstance(block.get("text"), str):
        return Text(block["text"])
    if kind == "image" and isinstance(block.get("source"), dict):
        return _read_image(block["source"], path)
    if kind == "tool_use" and isinstance(block.get("id"), str) and isinstance(block.get("name"), str):
        arguments = msgspec.json.encode(block.get("input") or {}).decode()
        return ToolCall(id=block["id"], name=block["name"], arguments=arguments)
    if kind == "tool_result" and isinstance(block.get("tool_use_id"), str):
        inner = read_content(block.get("content"), f"{path}.content", lost)
        content = tuple(part for part in inner if isinstance(part, Text | Image))
        return ToolResult(call_id=block["tool_use_id"], content=content, is_error=block.get("is_error") is True)
    if kind in _DROPPED_TYPES:
        lost["messages.thinking"] = None
        return None
    raise InvalidField(
        path, f"`{path}`: this provider takes only blocks of type `text`, `image`, `tool_use` and `tool_result`."
    )


def _read_image(source: Mapping[str, Any], path: str) -> Image:
    if source.get("type") == "url" and isinstance(source.get("url"), str):
        return Image(url=source["url"])
    data, media_type = source.get("data"), source.get("media_type")
    if source.get("type") == "base64" and isinstance(data, str) and isinstance(media_type, str):
        return Image(data=data, media_type=media_type)
    raise InvalidField(f"{path}.source", f"`{path}.source` must be of type `base64` or `url`.")


def _write_block(part: Part) -> dict[str, Any]:
    match part:
        case Text():
            return {"type": "text", "text": part.text}
        case Image(url=None):
            return {"type": "image", "source": {"type": "base64", "media_type": part.media_type, "data": part.data}}
        case Image():
            return {"type": "image", "source": {"type": "url", "url": part.url}}
        case ToolCall():
            return {
                "type": "tool_use",
                "id": _id(part.id),
                "name": part.name,
                "input": arguments_object(part.arguments),
            }
        case ToolResult():
            content = [_write_block(item) for item in part.content]
            result = {"type": "tool_result", "tool_use_id": _id(part.call_id), "content": content}
            return result | {"is_error": True} if part.is_error else result


def _id(call_id: str) -> str:
    return accepted_id(call_id, _ID, 32)
