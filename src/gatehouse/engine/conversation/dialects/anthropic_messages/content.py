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
from gatehouse.engine.conversation.form import (
    Content,
    Document,
    FormMessage,
    Image,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)

#: the signature of thinking that no provider has signed; removed from requests, because Anthropic would refuse it
UNSIGNED: Final = "gatehouse-unsigned-thinking"
#: the name of thinking that is left out, in the header `X-Gateway-Dropped`
LOST_THINKING: Final = "messages.thinking"
_ID = re.compile("[a-zA-Z0-9_-]{1,64}")


#: the beginning of a text that Claude Code adds to the system prompt; the text differs in each request
BILLING_HEADER: Final = "x-anthropic-billing-header:"
#: blocks that no other API has. They are left out, because the conversation is complete without them
_LEFT_OUT: Final = frozenset({"tool_addition", "tool_removal", "tool_search_tool_result"})
#: the beginning of the types and names of Anthropic's tools that search for tools
TOOL_SEARCH: Final = "tool_search_tool"
_MESSAGE_FIELDS: Final = frozenset({"role", "content"})
#: fields of a block that are converted, by the block's type
_FIELDS: Final = {
    "text": frozenset({"type", "text"}),
    "image": frozenset({"type", "source"}),
    "document": frozenset({"type", "source", "title", "context"}),
    "search_result": frozenset({"type", "source", "title", "content"}),
    "compaction": frozenset({"type", "content"}),
    "tool_use": frozenset({"type", "id", "name", "input"}),
    "tool_result": frozenset({"type", "tool_use_id", "content", "is_error"}),
    "tool_reference": frozenset({"type", "tool_name"}),
}
_SOURCE_FIELDS: Final = frozenset({"type", "data", "media_type", "url", "content"})


def read_messages(messages: Sequence[Mapping[str, Any]], lost: dict[str, None]) -> list[FormMessage]:
    """Return the messages. Adds the names of what is left out to `lost`. A summary of the conversation (`compaction`)
    becomes a text of the user, and replaces the messages and blocks before it, as at Anthropic."""
    read: list[FormMessage] = []
    for index, message in enumerate(messages):
        if not message.keys() <= _MESSAGE_FIELDS:
            lost |= unread(message, _MESSAGE_FIELDS, "messages.")
        content, path = message["content"], f"messages[{index}].content"
        position = _last_summary(content)
        if position is not None:
            read = [FormMessage("user", (Text(f"<summary>\n{content[position]['content']}\n</summary>"),))]
        start = 0 if position is None else position + 1
        parts = read_content(content, path, lost, start=start)
        if parts or position is None:
            read.append(FormMessage(message["role"], parts))
    return read


def _last_summary(content: Any) -> int | None:
    """Return the position of the last block with a summary, or None. Anthropic sends an empty block if it could not
    summarize."""
    if isinstance(content, str):
        return None
    return next(
        (
            position
            for position in range(len(content) - 1, -1, -1)
            if content[position].get("type") == "compaction"
            and isinstance(content[position].get("content"), str)
            and content[position]["content"]
        ),
        None,
    )


def read_content(content: Any, path: str, lost: dict[str, None], *, start: int = 0) -> tuple[Part, ...]:
    """Return the parts of a content, from the block with the number `start`."""
    if isinstance(content, str):
        return (Text(content),) if content else ()
    if content is None:
        return ()
    if not isinstance(content, list):
        raise InvalidField(path, f"`{path}` must be a string or a list of blocks.")
    return tuple(
        part for index in range(start, len(content)) for part in _read_block(content[index], f"{path}[{index}]", lost)
    )


def read_system(system: Any, lost: dict[str, None]) -> tuple[Part, ...]:
    """Return the parts of the system prompt, without the text that Claude Code adds for Anthropic. Because this text
    differs in each request, it would prevent other providers from caching the prompt."""
    if isinstance(system, list):
        kept = [block for block in system if not is_billing_header(block)]
        if len(kept) < len(system):
            lost["system." + BILLING_HEADER[:-1]] = None
            system = kept
    return read_content(system, "system", lost)


def is_billing_header(block: Any) -> bool:
    text = block.get("text") if isinstance(block, dict) else None
    return isinstance(text, str) and text.startswith(BILLING_HEADER)


def without_unsigned(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the messages without thinking that no provider has signed."""
    remaining = []
    for message in messages:
        content = message["content"]
        if isinstance(content, list):
            content = [block for block in content if not _is_unsigned(block)]
            if not content:
                continue
        remaining.append({**message, "content": content})
    return remaining


def _is_unsigned(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") == "thinking" and block.get("signature") == UNSIGNED


def write_messages(messages: Sequence[FormMessage], *, thinks: bool = False) -> list[dict[str, Any]]:
    """Return the messages without system messages. Consecutive messages of one role are merged, because roles alternate
    in this dialect. `thinks` is true if the model may think. Its earlier thinking is then sent back to it."""
    written: list[dict[str, Any]] = []
    for message in messages:
        parts = (part for part in message.parts if thinks or not isinstance(part, Reasoning))
        blocks = [_write_block(part) for part in parts if not (isinstance(part, Text) and not part.text)]
        if message.role == "system" or not blocks:
            continue
        if written and written[-1]["role"] == message.role:
            written[-1]["content"].extend(blocks)
        else:
            written.append({"role": message.role, "content": blocks})
    return written


def _read_block(block: Any, path: str, lost: dict[str, None]) -> tuple[Part, ...]:
    if not isinstance(block, dict):
        raise InvalidField(path, f"`{path}` must be an object.")
    kind = word(block.get("type"))
    fields = None if kind is None else _FIELDS.get(kind)
    if fields is not None and not block.keys() <= fields:
        lost |= unread(block, fields, "system." if path.startswith("system") else "messages.")
    if kind in _LEFT_OUT or _is_tool_search(block) or (kind == "compaction" and not block.get("content")):
        lost[f"messages.{kind}"] = None
        return ()
    if kind in {"thinking", "redacted_thinking"}:
        reasoning = _read_thinking(block)
        if reasoning is None:
            lost[LOST_THINKING] = None
            return ()
        return (reasoning,)
    parts = _read_content_block(kind, block, path, lost)
    if parts is not None:
        return parts
    raise InvalidField(
        path,
        f"`{path}`: this provider takes only blocks of type `text`, `image`, `document`, `search_result`, `tool_use`,"
        " `tool_result`, `tool_reference` and `compaction`.",
    )


def _is_tool_search(block: Mapping[str, Any]) -> bool:
    """Return whether the block is a call of one of Anthropic's tools that search for tools."""
    name = block.get("name")
    return block.get("type") == "server_tool_use" and isinstance(name, str) and name.startswith(TOOL_SEARCH)


def _read_content_block(
    kind: str | None, block: Mapping[str, Any], path: str, lost: dict[str, None]
) -> tuple[Part, ...] | None:
    """Return the parts of a block that other APIs can express; None if it is incomplete or of another type."""
    match kind:
        case "text" if isinstance(block.get("text"), str):
            return (Text(block["text"]),)
        case "image" | "document" if isinstance(block.get("source"), dict):
            lost |= unread(block["source"], _SOURCE_FIELDS, "messages.source.")
            return (_read_image(block["source"], path),) if kind == "image" else _read_document(block, path, lost)
        case "search_result" if isinstance(block.get("content"), list):
            return _titled([block.get("title"), block.get("source")], block["content"], f"{path}.content", lost)
        case "tool_use" if isinstance(block.get("id"), str) and isinstance(block.get("name"), str):
            arguments = msgspec.json.encode(block.get("input") or {}).decode()
            return (ToolCall(id=block["id"], name=block["name"], arguments=arguments),)
        case "tool_result" if isinstance(block.get("tool_use_id"), str):
            inner = read_content(block.get("content"), f"{path}.content", lost)
            content = tuple(part for part in inner if isinstance(part, Content))
            return (ToolResult(call_id=block["tool_use_id"], content=content, is_error=block.get("is_error") is True),)
        case "tool_reference" if isinstance(block.get("tool_name"), str):
            return (Text(f"The tool {block['tool_name']} is available."),)
    return None


def _titled(headings: Sequence[Any], content: Any, path: str, lost: dict[str, None]) -> tuple[Part, ...]:
    """Return the parts of a content. Inserts the headings before the first text. Headings that are not strings are
    ignored."""
    parts = read_content(content, path, lost)
    heading = "\n".join(text for text in headings if isinstance(text, str) and text)
    if not heading:
        return parts
    if parts and isinstance(parts[0], Text):
        return (Text(f"{heading}\n\n{parts[0].text}"), *parts[1:])
    return (Text(heading), *parts)


def _read_thinking(block: Mapping[str, Any]) -> Reasoning | None:
    """Return signed thinking, or None for a block without a provider's signature."""
    is_sealed = block["type"] == "redacted_thinking"
    text, signature = block.get("thinking"), block.get("data" if is_sealed else "signature")
    if not isinstance(signature, str) or signature in ("", UNSIGNED):
        return None
    return Reasoning(text=text if isinstance(text, str) else "", signature=signature, is_sealed=is_sealed)


def _read_image(source: Mapping[str, Any], path: str) -> Image:
    if source.get("type") == "url" and isinstance(source.get("url"), str):
        return Image(url=source["url"])
    data, media_type = source.get("data"), source.get("media_type")
    if source.get("type") == "base64" and isinstance(data, str) and isinstance(media_type, str):
        return Image(data=data, media_type=media_type)
    raise InvalidField(f"{path}.source", f"`{path}.source` must be of type `base64` or `url`.")


def _read_document(block: Mapping[str, Any], path: str, lost: dict[str, None]) -> tuple[Part, ...]:
    source, title = block["source"], block.get("title")
    data, media_type, content = source.get("data"), source.get("media_type"), source.get("content")
    kind = source.get("type")
    headings = [title, block.get("context")]
    if kind == "text" and isinstance(data, str):
        return _titled(headings, data, f"{path}.source.data", lost)
    if kind == "content" and isinstance(content, str | list):
        return _titled(headings, content, f"{path}.source.content", lost)
    if block.get("context"):
        lost["messages.context"] = None
    name = title if isinstance(title, str) else None
    if kind == "url" and isinstance(source.get("url"), str):
        return (Document(url=source["url"], name=name),)
    if kind == "base64" and isinstance(data, str) and isinstance(media_type, str):
        return (Document(data=data, media_type=media_type, name=name),)
    raise InvalidField(f"{path}.source", f"`{path}.source` must be of type `base64`, `text`, `content` or `url`.")


def write_reasoning(reasoning: Reasoning) -> dict[str, Any]:
    if reasoning.is_sealed:
        return {"type": "redacted_thinking", "data": reasoning.signature}
    return {"type": "thinking", "thinking": reasoning.text, "signature": reasoning.signature or UNSIGNED}


def _write_document(document: Document) -> dict[str, Any]:
    source = (
        {"type": "url", "url": document.url}
        if document.data is None
        else {"type": "base64", "media_type": document.media_type, "data": document.data}
    )
    block: dict[str, Any] = {"type": "document", "source": source}
    return block if document.name is None else {**block, "title": document.name}


def _write_block(part: Part) -> dict[str, Any]:
    match part:
        case Reasoning():
            return write_reasoning(part)
        case Document():
            return _write_document(part)
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
